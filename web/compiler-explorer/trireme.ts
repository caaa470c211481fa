// Trireme for Compiler Explorer: `trireme show FILE.row --target x86 --arch avx512` prints the code of a row program.
import fs from 'node:fs/promises';
import path from 'node:path';

import type {CompilationResult, ExecutionOptionsWithEnv} from '../../types/compilation/compilation.interfaces.js';
import type {ParseFiltersAndOutputOptions} from '../../types/features/filters.interfaces.js';
import {BaseCompiler} from '../base-compiler.js';
import {BaseParser} from './argument-parsers.js';

const commentOnly = /^\s*(?:;|\/\/)/;

export class TriremeCompiler extends BaseCompiler {
    static get key() {
        return 'trireme';
    }

    // The parser that a compiler gets unless it says otherwise asks it for GCC's options.
    protected override getArgumentParserClass() {
        return BaseParser;
    }

    // The target and its architecture are the compiler's own `options` (etc/config/row.defaults.properties).
    override optionsForFilter() {
        return ['show'];
    }

    // The code comes on the standard output; Compiler Explorer reads a file. A place in the program stands at the beginning of
    // a line there, where ours begin with the tool's name.
    override async runCompiler(
        compiler: string,
        options: string[],
        inputFilename: string,
        execOptions: ExecutionOptionsWithEnv,
    ): Promise<CompilationResult> {
        const folder = path.dirname(inputFilename);
        const maxOutput = this.env.ceProps('max-asm-size', 64 * 1024 * 1024);
        const ran = await this.exec(compiler, options, {
            ...(execOptions ?? this.getDefaultExecOptions()),
            customCwd: folder,
            maxOutput,
        });
        if (ran.code === 0) await fs.writeFile(this.getOutputFilename(folder, this.outputFilebase), ran.stdout);
        return this.transformToCompilationResult(
            {...ran, stdout: ran.code === 0 ? '' : ran.stdout, stderr: ran.stderr.replace(/^trireme: /gm, '')},
            inputFilename,
        );
    }

    // Texts of four assemblers and of passes: every line is shown, but for comments where those are not wanted. The parser of
    // GNU assembly would take away what it holds for directives and unused labels.
    override async processAsm(result: {asm: string}, filters: ParseFiltersAndOutputOptions) {
        const lines = result.asm.split('\n');
        if (lines.at(-1) === '') lines.pop();
        return {asm: lines.filter(line => !filters.commentOnly || !commentOnly.test(line)).map(text => ({text}))};
    }

    override getDefaultFilters() {
        return {...super.getDefaultFilters(), commentOnly: false, directives: false, labels: false, demangle: false, intel: false};
    }
}
