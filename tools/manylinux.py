#!/usr/bin/env python3
"""Renames a wheel of ours, linux_x86_64 or linux_aarch64, to the manylinux tag of the oldest glibc that its binaries run on, after
a look at what they need: libc, and no symbol newer than that.

    python3 -m pip wheel . --no-deps --wheel-dir dist && python3 tools/manylinux.py dist/trireme_kernels-*.whl
"""
import argparse
import base64
import csv
import hashlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
options.add_argument("wheel", type=pathlib.Path)
options.add_argument("--newest", default="2.35", help="the newest glibc that may be needed; Ubuntu 22.04's unless said")
options = options.parse_args()
LIBC = re.compile(r"(libc|libm|libdl|librt|libpthread|ld-linux-x86-64|ld-linux-aarch64)\.so")


def version(text):
    return tuple(map(int, text.split(".")))


def glibc_of(name, content):
    """The newest version of glibc's symbols that a binary asks for."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        said = subprocess.run(["readelf", "--dynamic", "--version-info", "--wide", file.name], check=True, capture_output=True,
                              text=True).stdout
    others = [each for each in re.findall(r"\(NEEDED\).*\[(.*)\]", said) if not LIBC.match(each)]
    if others:
        sys.exit(f"{name} needs {', '.join(others)}")
    found = max((version(each) for each in re.findall(r"GLIBC_([\d.]+)", said)), default=(2, 5))
    if found > version(options.newest):
        sys.exit(f"{name} needs glibc {'.'.join(map(str, found))}, which is newer than {options.newest}")
    return found


def main():
    files = zipfile.ZipFile(options.wheel)
    entries = {info.filename: (info, files.read(info)) for info in files.infolist()}
    files.close()
    oldest = max((glibc_of(name, content) for name, (_, content) in entries.items() if content.startswith(b"\x7fELF")),
                 default=(2, 5))
    plain = re.search(r"linux_(x86_64|aarch64)(?=\.whl$)", options.wheel.name)
    if not plain or "manylinux" in options.wheel.name:
        sys.exit(f"{options.wheel.name} is no wheel of linux_x86_64 or linux_aarch64")
    tag = f"manylinux_{oldest[0]}_{oldest[1]}_{plain[1]}"
    name = next(name for name in entries if name.endswith(".dist-info/WHEEL"))
    info, content = entries[name]
    content = content.replace(plain[0].encode(), tag.encode())
    entries[name] = info, content
    record = name.replace("/WHEEL", "/RECORD")
    rows = list(csv.reader(io.StringIO(entries[record][1].decode())))
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    rows = [[name, f"sha256={digest}", str(len(content))] if row and row[0] == name else row for row in rows]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    entries[record] = entries[record][0], text.getvalue().encode()
    target = options.wheel.with_name(options.wheel.name.replace(plain[0], tag))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for info, content in entries.values():
            made.writestr(info, content, zipfile.ZIP_DEFLATED)
    if target != options.wheel:
        options.wheel.unlink()
    print(target)


main()
