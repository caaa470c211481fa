// Colours of row programs in the Monaco editor.
import * as monaco from 'monaco-editor';

export function definition(): monaco.languages.IMonarchLanguage {
    return {
        keywords: ['and', 'or', 'not', 'inf', 'nan', 'i', 'j', 'n'],
        tokenizer: {
            root: [
                [/#.*$/, 'comment'],
                [/[A-Za-z_]\w*(?=\s*\()/, 'support.function'],
                [/[A-Za-z_]\w*/, {cases: {'@keywords': 'keyword', '@default': 'identifier'}}],
                [/0[xX][\da-fA-F.]+([pP][+-]?\d+)?/, 'number.hex'],
                [/\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?/, 'number'],
                [/->|==|!=|<=|>=|[-+*\/%<>=]/, 'operator'],
                [/[\[\](),:]/, 'delimiter'],
            ],
        },
    };
}

monaco.languages.register({id: 'row'});
monaco.languages.setMonarchTokensProvider('row', definition());
