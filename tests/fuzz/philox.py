"""random(seed, k, first_row, first_column): Philox4x32-10, written from docs/language.md and the paper of Salmon and others."""
import numpy as np

LOW = np.uint64(0xFFFFFFFF)


def uniform(seed, stream, rows, columns, first_row=0, first_column=0):
    """Multiples of 2^-23 in [0, 1), one an element."""
    i = np.arange(rows, dtype=np.uint64)[:, None] + np.uint64(first_row)
    j = np.arange(columns, dtype=np.uint64)[None, :] + np.uint64(first_column)
    counter = [np.broadcast_to(each, (rows, columns)) for each in (j // np.uint64(4), i & LOW, i >> np.uint64(32), np.uint64(stream))]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        a, b = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        first, second = (np.uint64(each) for each in key)
        counter = [b >> np.uint64(32) ^ counter[1] ^ first, b & LOW, a >> np.uint64(32) ^ counter[3] ^ second, a & LOW]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    words = np.choose(np.broadcast_to(j % np.uint64(4), (rows, columns)).astype(np.int64), counter)
    return (words >> np.uint64(9)).astype(np.float64) / 2**23
