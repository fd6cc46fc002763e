#!/usr/bin/env bash
# The examples, built by pkg-config against the kit and run against each other, as host and DPU.
#
#   examples.sh KIT OUT shared|static
set -euo pipefail

kit=${1:?usage: examples.sh KIT OUT shared|static}
out=$2/$3
how=$3
root=$(cd "$(dirname "$0")/../.." && pwd)

fail() {
	echo "examples ($how): $*" >&2
	exit 1
}

build() {
	local static=()
	[ "$how" = shared ] || static=(STATIC=1)
	make -s -C "$root/examples/c" OUT="$out" CC="${CC:-gcc}" PKG_CONFIG_PATH="$kit/lib/pkgconfig" \
		CFLAGS='-O1 -g -Wall -Wextra -Werror' "${static[@]}"
}

# A static program must not find the shared libraries, so that it proves what it is meant to.
run() {
	local program=$1
	shift
	if [ "$how" = shared ]; then
		LD_LIBRARY_PATH=$kit/lib timeout 60 "$out/$program" "$@"
	else
		env -u LD_LIBRARY_PATH timeout 60 "$out/$program" "$@"
	fi
}

local_copy() {
	[ "$(run dma_local_copy --text 'some text')" = 'some text' ] || fail "dma_local_copy lost the text"
	printf '{"doca_program_flags": {"text": "from a file", /* as it is */ },}\n' > "$work/flags.json"
	[ "$(run dma_local_copy -j "$work/flags.json")" = 'from a file' ] || fail "dma_local_copy did not read the file"
	! run dma_local_copy --txt x 2> "$work/err" || fail "dma_local_copy took an unknown flag"
	grep -q 'unknown flag --txt' "$work/err" || fail "dma_local_copy did not name the unknown flag"
	! run dma_local_copy -p 00:00.0 2> "$work/err" || fail "dma_local_copy found a device that is not there"
	grep -q '\[DOCA\]\[ERR\]\[EXAMPLE:.* dma_local_copy failed: ' "$work/err" || fail "dma_local_copy did not log why"
}

# The exporter holds its memory until its input ends; its log line says that the descriptor is written.
export_and_import() {
	local ready
	coproc EXPORTER { run dma_export --descriptor "$work/descriptor" --text 'far away'; }
	local exporter=$EXPORTER_PID in=${EXPORTER[1]}
	read -r -t 60 ready <&"${EXPORTER[0]}" || fail "dma_export said nothing"
	[[ $ready == *'exported 9 bytes' ]] || fail "dma_export said $ready"
	[ "$(run dma_import --descriptor "$work/descriptor")" = 'far away' ] || fail "dma_import fetched something else"
	exec {in}>&-
	wait "$exporter" || fail "dma_export failed"
	! run dma_import --descriptor "$work/descriptor" 2> /dev/null || fail "dma_import read memory of a dead process"
}

# A client that comes too early fails, so it tries until the server is there.
ping() {
	run comch_ping --pci-addr 03:00.0 --rep-pci b1:00.0 > "$work/dpu" &
	local server=$!
	until run comch_ping --pci-addr b1:00.0 > "$work/host" 2> /dev/null; do
		kill -0 "$server" 2> /dev/null || fail "the server is gone"
	done
	wait "$server" || fail "the server failed"
	diff <(printf 'DPU got "%s"\n' 'ping host' 'pong DPU') <(sort "$work/dpu") || fail "the DPU got something else"
	diff <(printf 'host got "%s"\n' 'ping DPU' 'pong host') <(sort "$work/host") || fail "the host got something else"
}

# A sender that comes too early fails, too. The verdict is left in $work/verdict; the result is the receiver's.
stream() {
	run stream_receive -p 03:00.0 -r b1:00.0 > "$work/verdict" 2> "$work/err" &
	local receiver=$!
	until run stream_send -p b1:00.0 -n "$1" > /dev/null 2>&1; do
		kill -0 "$receiver" 2> /dev/null || break
	done
	wait "$receiver"
}

streams() {
	local count
	for count in 0 1 500; do
		stream "$count" || fail "the stream of $count blocks failed: $(cat "$work/verdict" "$work/err")"
		[ "$(cat "$work/verdict")" = "$count blocks, $((count * 65536)) bytes, all in order and whole" ] ||
			fail "the stream of $count blocks became $(cat "$work/verdict")"
	done
	DMA_COPY_SOFT_FAULTS=again=50 stream 100 || fail "the stream did not survive full queues"
	! DMA_COPY_SOFT_FAULTS=fail=21:IO_FAILED stream 100 || fail "the stream lost a block and was called whole"
	grep -q ' blocks, .*, 0 of them out of order or damaged, and no end$' "$work/verdict" ||
		fail "a cut stream was called $(cat "$work/verdict")"
	! run stream_send -n -1 2> /dev/null || fail "stream_send took a negative count"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DMA_COPY_SOFT_DIR=$work/soft
mkdir -m 700 "$DMA_COPY_SOFT_DIR"

build
local_copy
export_and_import
ping
streams
echo "examples ($how): ok"
