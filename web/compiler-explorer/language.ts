// For the table of lib/languages.ts.
export const row = {
    name: 'Row',
    monaco: 'row',
    extensions: ['.row'],
    alias: ['trireme'],
    logoFilename: null,
    logoFilenameDark: null,
    formatter: null,
    previewFilter: null,
    monacoDisassembly: null,
    tooltip: 'Row programs: row-wise deep-learning kernels',
};
