#!/usr/bin/env bash
# Usage: pure_folders.sh ROOT
# The folders up to and including emission neither throw nor catch, so that they also build with -fno-exceptions (for
# WebAssembly). Prints file:line of what does, and exits 1. Tests are free, and support/out_of_memory.hpp is the one place
# where what the standard library throws becomes an error.
set -euo pipefail
cd "$1/src"
found=$(find support ir math language passes layout reference problem schedule targets '(' -name '*.cpp' -o -name '*.hpp' ')' \
  -not -name '*_test.*' -not -name '*_for_test.hpp' -not -path support/out_of_memory.hpp -print0 | sort -z |
  xargs -0 grep -HnE '\b(throw\b|try[[:space:]]*\{|catch[[:space:]]*\()' | grep -vE '^[^:]+:[0-9]+:[^"]*//.*\b(try|catch|throw)\b' || true)
[[ -z $found ]] && exit
echo "$found"
echo "the pure folders neither throw nor catch; an error is a Result"
exit 1
