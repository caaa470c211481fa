"""Receipts, and digests of arrays by blocks of rows."""
import hashlib
import json
import sys

import numpy as np
import pytest
import trireme


def tree_over(leaves):
    """docs/receipts.md, over digests by SHA-256."""
    level = [bytes.fromhex(each) for each in leaves] or [hashlib.sha256().digest()]
    while len(level) > 1:
        level = [hashlib.sha256(b"".join(level[k:k + 2])).digest() if k + 1 < len(level) else level[k]
                 for k in range(0, len(level), 2)]
    return level[0].hex()


@pytest.mark.parametrize("rows", [0, 1, 7, 1024, 1025, 5000])
def test_blocks_of_rows(rows):
    array = np.random.default_rng(rows).standard_normal((rows, 6), dtype=np.float32)
    found = trireme.block_digests(array, hash="sha256")
    assert (found.rows, found.columns, found.type) == (rows, 6, "f32")
    assert found.block == {5000: 8, 1025: 2}.get(rows, 1)
    assert found.leaves == tuple(hashlib.sha256(array[k:k + found.block].tobytes()).hexdigest()
                                 for k in range(0, rows, found.block))
    assert found.digest == tree_over(found.leaves)
    assert trireme.block_digests(np.asfortranarray(array), hash="sha256") == found
    assert trireme.block_digests(array.reshape(rows, 2, 3), axes=2, hash="sha256") == found
    assert len(trireme.block_digests(array).digest) == 32


def test_types_and_nans():
    ones, twos = (np.full((3, 4), bits, np.uint32).view(np.float32) for bits in (0x7fc00000, 0xffc01234))
    assert trireme.block_digests(ones) == trireme.block_digests(twos)
    bits = np.zeros((3, 4), np.uint16)
    assert trireme.block_digests(bits, type="bf16").type == "bf16"
    for wrong in (lambda: trireme.block_digests(bits), lambda: trireme.block_digests(ones, type="f64"),
                  lambda: trireme.block_digests(np.zeros(3, complex)), lambda: trireme.block_digests(ones, hash="md5")):
        with pytest.raises(trireme.TriremeError):
            wrong()
    torch = pytest.importorskip("torch")
    tensor = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)
    assert trireme.block_digests(tensor) == trireme.block_digests(tensor.view(torch.uint16).numpy(), type="bf16")
    assert trireme.block_digests(tensor.t()) == trireme.block_digests(tensor.t().contiguous())


RMS_NORM = np.random.default_rng(3).standard_normal((3000, 24), dtype=np.float32)


def rms_norm_receipt(**options):
    gamma = np.linspace(0.5, 2, 24, dtype=np.float32)
    y, rstd = trireme.rms_norm(RMS_NORM, gamma, eps=1e-5, results="all")
    arrays = {"x": RMS_NORM, "gamma": gamma, "y": y, "rstd": rstd}
    return trireme.Receipt.of(trireme.rms_norm, arrays, eps=1e-5, **options), arrays


def test_check_on_every_device(tmp_path):
    receipt, arrays = rms_norm_receipt()
    receipt.save(tmp_path / "r.json")
    again = trireme.Receipt.load(tmp_path / "r.json")
    assert again == receipt and again.text == (tmp_path / "r.json").read_text() and not list(tmp_path.glob(".trireme*"))
    assert trireme.Receipt(json.dumps(receipt.fields, indent=2)) == receipt
    operands = {name: arrays[name] for name in ("x", "gamma")}
    for device, missing in trireme.devices().items():
        if missing:
            continue
        assert receipt.check(operands, device=device, rows=(1000, 1010)), device
        if device != "lanes":  # an interpreter
            assert receipt.check(arrays, device=device), device
    np.save(tmp_path / "x.npy", RMS_NORM)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert receipt.check({**operands, "x": mapped}, rows=(0, 1)).report["rows"] == [0, 4]


def test_what_differs_is_named():
    receipt, arrays = rms_norm_receipt()
    y = arrays["y"].copy()
    y[1001, 3] += 1
    found = receipt.check({**arrays, "y": y})
    assert not found and found.first_difference() == "y[1001,3]"
    x = arrays["x"].copy()
    x[7, 0] += 1
    found = receipt.check({**arrays, "x": x})
    assert not found and found.first_difference() == "x, rows 4:8" and found.report["results"] == []
    assert receipt.check({**arrays, "x": x}, rows=(8, 9))
    # Results that nobody computed so, digested as if they were.
    wrong = trireme.Receipt.of(trireme.rms_norm, {**arrays, "y": y}, eps=1e-5)
    assert wrong.check({**arrays, "y": y}).first_difference() == "y[1001,3]"
    del arrays["y"]
    assert wrong.check(arrays).first_difference() == "y, rows 1000:1004"


def test_gradients_types_and_layouts():
    receipt, arrays = rms_norm_receipt()
    dy = np.ones_like(RMS_NORM)
    gradient = trireme.rms_norm.gradient()
    dx, dgamma = gradient(dy, RMS_NORM, arrays["gamma"], arrays["rstd"], eps=1e-5)
    made = trireme.Receipt.of(gradient, {"dy": dy, "x": RMS_NORM, "gamma": arrays["gamma"], "rstd": arrays["rstd"],
                                         "dx": dx, "dgamma": dgamma}, eps=1e-5)
    assert made.check({"dy": dy, "x": RMS_NORM, "gamma": arrays["gamma"], "rstd": arrays["rstd"]}, device="reference")
    torch = pytest.importorskip("torch")
    x = torch.randn(4, 6, 16, dtype=torch.bfloat16).transpose(0, 1)
    y = trireme.rms_norm(x)
    made = trireme.Receipt.of(trireme.rms_norm, {"x": x, "y": y})
    assert made.fields["shape"] == [6, 4, 16] and made.fields["absent"] == ["gamma"]
    assert made.check({"x": x.contiguous()}, device="reference")
    assert trireme.Receipt.of(trireme.rms_norm, {"x": x.contiguous(), "y": y}) == made
    for wrong in ({"y": y}, {"x": x, "y": y.transpose(0, 1)}, {"x": x, "z": y}, {"x": x}):
        with pytest.raises(trireme.TriremeError):
            trireme.Receipt.of(trireme.rms_norm, wrong)


def test_the_program_is_named_in_words():
    x = np.zeros((2, 3), np.float32)
    made = trireme.Receipt.of(trireme.op("f(x[i,j]) -> (y[i,j])\n    y = x\n"), {"x": x, "y": x}, hash="sha256").fields
    text = "# A copy (of x)\n" + made["program"]["text"]  # as the command line has it
    receipt = trireme.Receipt(json.dumps(made | {"program": {"text": text, "digest": hashlib.sha256(text.encode()).hexdigest()}}))
    assert repr(receipt) == "<trireme receipt of f 2x3>"


def test_bound_programs_are_refused():
    x = np.zeros((2, 3), np.float32)
    text = "f(x[i,j]: f32) -> (y[i,j]: f32) in f32\n    y = round_to(x, bf16)\n"
    with pytest.raises(trireme.Unsupported, match="'f' is bound"):
        trireme.Receipt.of(trireme.op(text), {"x": x, "y": x})
    made = trireme.Receipt.of(trireme.op("f(x[i,j]) -> (y[i,j])\n    y = x\n"), {"x": x, "y": x}, hash="sha256").fields
    bound = {"text": text, "digest": hashlib.sha256(text.encode()).hexdigest()}
    with pytest.raises(trireme.Unsupported, match="'f' is bound"):
        trireme.Receipt(json.dumps(made | {"program": bound}))


def test_signatures(tmp_path):
    cryptography = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    key = cryptography.Ed25519PrivateKey.generate()
    (tmp_path / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                                         serialization.NoEncryption()))
    (tmp_path / "public.pem").write_bytes(key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    plain, arrays = rms_norm_receipt()
    with pytest.raises(trireme.InvalidArgument, match="no cryptographic hash"):
        plain.sign(key)
    receipt, arrays = rms_norm_receipt(hash="sha256")
    signed = receipt.sign(tmp_path / "key.pem")
    assert signed.text == receipt.sign(key).text and signed.signed_form == receipt.text.encode()
    assert signed.check(arrays, key=tmp_path / "public.pem", rows=(0, 1))
    signed.verify_signature(signed.key)
    with pytest.raises(trireme.InvalidArgument, match="not signed"):
        receipt.check(arrays, key=signed.key)
    with pytest.raises(trireme.InvalidArgument, match="another key"):
        signed.verify_signature(cryptography.Ed25519PrivateKey.generate().public_key())
    for field, value in (("shape", [3000, 25]), ("axes", 2), ("compute", "f64"), ("constants", {"eps": "0" * 16}),
                         ("absent", ["gamma"]), ("direction", "backward"), ("operands", []),
                         ("signature", {**signed.fields["signature"], "value": "0" * 128})):
        changed = trireme.Receipt(json.dumps({**signed.fields, field: value}))
        with pytest.raises(trireme.InvalidArgument, match="not one of this receipt"):
            changed.verify_signature(signed.key)
    for field, value in (("hash", "xxh3-128"), ("receipt", 2), ("program", {}), ("results", []), ("more", 1)):
        with pytest.raises(trireme.InvalidArgument):
            trireme.Receipt(json.dumps({**signed.fields, field: value}))
    other = trireme.Receipt(json.dumps({**receipt.fields, "contract": 77}))
    with pytest.raises(trireme.Unsupported, match="contract version 77"):
        other.check(arrays)


def test_without_cryptography(monkeypatch):
    receipt, _ = rms_norm_receipt(hash="sha256")
    for name in [each for each in sys.modules if each.startswith("cryptography")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(trireme.Unsupported, match="pip install"):
        receipt.verify_signature("0" * 64)
