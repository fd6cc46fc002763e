#!/usr/bin/env bash
# Tests the arm64 build on an x86-64 machine, under qemu's user emulation: the Go tests of device, channel and protocol,
# the C tests, also of the binding of UCX, and copies between the two architectures, as between a host and its DPU.
# Needs bin/dma-copy and bin/dma-copy-arm64, which `make test-arm64` builds. Takes GO, ARM64_CC and ARM64_ROOT from the
# environment.
#
# The end of the output lists what emulation cannot test. qemu does not have process_vm_readv and process_vm_writev, so
# an emulated process accesses memory that is not shared only through its file; the C tests that use private memory of
# another process need a real arm64 machine.
set -euo pipefail
cd "$(dirname "$0")/.."

go=${GO:-go}
arm64_cc=${ARM64_CC:-aarch64-linux-gnu-gcc}
arm64_ar=${ARM64_AR:-aarch64-linux-gnu-ar}
arm64_root=${ARM64_ROOT:-/usr/aarch64-linux-gnu}
emulator=(qemu-aarch64-static -L "$arm64_root")
native=(bin/dma-copy)
emulated=("${emulator[@]}" bin/dma-copy-arm64)
go_packages=(./internal/doca/... ./internal/comch/... ./internal/negotiate/...)
# These do not depend on the architecture, and take long under emulation.
any_architecture='^Test(EveryCallRefused|Kit|NativeVectorsWithABitChanged|Native.*InEveryState)'
c_tests=(softdoca/test internal/doca/internal/cabi/ctest)
not_emulated=(remote_copy_test remote_access_test remote_thread_test)

work=$(mktemp -d "${TMPDIR:-/tmp}/arm64.XXXXXX")
cleanup() {
	local job
	for job in $(jobs -p); do
		kill "$job" 2> /dev/null || true
	done
	rm -rf "$work"
}
trap cleanup EXIT

require() {
	command -v "$1" > /dev/null || { echo "$1 is missing: apt-get install $2" >&2; exit 1; }
}

result() {
	printf '%-4s  %s\n' "$1" "$2"
}

test_go() {
	CGO_ENABLED=1 GOARCH=arm64 CC=$arm64_cc "$go" test -count=1 -exec "${emulator[*]}" -skip "$any_architecture" \
		"${go_packages[@]}" | grep -v 'no test files'
}

is_left_out() {
	local name
	for name in "${not_emulated[@]}"; do
		[ "$name" != "$1" ] || return 0
	done
	return 1
}

# run_c DIRECTORY CC: builds the tests of a directory with their Makefile, and runs them in the emulator.
run_c() {
	local source name names=()
	for source in "$1"/*_test.c; do
		name=$(basename "$source" .c)
		is_left_out "$name" || names+=("$name")
	done
	make -s -j"$(nproc)" -C "$1" OUT="$work/$1" CC="$2" AR="$arm64_ar" "${names[@]/#/$work/$1/test/}" || return
	for name in "${names[@]}"; do
		timeout 120 "${emulator[@]}" "$work/$1/test/$name" > "$work/log" 2>&1 ||
			{ cat "$work/log" >&2; result FAIL "$name"; return 1; }
		result ok "$name: $(grep -c '^ok ' "$work/log") tests"
	done
}

test_c() {
	local directory
	for directory in "${c_tests[@]}"; do
		run_c "$directory" "$arm64_cc" || return
	done
}

# binds_ucx PROGRAM...: whether the program was built with the binding of UCX.
binds_ucx() {
	local report
	report=$("$@" doctor --driver ucx 2>&1 || true) # it fails where UCX or keys are missing
	[[ $report != *'this dma-copy was built without it'* ]]
}

# Where the program for x86-64 binds UCX, that for arm64 does, too; then the C of the binding is tested.
test_ucx() {
	if ! binds_ucx "${native[@]}"; then
		result skip "the binding of UCX: its headers are missing (libucx-dev)"
		return
	fi
	binds_ucx "${emulated[@]}" || { result FAIL "bin/dma-copy-arm64 was built without the binding of UCX"; return 1; }
	run_c internal/ucx/ctest "$arm64_cc -idirafter $(pkg-config --variable=includedir ucx)"
}

# copy WHAT HOST-PROGRAM DPU-PROGRAM SIZE DIRECTION. The programs are names of arrays.
copy() {
	local what=$1 size=$4 direction=$5 source target
	local -n host=$2 dpu=$3
	rm -rf "$work/copy"
	mkdir -p "$work/copy/host" "$work/copy/dpu"
	mkdir -m 700 "$work/copy/run"
	source=$work/copy/host/file target=$work/copy/dpu/file
	[ "$direction" = to-dpu ] || { source=$work/copy/dpu/file target=$work/copy/host/file; }
	head -c "$size" /dev/urandom > "$source"
	export DMA_COPY_SOFT_DIR=$work/copy/run
	timeout 60 "${host[@]}" --driver soft -p b1:00.1 -f "$work/copy/host/file" > "$work/host.log" 2>&1 &
	local other=$! dpu_code=0 host_code=0
	timeout 60 "${dpu[@]}" --driver soft -p 03:00.1 -r b1:00.1 -f "$work/copy/dpu/file" > "$work/dpu.log" 2>&1 ||
		dpu_code=$?
	wait "$other" || host_code=$?
	if [ "$host_code$dpu_code" != 00 ] || ! cmp "$source" "$target"; then
		cat "$work/host.log" "$work/dpu.log" >&2
		result FAIL "$what: host exits $host_code, DPU $dpu_code"
		return 1
	fi
	result ok "$what"
}

test_copies() {
	local direction size
	for direction in to-dpu to-host; do
		for size in 1 5000001; do
			copy "x86-64 host, arm64 DPU, $size bytes $direction" native emulated "$size" "$direction" || return
			copy "arm64 host, x86-64 DPU, $size bytes $direction" emulated native "$size" "$direction" || return
		done
		copy "arm64 host, arm64 DPU, 5000001 bytes $direction" emulated emulated 5000001 "$direction" || return
	done
}

require qemu-aarch64-static qemu-user-static
require "$arm64_cc" "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
for binary in bin/dma-copy bin/dma-copy-arm64; do
	[ -x "$binary" ] || { echo "$binary is missing: make build build-arm64" >&2; exit 1; }
done

for part in go c ucx copies; do
	printf '== %s\n' "$part"
	started=$SECONDS
	"test_$part" || { result FAIL "$part"; exit 1; }
	printf -- '-- %s: %d s\n' "$part" "$((SECONDS - started))"
done
echo "not run under emulation: ${not_emulated[*]} (qemu has no process_vm_readv), DOCA itself, performance"
