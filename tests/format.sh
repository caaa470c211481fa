#!/usr/bin/env bash
# Usage: format.sh ROOT [--fix]
# Formatting is clang-format's: this names files that differ, --fix rewrites them. Exits 77 (skipped) without clang-format.
set -euo pipefail
cd "$1"
how=(--dry-run -Werror --ferror-limit=1)
if [[ ${2:-} == --fix ]]; then how=(-i); fi

# Versions disagree about details; Debian 12's decides.
version=$(clang-format --version 2>/dev/null | sed -n 's/.*version \([0-9]*\).*/\1/p' || true)
if [[ $version != 14 ]]; then
  echo "clang-format 14 is not installed${version:+, but $version is}"
  exit 77
fi

shopt -s nullglob
folders=(src/ include/ python/src/ tools/ tests/ cmake/ bench*/ examples*/)
find "${folders[@]}" '(' -name '*.cpp' -o -name '*.hpp' -o -name '*.h' ')' -print0 |
  xargs -0 --no-run-if-empty clang-format "${how[@]}"
