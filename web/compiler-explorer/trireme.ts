// Trireme for Compiler Explorer: `trireme show FILE.row --target x86 --arch avx512` prints the code of a row program.
import fs from 'node:fs/promises';
import path from 'node:path';

import type {CompilationResult, ExecutionOptionsWithEnv} from '../../types/compilation/compilation.interfaces.js';
import type {ParseFiltersAndOutputOptions} from '../../types/features/filters.interfaces.js';
import {BaseCompiler} from '../base-compiler.js';

export class TriremeCompiler extends BaseCompiler {
    static get key() {
        return 'trireme';
    }

    // The target and its architecture are the compiler's own `options` (etc/config/row.default.properties).
    override optionsForFilter(filters: ParseFiltersAndOutputOptions, outputFilename: string): string[] {
        return ['show'];
    }

    override getOutputFilename(dirPath: string, outputFilebase: string): string {
        return path.join(dirPath, `${outputFilebase}.s`);
    }

    // The code comes on the standard output; Compiler Explorer reads a file.
    override async runCompiler(
        compiler: string,
        options: string[],
        inputFilename: string,
        execOptions: ExecutionOptionsWithEnv,
    ): Promise<CompilationResult> {
        const result = await super.runCompiler(compiler, options, inputFilename, execOptions);
        if (result.code === 0) {
            const text = result.stdout.map(line => line.text).join('\n') + '\n';
            await fs.writeFile(this.getOutputFilename(path.dirname(inputFilename), this.outputFilebase), text);
            result.stdout = [];
        }
        return result;
    }
}
