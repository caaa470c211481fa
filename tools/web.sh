#!/usr/bin/env bash
# Usage: web.sh [FOLDER]
# Builds trireme.wasm, the compiler for browsers, into build/web, and puts it with the page and the JavaScript package into
# FOLDER (build/web/site): static files for any server.
set -euo pipefail
cd "$(dirname "$0")/.."
site=${1:-build/web/site}
cmake -S web/compiler -B build/web -G Ninja --toolchain "$PWD/web/compiler/toolchain.cmake" >/dev/null ||
  exit 1
ninja -C build/web
node js/build_compiler.mjs build/web/trireme.wasm

rm -rf "$site"
mkdir -p "$site/js"
cp build/web/trireme.wasm "$site"
for notice in LICENSE THIRD_PARTY_NOTICES; do cp $notice "$site/$notice.txt"; done
cp js/*.mjs "$site/js"
rm "$site"/js/build*.mjs
if [[ -d web/page ]]; then cp -r web/page/. "$site"; fi
echo "$site: $(du -sk "$site" | cut -f1) kB; trireme.wasm $(stat -c %s build/web/trireme.wasm) bytes," \
  "$(brotli --stdout --best build/web/trireme.wasm | wc -c) by brotli"
