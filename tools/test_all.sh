#!/usr/bin/env bash
# Usage: test_all.sh
# What `make test-all` adds to `make test`: clang's build, file by file, with kernels of the same hashes as g++'s; the tests
# that touch memory and threads under sanitizers; every model that transformers can build.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
part() {
  local name=$1 began=$SECONDS
  shift
  if "$@"; then echo "test-all: $name passed, $((SECONDS - began)) s"; else
    echo "test-all: $name FAILED, $((SECONDS - began)) s"
    failed=1
  fi
}
