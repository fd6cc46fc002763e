#!/usr/bin/env bash
# The development kit with this program: `make install-sdk` installs what `make sdk` has built, and dma-copy loads it as
# if it were DOCA: both sides through it, and each side through it against one that has the software device built in,
# files both ways.
#
#   test-sdk.sh SDKDIR PROGRAM
set -euo pipefail

built=${1:?usage: test-sdk.sh SDKDIR PROGRAM}
program=${2:?usage: test-sdk.sh SDKDIR PROGRAM}

fail() {
	echo "test-sdk: $*" >&2
	tail -n 5 "$work"/*.log >&2
	exit 1
}

# $1: kit or soft, then the program's arguments.
side() {
	local driver=$1
	shift
	if [ "$driver" = kit ]; then
		DMA_COPY_DRIVER=doca LD_LIBRARY_PATH=$kit/lib timeout 120 "$program" "$@"
	else
		DMA_COPY_DRIVER=soft timeout 120 "$program" "$@"
	fi
}

# $1 and $2: the drivers of host and DPU; $3: who has the file.
copy() {
	local name="host $1, DPU $2, from the $3"
	rm -rf "$work/host" "$work/dpu"
	mkdir "$work/host" "$work/dpu"
	cp "$work/original" "$work/$3/file"
	side "$1" -p b1:00.1 -f "$work/host/file" > "$work/host.log" 2>&1 &
	local host=$!
	side "$2" -p 03:00.1 -r b1:00.1 -f "$work/dpu/file" > "$work/dpu.log" 2>&1 || fail "$name: the DPU failed"
	wait "$host" || fail "$name: the host failed"
	cmp "$work/original" "$work/host/file" || fail "$name: the host's file differs"
	cmp "$work/original" "$work/dpu/file" || fail "$name: the DPU's file differs"
	used "$1" host
	used "$2" dpu
}

# $1: kit or soft, $2: whose log says so.
used() {
	local path="path  soft"
	[ "$1" = soft ] || path="path  doca $version"
	grep -qF "$path" "$work/$2.log" || fail "the $2 did not use the $1"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A relative PREFIX is relative to the directory of the caller of make, not to softdoca.
make -s install-sdk SDKDIR="$built" PREFIX="$(realpath --relative-to=. "$work")/kit"
kit=$work/kit
diff -r "$built/include" "$kit/include"
diff -r "$built/lib" "$kit/lib"

export DMA_COPY_SOFT_DIR=$work/soft DMA_COPY_VERBOSE=true # the summaries name the driver on a line of its own
mkdir -m 700 "$DMA_COPY_SOFT_DIR"
head -c 5000001 /dev/urandom > "$work/original"
version=$(PKG_CONFIG_PATH=$kit/lib/pkgconfig pkg-config --modversion doca-common)

side kit devices -l 2> "$work/devices.log" | grep -q '^  port rate  *200 Gb/s$' || fail "no rate through the loader"
for from in host dpu; do
	copy kit kit "$from"
	copy kit soft "$from"
	copy soft kit "$from"
done
echo "test-sdk: ok"
