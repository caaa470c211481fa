#!/usr/bin/env bash
# Usage: include_directions.sh ROOT
# Who may include whom. Prints file:line and the rule for every #include that breaks one, and exits 1.
#   - A folder of src/ includes from itself, from the folders before it in the list, and from trireme/.
#   - reference and schedule do not see each other: one checks the other.
#   - The targets do not see each other, nor do the devices; files directly in src/targets and src/devices are shared
#     by all, and see none of them (the table of devices is in plan/); so are those of src/devices/cache.
#   - A public header includes the standard library and trireme/ only.
# Tests (*_test.cpp, *_test.hpp) and tools/ may include anything.
set -euo pipefail
cd "$1"

find src include '(' -name '*_test.cpp' -o -name '*_test.hpp' ')' -prune -o '(' -name '*.cpp' -o -name '*.hpp' -o -name '*.h' ')' -print | sort |
  xargs --no-run-if-empty grep -HnE '^[[:space:]]*#[[:space:]]*include' |
  awk '
    BEGIN {
      count = split("support ir math language passes layout reference problem schedule targets kernel_abi devices plan receipt drift c_api contract", folders, " ")
      for (k = 1; k <= count; ++k) rank[folders[k]] = k
    }
    function broken(rule) { print file ":" line ": " included ": " rule; failed = 1 }
    # The second folder of a path such as targets/x86/machine.hpp; "" where the file is directly in the first.
    # and for what all devices share.
    function room(path,   part) { return split(path, part, "/") > 2 && path !~ /^devices\/cache\// ? part[2] : "" }
    {
      split($0, field, ":"); file = field[1]; line = field[2]
      included = $0; sub(/^[^#]*#[ \t]*include[ \t]*/, "", included); sub(/[ \t]*(\/\/.*)?$/, "", included)
      system_header = included ~ /^</
      path = substr(included, 2, length(included) - 2)
      split(path, part, "/"); to = part[1]
    }
    file ~ /^include\// {
      if (system_header ? path !~ /^([a-z_0-9]+|std[a-z]+\.h)$/ : to != "trireme")
        broken("a public header includes the standard library and trireme/ only")
      next
    }
    system_header || to == "trireme" { next }
    {
      from_path = substr(file, 5)  # without src/
      split(from_path, part, "/"); from = part[1]
      if (!(from in rank)) { broken("src/" from " is not in the list of folders"); next }
      if (!(to in rank)) { broken("an include names its folder: \"folder/file.hpp\""); next }
      if (rank[to] > rank[from]) broken(from " comes before " to)
      if (from == "schedule" && to == "reference") broken("reference and schedule do not see each other")
      if (from == to && (from == "targets" || from == "devices") && room(path) != "" && room(path) != room(from_path))
        broken(room(from_path) == "" ? "what the " from " share sees none of them" : "the " from " do not see each other")
    }
    END { exit failed }
  '
