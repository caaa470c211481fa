/** Both directions of an operator that comes with the package: `trireme/modules/NAME.mjs`. */
export const forward: Uint8Array;
export const backward: Uint8Array;
