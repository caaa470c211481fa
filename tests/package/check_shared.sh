#!/usr/bin/env bash
# Usage: check_shared.sh LIBRARY.so
# A shared library of ours needs no writable code at load time, and lends nobody the libraries inside it
# (torch's fbgemm, say, brings an asmjit of its own into the same process).
set -euo pipefail
library=$1
failed=0

dynamic=$(readelf --dynamic --wide "$library")
exported=$(nm --dynamic --defined-only --demangle "$library")

if grep TEXTREL <<<"$dynamic"; then
  echo "$library: has text relocations"
  failed=1
fi
if grep -E ' (.* for |.* to )?(asmjit|fmt|nlohmann|CLI)::' <<<"$exported"; then
  echo "$library: exports symbols of the libraries inside it"
  failed=1
fi
exit $failed
