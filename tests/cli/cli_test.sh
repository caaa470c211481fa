#!/usr/bin/env bash
# Usage: cli_test.sh TRIREME
# Each golden/*.txt begins with `$ trireme ARGUMENTS` and `exit CODE`; the rest is what that prints, errors too.
# BLESS=1 rewrites the files, for the reviewer's diff. Checks of what no file can hold follow.
set -uo pipefail
trireme=$(realpath "$1")
cd "$(dirname "$0")"
failed=0
fail() { echo "FAIL $*"; failed=1; }

for golden in golden/*.txt; do
  command=$(head -n 1 "$golden")
  eval "arguments=(${command#\$ trireme})"
  output=$("$trireme" "${arguments[@]}" 2>&1)
  got=$(printf '%s\nexit %d\n%s' "$command" $? "$output")
  if [[ ${BLESS:-} == 1 ]]; then
    printf '%s\n' "$got" >"$golden"
  elif ! difference=$(diff -u "$golden" <(printf '%s\n' "$got")); then
    fail "$golden (BLESS=1 $0 TRIREME rewrites it)"
    printf '%s\n' "$difference"
  fi
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# check CODE PATTERN ARGUMENT...: the exit code, and what the output must hold.
check() {
  local code=$1 pattern=$2 output got
  shift 2
  output=$(cd "$folder" && "$trireme" "$@" 2>&1)
  got=$?
  [[ $got == "$code" ]] || fail "trireme ${*@Q}: exit $got, want $code: $output"
  grep -qE -- "$pattern" <<<"$output" || fail "trireme ${*@Q}: no /$pattern/ in: $output"
}

# These grow with the operators, devices and architectures, and help texts look as CLI11 sets them.
check 0 '^rms_norm\(x\[i,j\], .*\) -> \(y\[i,j\], rstd\[i\]\)$' list
check 0 '^    Root-mean-square' list
check 0 '^  verify  ' --help
for variable in THREADS ISA HIDE CACHE VERBOSE PERF NVRTC WASMTIME; do check 0 "^  TRIREME_$variable=" --help; done
for verb in list show emit run check drift verify bench tune jit cache doctor completion; do check 0 "^Usage: trireme $verb" "$verb" --help; done
check 2 "^trireme: no operator named 'nothing_like_it'; there are: .*rms_norm" verify "nothing_like_it 3x7"
check 2 "^trireme: no device named 'gpu'; there are: reference, " verify "rms_norm 3x7" --device gpu
# A listing with the kernel's structure as comments.
check 0 '^; *while .*\{$' show rms_norm --target x86
check 0 '^    +vmulps ymm' show rms_norm --target x86 --arch avx2
check 0 '^    +vmulps zmm' show rms_norm --target x86 --arch avx512
check 2 "^trireme: no architecture 'sm_70'; ptx: sm_80" show rms_norm --target ptx --arch sm_70

# Fault 46: no memory is taken for arrays that nobody reads, and no time. Rows of 2^40 columns would say so.
for target in x86 wasm; do
  check 0 '^wide: [0-9]+ bytes$' emit rms_norm --backward --target $target --cols 1099511627776 -o wide
done

# Every device that is here gives the reference's bits; which ones are here differs from machine to machine.
for line in "rms_norm 3x257" "rms_norm 5x4097 x=bf16 gamma=none" "rms_norm 7x300 x=f16 backward"; do
  check 0 '^  lanes .* same bits$' verify "$line" --chunk 2
done
check 0 '^  reference +[0-9a-f]{32}  \(the reference\)$' verify "rms_norm 0x7"
check 0 '2 problems, 2 comparisons with the reference, 0 failed' verify "rms_norm 1x7" "rms_norm 2x7" --device lanes

# A program of one's own, and its mistakes.
printf 'twice(x[i,j]) -> (y[i,j])\n    y = x + x\n' >"$folder/twice.row"
printf 'twice(x[i,j]) -> (y[i,j])\n    y = x + z\n' >"$folder/wrong.row"
: >"$folder/empty.row"
check 0 'y = x \+ x' show twice.row
check 0 'lanes .* same bits' verify "twice.row 3x40 x=i32"
check 2 '^trireme: wrong.row:2:13: ' show wrong.row
check 2 '^trireme: wrong.row:2:13: ' verify "wrong.row 3x40"
check 2 'empty.row: the file is empty' show empty.row
check 2 'nowhere.row: No such file' emit nowhere.row --target ptx -o x
check 2 'No such file or directory' emit rms_norm --target ptx -o no/such/folder/x.ptx

# A schedule of one's own: taken as it is said, or refused.
check 0 '^config: simd lanes=8 unroll=4$' show rms_norm --after lower --target x86 --config 'simd lanes=8 unroll=4'
check 0 '^config: threads lanes=32 groups=2 columns=512 stripes=1 reload$' show rms_norm --after place --target ptx --cols 512 \
  --config 'threads lanes=32 groups=2 columns=512 stripes=1 streaming'
check 0 'global streaming' show rms_norm --after stream --target ptx --cols 512 --config 'threads lanes=32 groups=2 columns=512 stripes=1 streaming'
check 0 ', avx512: simd lanes=16 unroll=2$' emit rms_norm --target x86 --arch avx512 --config 'simd lanes=16 unroll=2' -o a.bin
check 2 "^trireme: config: .*'lains=8'" show rms_norm --after lower --target x86 --config 'simd lains=8'
check 2 '^trireme: .*config' show rms_norm --after lower --target ptx --config 'simd lanes=8 unroll=4'
check 2 '\-\-absent and \-\-config' emit swiglu --target wasm --abi kernel --config 'simd lanes=4' -o b.wasm

# Sums into divided, wrapped and scalar results are kernels like any other.
for target in x86 wasm ptx; do
  check 0 'bytes of workspace$' emit group_norm --backward --target $target --set groups=2 --set pixels=64 -o a.bin
  check 0 'bytes of workspace$' emit dynamic_tanh --backward --target $target -o a.bin
done

# What is emitted has its head; outside judges look at it where they are installed.
check 0 '^entry at byte [1-9][0-9]*: columns' emit rms_norm --backward --target x86 --arch avx512 --cols 300 -o a.bin
check 0 '^exports columns' emit rms_norm --backward --target wasm --type x=f64 -o a.wasm
[[ $(head -c 4 "$folder/a.wasm" | tr '\0' 0) == 0asm ]] || fail "a.wasm does not begin as a module"
if command -v wasm-validate >/dev/null; then
  wasm-validate --enable-all "$folder/a.wasm" || fail "wasm-validate refuses a.wasm"
fi
check 0 'kernel ABI 1.1' emit swiglu --target wasm --abi kernel -o b.wasm
check 2 "the kernel ABI has no 'softmax'; it has rms_norm, swiglu, geglu" emit softmax --target wasm --abi kernel -o b.wasm
check 2 'both directions' emit swiglu --backward --target wasm --abi kernel -o b.wasm
check 2 'for --target wasm' emit swiglu --target ptx --abi kernel -o b.wasm

# Modules that nobody trusts, where wasmtime's library is found.
if [[ $("$trireme" run --module "$folder/b.wasm" 2>&1) != *"wasmtime's library is missing"* ]]; then
  python3 - "$folder" <<'END'
import struct, sys
for name, count in (("x", 12), ("gate", 12), ("odd", 11)):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % ((3, 4) if count == 12 else (1, 11))
    head += " " * (117 - len(head)) + "\n"
    with open(f"{sys.argv[1]}/{name}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{count}f", *range(count)))
END
  check 0 '^swiglu_f32 1.1.0: 3 rows of 4 columns' run --module b.wasm --in x=x.npy --in gate=gate.npy --out y=y.npy
  [[ $(head -c 6 "$folder/y.npy" | tail -c 5) == NUMPY ]] || fail "y.npy does not begin as a .npy file"
  check 2 'gate has 11 values; 3 rows of 4 columns want 12' run --module b.wasm --in x=x.npy --in gate=odd.npy --out y=y.npy
  check 2 "no result 'z'; there are: y" run --module b.wasm --in x=x.npy --in gate=gate.npy --out z=z.npy
  check 2 '\-\-set eps=1: swiglu_f32 has the constant beta alone' run --module b.wasm --in x=x.npy --in gate=gate.npy --set eps=1
  check 2 'expected NAME=FILE' run --module b.wasm --in x.npy
  check 2 'known are rmsnorm_f32, swiglu_f32, geglu_f32' run --module b.wasm --as gelu --in x=x.npy
  check 2 'a.wasm: the module exports no function kernel_init' run --module a.wasm --in x=x.npy
  check 2 'wrong.row: not a valid WebAssembly module' run --module wrong.row --in x=x.npy
  # Fault 35: an old module would read none of the arrays that version 1.1 has, and say that all is well.
  python3 - "$folder" <<'END'
import sys
# A kernel of version 1.0 that does nothing: it calls itself swiglu_f32, and every entry returns 0.
def number(value):
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + number(value >> 7)
def section(id, *parts):
    content = number(len(parts)) + b"".join(parts)
    return bytes([id]) + number(len(content)) + content
def body(code):
    return number(len(code) + 2) + b"\0" + code + b"\x0b"
def store(value, offset):
    return b"\x20\0\x41" + number(value) + b"\x36\2" + number(offset)
zero = body(b"\x41\0")
info = body(store(16, 0) + store(10, 4) + store(1, 8) + store(1 << 16, 12) + b"\x41\0")
names = ["kernel_init", "kernel_forward", "kernel_backward", "kernel_info", "kernel_cleanup"]
export = lambda name, kind, index: number(len(name)) + name.encode() + bytes([kind, index])
open(sys.argv[1] + "/old.wasm", "wb").write(
    b"\0asm\1\0\0\0"
    + section(1, b"\x60\2\x7f\x7f\1\x7f", b"\x60\1\x7f\1\x7f", b"\x60\0\1\x7f")
    + section(3, b"\0", b"\1", b"\1", b"\1", b"\2")
    + section(5, b"\0\1")
    + section(7, export("memory", 2, 0), *(export(name, 0, k) for k, name in enumerate(names)))
    + section(10, zero, zero, zero, info, zero)
    + section(11, b"\0\x41\x10\x0b\x0aswiglu_f32"))
END
  check 0 '^swiglu_f32 1.0.0: 3 rows' run --module old.wasm --in x=x.npy --in gate=gate.npy --out y=y.npy
  check 0 '^swiglu_f32 1.0.0 backward' run --module old.wasm --backward --in dy=x.npy --in gate=gate.npy --out dx=y.npy
  check 2 'regions in params need version 1.1' \
    run --module old.wasm --backward --in dy=x.npy --in gate=gate.npy --in x=x.npy --out dx=y.npy --out dgate=z.npy
fi
# Fault 35: nor is an option passed over that means nothing beside the others.
for option in '--type x=f32' '--axes 2' '--target cpu' '--threads 2'; do
  check 2 'module excludes --' run --module b.wasm --in x=x.npy $option
done
for option in '--as gelu' '--library x.so' '--memory 5' '--seconds 3'; do
  check 2 'requires --module' run rms_norm --in x=x.npy $option
done
check 0 '^// args\[0\]: ' emit rms_norm --target ptx --type x=bf16 --arch sm_90 -o -
check 0 '^\.target sm_90' emit rms_norm --target ptx --type x=bf16 --arch sm_90 -o -

# A header that C compilers accept without a word; x86 code in one runs.
for target in ptx x86 wasm; do
  check 0 'rms_norm.h: ' emit rms_norm --target $target --cols 1024 --c-header -o rms_norm.h
  printf '#include "rms_norm.h"\nint main(void) { return RMS_NORM_COLUMNS + sizeof rms_norm_%s == 0; }\n' $target >"$folder/use.c"
  ${CC:-cc} -std=c99 -pedantic -Wall -Wextra -Werror -o "$folder/use" "$folder/use.c" && "$folder/use" ||
    fail "the C header for $target"
done
check 0 'rms_norm_backward.h: ' emit rms_norm --backward --target x86 --cols 96 --rows 40 --c-header -o rms_norm_backward.h
if "$trireme" doctor | grep -qE '^cpu:avx2 +ready'; then
  ${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -I"$folder" x86_header_test.c -o "$folder/use" -lm && [[ $("$folder/use") == right ]] ||
    fail "code from a C header: $("$folder/use")"
fi
check 2 'does not go with --abi kernel' emit rms_norm --target wasm --abi kernel --c-header -o b.h

check 0 '^  .* of the copy; largest error .* of its bound' bench "rms_norm 64x256" --seconds 0.01 --device lanes --threads 1
check 0 '"share_of_copy": [0-9.]+' bench "rms_norm 64x256" --seconds 0.01 --device lanes --json
check 0 '"command": "trireme bench ' bench "rms_norm 64x256" --seconds 0.01 --device lanes --json
check 0 '^rms_norm 8x64,lanes,1,.*,"trireme bench ""rms_norm 8x64"" --device lanes --threads 1' \
  bench "rms_norm 8x64" --seconds 0.01 --device lanes --threads 1 --csv
check 0 '^picture.svg: [0-9]+ points' bench "rms_norm 8x64" --seconds 0.01 --svg picture.svg
python3 -c 'import sys, xml.dom.minidom as xml; xml.parse(sys.argv[1])' "$folder/picture.svg" || fail "picture.svg is no XML"
check 2 'bench: give a problem line' bench
check 2 'excludes' bench "rms_norm 8x64" --csv --json
check 2 'no/such/x.svg' bench "rms_norm 8x64" --seconds 0.01 --device lanes --svg no/such/x.svg
check 0 '^lanes +ready +interpreted; self-test passed' doctor
check 0 '^platform:  Linux ' doctor
check 0 "^plans for 'cpu' run on " doctor
# Settings that mean nothing (fault 50): every verb says so, doctor among everything else.
for verb in list 'verify|rms_norm 3x7' 'bench|rms_norm 3x7' cache; do
  IFS='|' read -ra words <<<"$verb"
  TRIREME_THREADS=many check 2 "^trireme: TRIREME_THREADS is a number from 1 to 4096, not 'many'$" "${words[@]}"
  TRIREME_CACHE=none check 2 "^trireme: TRIREME_CACHE is a folder \(with a slash: ./here\), on or off, not 'none'$" "${words[@]}"
done
TRIREME_THREADS=many check 1 "^environment +wrong +TRIREME_THREADS is a number from 1 to 4096, not 'many'$" doctor
TRIREME_THREADS=many check 1 "^cache +" doctor
TRIREME_VERBSE=1 check 0 '^environment +unknown +TRIREME_VERBSE=1$' doctor
TRIREME_HIDE=avx512 check 0 '^cpu:avx512 +missing +TRIREME_HIDE takes away AVX-512$' doctor
TRIREME_HIDE=avx2 check 0 "^plans for 'cpu' run on reference$" doctor
TRIREME_HIDE=avx2 check 0 '^ +no vector extensions that kernels use$' doctor
check 2 "^trireme: \-\-threads: expected a whole number from 1 to 4096, not '4097'$" verify "rms_norm 3x7" --threads 4097
TRIREME_VERBOSE=0 check 0 '^environment +TRIREME_VERBOSE=0$' doctor

# The cache, in a folder of its own; then where there cannot be one.
export TRIREME_CACHE=$folder/cache
check 0 "^$folder/cache: 0 entries, 0 B$" cache
check 0 "^cache +ready +$folder/cache$" doctor
: >"$folder/cache/00112233445566778899aabbccddeeff.entry"
check 0 '^00112233445566778899aabbccddeeff .* broken: empty$' cache list
check 1 '^00112233445566778899aabbccddeeff.entry  broken: empty; ' cache verify
check 0 '1 entry removed$' cache clear
check 0 '0 entries, 0 B, all whole$' cache verify
check 2 'WHAT' cache sweep
TRIREME_CACHE=off check 0 '^off: TRIREME_CACHE=off$' cache
TRIREME_CACHE=OFF check 0 '^off: TRIREME_CACHE=OFF$' cache
HOME=$folder TRIREME_CACHE='~/x' check 0 "^$folder/x: 0 entries" cache
[[ -e $folder/OFF || -e "$folder/~" ]] && fail "a setting became a folder"
TRIREME_CACHE=off check 1 '^off: TRIREME_CACHE=off$' cache verify
TRIREME_CACHE=off check 0 '^cache +off +TRIREME_CACHE=off$' doctor
truncate --size=1T "$folder/cache/00112233445566778899aabbccddeeff.entry"  # of zeros that take no room (fault 41)
check 0 '^00112233445566778899aabbccddeeff .* broken: larger than any entry$' cache list
check 1 '1 broken' cache verify
check 0 '1 entry removed$' cache clear
ln -s cache "$folder/link"
TRIREME_CACHE=$folder/link check 0 '^off: .*/link is a symbolic link' cache list

# Schedules: searched, remembered, listed; where nothing can be remembered the search says why.
if "$trireme" doctor | grep -qE '^cpu:avx2 +ready'; then
  TRIREME_CACHE=$folder/tuned check 0 '^remembered, for plans of this problem on this device: simd ' \
    tune "rms_norm 8x600" --seconds 0.001
  TRIREME_CACHE=$folder/tuned check 0 ' config rms_norm 600 columns, cpu:' cache list
  # A full disk (fault 42): a limit on file sizes that sends no signal comes closest.
  (trap '' XFSZ; ulimit -f 0; failed=0
   TRIREME_CACHE=$folder/tuned check 2 "^trireme: it is not remembered: $folder/tuned: File too large$" \
     tune "rms_norm 8x601" --seconds 0.001
   exit $failed) || failed=1
  TRIREME_CACHE=off check 2 'there is no cache to remember it in' tune "rms_norm 8x600" --seconds 0.001
fi
check 2 'the reference device has no configs to choose from' tune "rms_norm 8x600" --device reference
check 2 'the reference device has no configs to choose from' tune --table "$folder/table.txt" --device reference
if "$trireme" doctor | grep -qE '^cpu:avx2 +ready'; then
  # Before minutes are spent.
  check 2 "^trireme: $folder/none/table.txt: No such file or directory" \
    tune --table "$folder/none/table.txt" --device cpu:avx2 --minutes 1000
  check 0 '^[0-9]+ problems, [0-9]+ lines; ' tune --table "$folder/table.txt" --device cpu:avx2 --minutes 0.0001
  grep -q '^# Share of a copy' "$folder/table.txt" || fail "tune --table wrote no table"
fi
check 2 'unknown|no device|known' tune "rms_norm 8x600" --device nowhere

# Kernels of one's own; what needs NVRTC runs where it is, in the system or where setup put it.
printf '__global__ void k(float* x, int n) { x[n] = y; }\n' >"$folder/wrong.cu"
printf '#ifndef WIDTH\n#error no WIDTH\n#endif\ntemplate <int N> __global__ void k(float* x) { x[N] = WIDTH; }\n' >"$folder/k.cu"
check 0 '^nvrtc +(ready +NVRTC [0-9.]+, /|missing +NVRTC, which compiles)' doctor
check 2 '^trireme: nowhere.cu: No such file' jit nowhere.cu --name k --arch sm_90
check 2 'name' jit wrong.cu --arch sm_90
TRIREME_NVRTC=/no/such/libnvrtc.so check 2 'NVRTC, as TRIREME_NVRTC names it, cannot be used' jit k.cu --name k --arch sm_90
if output=$(cd "$folder" && "$trireme" jit k.cu --name 'k<2>' -D WIDTH=4 --arch sm_90 --ptx k.ptx --cubin k.cubin 2>&1); then
  grep -qE '^  registers +[0-9]+ a thread$' <<<"$output" || fail "jit prints no registers: $output"
  grep -qE '^  spills +0 bytes stored, 0 bytes loaded$' <<<"$output" || fail "jit prints no spills: $output"
  grep -qE '^  parameters +8 bytes$' <<<"$output" || fail "jit prints no parameters: $output"
  grep -q '^\.target sm_90' "$folder/k.ptx" || fail "k.ptx is no PTX"
  [[ $(head -c 4 "$folder/k.cubin" | tail -c 3) == ELF ]] || fail "k.cubin is no ELF file"
  check 0 "^k<2> for sm_90, NVRTC [0-9.]+ \\(from the cache\\)$" jit k.cu --name 'k<2>' -D WIDTH=4 --arch sm_90
  check 0 'cuda k<2>, sm_90, NVRTC' cache list
  check 2 'wrong.cu\(1\): error: identifier "y" is undefined' jit wrong.cu --name k --arch sm_90
  check 2 "wrong.cu does not compile|k.cu has no kernel 'other'" jit k.cu --name other -D WIDTH=4 --arch sm_90
elif ! grep -q 'pip install nvidia-cuda-nvrtc' <<<"$output"; then
  fail "jit: $output"
fi

# Kernels that are written out load vectors, as those of plans do.
check 0 'ld\.global\.v[24]' emit rms_norm --target ptx --type x=bf16 -o -
check 0 '^// arrays begin at multiples of 16 bytes' emit rms_norm --target ptx --type x=bf16 -o -

exit $failed
