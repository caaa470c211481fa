"""Digests of arrays by blocks of rows, and receipts of what was computed on them (docs/receipts.md)."""
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _core
from ._operator import Operator


@dataclass(frozen=True)
class BlockDigests:
    """What a receipt says of an array: `rows` rows of `columns` entries, cut into blocks of `block` rows."""
    rows: int
    columns: int
    type: str
    block: int
    digest: str
    """Of the tree over the blocks' digests."""
    leaves: tuple[str, ...]
    """Each block's."""


def block_digests(array: Any, *, axes: int = 1, type: Any = None, hash: str = "xxh3-128") -> BlockDigests:
    """Digests an array in the host's memory, however its elements lie, by blocks of rows: those of receipts, all NaNs taken as
    one. The last `axes` axes make a row. `type`: what uint16 and uint8 stand for, as "bf16". `hash`: or "sha256"."""
    rows, columns, block, name, lines = _core.block_digests(array, axes, type, hash)
    digest, *leaves = lines.split()
    return BlockDigests(rows, columns, name, block, digest, tuple(leaves))


@dataclass(frozen=True)
class CheckReport:
    """What Receipt.check found; docs/json.md has the fields of `report`."""
    passed: bool
    report: dict[str, Any] = field(repr=False)

    def __bool__(self) -> bool:
        return self.passed

    def first_difference(self) -> str:
        """The first array that differs, and where, or ''."""
        for what in ("operands", "results", "given"):
            for each in self.report[what]:
                if each["state"] == "different":
                    first, last = each["rows"]
                    where = each.get("element") or (f"row {first}" if last == first + 1 else f"rows {first}:{last}")
                    return where if "element" in each else f"{each['name']}, {where}"
        return ""


class Receipt:
    """What was computed, and digests of all arrays (docs/receipts.md)."""

    def __init__(self, text: str | bytes) -> None:
        self._text, self._signed_form = _core.receipt_parse(text.decode("utf-8") if isinstance(text, bytes) else text)
        self.fields: dict[str, Any] = json.loads(self._text)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Receipt":
        with open(path, "rb") as file:
            content = file.read()
        try:
            return cls(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise _core.InvalidArgument(f"{os.fspath(path)}: no UTF-8: {error}") from None

    @classmethod
    def of(cls, operator: Operator, arrays: Mapping[str, Any], *, axes: int = 1, types: Mapping[str, Any] | None = None,
           hash: str = "xxh3-128", **constants: float) -> "Receipt":
        """Of operands and results as they were computed of them, by name, in the host's memory: nothing runs. `hash`: "sha256"
        for one that is to be signed. A gradient() goes by its own text, as a program."""
        given = {name: array for name, array in arrays.items() if array is not None}
        return cls(_core.receipt_make(operator, given, dict(types or {}), constants, axes, hash)[0])

    @property
    def text(self) -> str:
        """In canonical form."""
        return self._text

    @property
    def signed_form(self) -> bytes:
        """The canonical form without the signature: what a signature covers."""
        return self._signed_form.encode("utf-8")

    @property
    def key(self) -> str | None:
        """The public key that it says it is signed by, 64 hex digits."""
        return self.fields.get("signature", {}).get("key")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Receipt) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        name = re.sub("#.*", "", self.fields["program"]["text"]).split("(")[0].strip()
        return f"<trireme receipt of {name} {'x'.join(map(str, self.fields['shape']))}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Written beside its place and put there whole."""
        folder = os.path.dirname(os.path.abspath(path))
        descriptor, beside = tempfile.mkstemp(dir=folder, prefix=".trireme-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(self._text)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(beside, 0o666 & ~mask)
            os.replace(beside, path)
        except BaseException:
            os.unlink(beside)
            raise

    def sign(self, private_key: Any) -> "Receipt":
        """Signed by Ed25519, which the package `cryptography` does: `private_key` is the path of a PEM file (openssl genpkey
        -algorithm ed25519), or an Ed25519PrivateKey. The receipt's hash must be sha256."""
        serialization, ed25519, _ = _cryptography()
        key = private_key
        if isinstance(key, (str, os.PathLike)):
            with open(key, "rb") as file:
                content = file.read()
            try:
                key = serialization.load_pem_private_key(content, password=None)
            except (TypeError, ValueError) as error:
                raise _core.InvalidArgument(f"{os.fspath(private_key)}: {error}") from None
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            raise _core.InvalidArgument("a receipt is signed by a private key of Ed25519")
        value = key.sign(self.signed_form).hex()
        return Receipt(_core.receipt_sign(self._text, key.public_key().public_bytes_raw().hex(), value)[0])

    def verify_signature(self, public_key: Any) -> None:
        """Raises InvalidArgument unless the receipt is signed by this key: the path of a PEM file, 64 hex digits, or an
        Ed25519PublicKey."""
        serialization, ed25519, InvalidSignature = _cryptography()
        if isinstance(public_key, str) and len(public_key) == 64 and not set(public_key) - set("0123456789abcdef"):
            wanted = public_key
        else:
            key = public_key
            if isinstance(key, (str, os.PathLike)):
                with open(key, "rb") as file:
                    content = file.read()
                try:
                    key = serialization.load_pem_public_key(content)
                except ValueError as error:
                    raise _core.InvalidArgument(f"{os.fspath(public_key)}: {error}") from None
            if not isinstance(key, ed25519.Ed25519PublicKey):
                raise _core.InvalidArgument("a signature is verified by a public key of Ed25519")
            wanted = key.public_bytes_raw().hex()
        signature = self.fields.get("signature")
        if signature is None:
            raise _core.InvalidArgument("the receipt is not signed")
        if signature["key"] != wanted:
            raise _core.InvalidArgument(f"the receipt is signed by another key, {signature['key']}, wanted {wanted}")
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(wanted)).verify(
                bytes.fromhex(signature["value"]), self.signed_form)
        except InvalidSignature:
            raise _core.InvalidArgument("the signature is not one of this receipt by its key") from None

    def check(self, arrays: Mapping[str, Any], *, rows: tuple[int, int] | None = None, device: str = "cpu", threads: int = 0,
              key: Any = None) -> CheckReport:
        """Computes the results again, or those of `rows` (the first, and the one behind the last, widened to whole blocks), of
        these operands, on any device; results that are given too are compared by elements. Arrays lie in the host's memory;
        np.load(..., mmap_mode="r") reads what is needed. With `key` the receipt must be signed by it."""
        if key is not None:
            self.verify_signature(key)
        first, last = rows if rows is not None else (0, 0)
        if rows is not None and last <= first:
            raise _core.InvalidArgument(f"rows {first}:{last}: there are none")
        types = {each["name"]: each["type"] for which in ("operands", "results") for each in self.fields[which]}
        given = {name: array for name, array in arrays.items() if array is not None}
        passed, report = _core.receipt_check(self._text, given, types, device, first, last, threads)
        return CheckReport(passed, json.loads(report))


def _cryptography():
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise _core.Unsupported(
            "signatures want the package 'cryptography': pip install 'trireme[receipts]'") from error
    return serialization, ed25519, InvalidSignature
