"""Storage types in NumPy: rounding to them, and arrays of .npy files that carry them."""
import numpy as np

# name: precision in bits, exponent of the smallest normal number, largest finite value, whether overflow saturates
FORMATS = {
    "f64": (53, -1022, np.finfo(np.float64).max, False),
    "f32": (24, -126, float(np.finfo(np.float32).max), False),
    "f16": (11, -14, 65504.0, False),
    "bf16": (8, -126, float.fromhex("0x1.fep127"), False),
    "f8e4m3": (4, -6, 448.0, True),
    "f8e5m2": (3, -14, 57344.0, True),
    "f4e2m1": (2, 0, 6.0, True),
}
INTEGERS = {"i8": (-128, 127), "i32": (-(2**31), 2**31 - 1), "i64": (-(2.0**63), 2.0**63), "u8": (0, 255)}
TYPES = tuple(FORMATS) + tuple(INTEGERS) + ("f8e8m0",)
PACKED = ("f4e2m1",)  # two columns a byte


def largest(kind):
    if kind == "f8e8m0":
        return 2.0**127
    return float(INTEGERS[kind][1]) if kind in INTEGERS else FORMATS[kind][2]


def round_to(kind, values):
    """Of f64 values: once, to nearest even. f8, f4 and integers saturate; NaN in integers is 0, in f4e2m1 6."""
    values = np.asarray(values, np.float64)
    if kind == "f64":
        return values
    with np.errstate(all="ignore"):
        if kind == "f32":
            return values.astype(np.float32).astype(np.float64)
        if kind in INTEGERS:
            return np.clip(np.rint(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)), *INTEGERS[kind]) + 0.0
        if kind == "f8e8m0":  # the nearest power of two, the larger of two
            inside = np.clip(np.nan_to_num(values, nan=1.0, posinf=np.inf, neginf=-np.inf), 2.0**-127, 2.0**127)
            fraction, exponent = np.frexp(inside)
            power = np.minimum(np.ldexp(1.0, exponent - 1 + (fraction >= 0.75)), 2.0**127)
            return np.where(np.isnan(values), np.nan, power)
        precision, smallest, most, saturates = FORMATS[kind]
        finite = np.where(np.isfinite(values), values, 0)
        unit = np.maximum(np.frexp(finite)[1] - 1, smallest) - (precision - 1)
        rounded = np.ldexp(np.rint(np.ldexp(finite, -unit)), unit)
        rounded = np.where(np.isfinite(values), rounded, values)
        beyond = np.abs(rounded) > most
        rounded = np.where(beyond, np.copysign(most if saturates else np.inf, rounded), rounded)
        return np.where(np.isnan(rounded), 6.0, rounded) if kind == "f4e2m1" else rounded


def round_by_chance(kind, compute, values, random):
    """Of values of the compute type: away from 0 where `random` is less than the part of the way to the next value."""
    precision = lambda kind: 1 if kind == "f8e8m0" else FORMATS[kind][0]  # noqa: E731
    if kind not in INTEGERS and precision(kind) >= precision(compute):
        return values
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(values), values, 0)
        if kind in INTEGERS:
            unit = np.zeros_like(finite, dtype=int)
        else:
            smallest = -127 if kind == "f8e8m0" else FORMATS[kind][1]
            exponent = np.where(finite == 0, smallest, np.frexp(finite)[1] - 1)  # frexp has 0 for that of 0
            unit = np.maximum(exponent, smallest) - (precision(kind) - 1)
        steps = np.ldexp(np.abs(finite), -unit)
        size = np.ldexp(np.floor(steps) + (random < steps - np.floor(steps)), unit)
        return round_to(kind, np.where(np.isfinite(values), np.copysign(size, values), values))


def _table(kind):
    """The value of each byte of an f8 type."""
    mantissa, bias = (3, 7) if kind == "f8e4m3" else (2, 15)
    out = np.zeros(256)
    for byte in range(256):
        exponent, fraction = (byte & 127) >> mantissa, (byte & ((1 << mantissa) - 1)) / (1 << mantissa)
        value = fraction * 2.0 ** (1 - bias) if exponent == 0 else (1 + fraction) * 2.0 ** (exponent - bias)
        if kind == "f8e4m3" and byte & 127 == 127:
            value = np.nan
        if kind == "f8e5m2" and exponent == 31:
            value = np.inf if fraction == 0 else np.nan
        out[byte] = -value if byte & 128 else value
    return out


F4E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
TABLES = {kind: _table(kind) for kind in ("f8e4m3", "f8e5m2")}
NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i8": np.int8, "i32": np.int32, "i64": np.int64,
         "u8": np.uint8}  # fmt: skip


def encode(kind, values):
    """The array of a .npy file; bf16 travels as uint16, f8 as uint8, and f4e2m1 as uint8 with half as many in the last axis."""
    rounded = round_to(kind, values)
    if kind == "f4e2m1":
        pattern = np.searchsorted(F4E2M1, np.abs(rounded)).astype(np.uint8) + 8 * np.signbit(rounded).astype(np.uint8)
        return pattern[..., 0::2] | pattern[..., 1::2] << 4
    with np.errstate(all="ignore"):
        if kind == "i64":  # 2^63 itself is one too many
            most = rounded >= 2.0**63
            return np.where(most, 2**63 - 1, np.where(most, 0, rounded).astype(np.int64))
        if kind in NUMPY:
            return rounded.astype(NUMPY[kind])
        if kind == "f8e8m0":
            return np.where(np.isnan(rounded), 255, np.frexp(np.nan_to_num(rounded, nan=1.0))[1] + 126).astype(np.uint8)
        if kind == "bf16":
            return (np.ascontiguousarray(rounded.astype(np.float32)).view(np.uint32) >> 16).astype(np.uint16)
    table = TABLES[kind]
    positive = np.where(np.isnan(table[:128]), np.inf, table[:128])
    byte = np.searchsorted(positive, np.abs(np.nan_to_num(rounded, nan=0.0))).astype(np.uint8)
    byte = np.where(np.isnan(rounded), 0x7F, byte | (np.signbit(rounded) * np.uint8(128)))
    return byte.astype(np.uint8)


def decode(kind, array):
    if kind == "f4e2m1":
        pattern = np.stack([array & 15, array >> 4], -1).reshape(*array.shape[:-1], 2 * array.shape[-1])
        return np.where(pattern < 8, 1.0, -1.0) * F4E2M1[pattern & 7]
    if kind in NUMPY:
        return array.astype(np.float64)
    if kind == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if kind == "f8e8m0":
        return np.where(array == 255, np.nan, np.ldexp(1.0, array.astype(np.int64) - 127))
    return TABLES[kind][array]
