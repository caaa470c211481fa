// The numbers of the contract that a host needs; src/ir/contract.hpp says where they come from.

// How many rows are added one after the other in a column sum.
export const row_block = (rows, entries) => {
  const blocks = entries <= 8192 ? 2 ** (31 - Math.clz32(Math.min(8192, Math.floor(2 ** 20 / entries))))
                                 : Math.max(8, Math.min(120, Math.floor((15 * 2 ** 17) / entries)));
  return Math.max(1, Math.ceil(rows / blocks), Math.min(16, Math.ceil(rows / 128)));
};
