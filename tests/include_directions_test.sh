#!/usr/bin/env bash
# Plants includes in a house of its own, and looks at what include_directions.sh says.
set -euo pipefail
check=$(dirname "$(realpath "$0")")/include_directions.sh
house=$(mktemp -d)
trap 'rm -rf "$house"' EXIT
mkdir -p "$house"/include/trireme "$house"/src
failed=0

# expect FILE INCLUDE [RULE]: FILE may hold the include; or, where RULE is given, it may not, for that reason.
expect() {
  local said status=0 wanted=${3:-}
  mkdir -p "$(dirname "$house/$1")"
  printf '// planted\n#include %s\n' "$2" >"$house/$1"
  said=$("$check" "$house") || status=$?
  rm "$house/$1"
  if [[ -n $wanted && $status == 1 && $said == "$1:2: $2: $wanted" ]]; then return; fi
  if [[ -z $wanted && $status == 0 && -z $said ]]; then return; fi
  echo "FAIL $1 with $2: exit $status, said '$said', wanted '${wanted:-nothing}'"
  failed=1
}

expect src/passes/expand.cpp '"math/functions.hpp"'
expect src/passes/expand.cpp '"passes/passes.hpp"'
expect src/passes/expand.cpp '"trireme/type.hpp"'
expect src/passes/expand.cpp '<vector>'
expect src/passes/expand_test.cpp '"plan/plan.hpp"'
expect tools/trireme/show.cpp '"targets/x86/machine.hpp"'
expect src/ir/node.hpp '"passes/passes.hpp"' 'ir comes before passes'
expect src/ir/node.hpp '"program.hpp"' 'an include names its folder: "folder/file.hpp"'
expect src/extra/node.hpp '"ir/node.hpp"' 'src/extra is not in the list of folders'

expect src/schedule/lower.cpp '"layout/array.hpp"'
expect src/schedule/lower.cpp '"reference/reference.hpp"' 'reference and schedule do not see each other'
expect src/reference/reference.cpp '"schedule/config.hpp"' 'reference comes before schedule'

expect src/devices/cuda/modules.cpp '"devices/cache/kernel_cache.hpp"'
expect src/devices/cache/kernel_cache.cpp '"devices/cuda/driver.hpp"' 'what the devices share sees none of them'
expect src/targets/x86/machine.cpp '"targets/walk.hpp"'
expect src/targets/x86/machine.cpp '"targets/x86/machine.hpp"'
expect src/targets/x86/machine.cpp '"targets/ptx/builder.hpp"' 'the targets do not see each other'
expect src/targets/walk.cpp '"targets/ptx/builder.hpp"' 'what the targets share sees none of them'
expect src/devices/wasm/host.cpp '"targets/wasm/encoder.hpp"'
expect src/devices/cuda/driver.cpp '"devices/cache.hpp"'
expect src/devices/cuda/driver.cpp '"devices/cpu/threads.hpp"' 'the devices do not see each other'
expect src/plan/devices.cpp '"devices/cpu/threads.hpp"'

expect include/trireme/plan.hpp '<cstdint>'
expect include/trireme/trireme.h '<stdint.h>'
expect include/trireme/plan.hpp '"trireme/type.hpp"'
for leaked in '<fmt/format.h>' '<asmjit/asmjit.h>' '<cuda.h>' '"ir/node.hpp"'; do
  expect include/trireme/plan.hpp "$leaked" 'a public header includes the standard library and trireme/ only'
done
exit $failed
