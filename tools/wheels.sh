#!/usr/bin/env bash
# Usage: wheels.sh [x86_64|aarch64 ...]
# Builds manylinux wheels of the Python package into dist/, for both processors unless told. The other processor's comes by
# Debian's cross compiler (tools/setup.sh all installs it and fetches asmjit's source).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
[[ $# -gt 0 ]] || set -- x86_64 aarch64
for processor in "$@"; do
  folder=build/wheel_$processor
  options=()
  if [[ $processor != "$(uname -m)" ]]; then
    options=("-Ccmake.args=--toolchain=$PWD/cmake/$processor-linux-gnu.cmake")
    export _PYTHON_HOST_PLATFORM=linux-$processor
  fi
  rm -rf "$folder/dist"
  "$python" -m pip wheel . --no-deps --quiet --wheel-dir "$folder/dist" "-Cbuild-dir=$folder/build" "${options[@]}" ${PIP_OPTIONS:-}
  unset _PYTHON_HOST_PLATFORM
  mkdir -p dist
  made=$("$python" tools/manylinux.py "$folder"/dist/*.whl)
  mv "$made" dist
  echo "dist/$(basename "$made")"
done
