#!/usr/bin/env bash
# The examples, built by pkg-config against the kit and run against each other, as host and DPU.
#
#   examples.sh KIT OUT shared|static|meson
#
# meson: linked against the shared libraries like shared, but built by meson.build instead of the Makefile.
set -euo pipefail

kit=${1:?usage: examples.sh KIT OUT shared|static}
out=$2/$3
how=$3
examples=$(cd "$(dirname "$0")/../../examples" && pwd)

fail() {
	echo "examples ($how): $*" >&2
	exit 1
}

build() {
	local static=()
	if [ "$how" = meson ]; then
		rm -rf "$out"
		{
			CC=${CC:-gcc} meson setup "$out" "$examples" --werror --pkg-config-path "$kit/lib/pkgconfig" &&
				ninja -C "$out"
		} > "$work/build" || fail "meson does not build them: $(cat "$work/build")"
		return
	fi
	[ "$how" = shared ] || static=(STATIC=1)
	make -s -C "$examples" OUT="$out" CC="${CC:-gcc}" PKG_CONFIG_PATH="$kit/lib/pkgconfig" \
		CFLAGS='-O1 -g -Wall -Wextra -Werror' "${static[@]}"
}

# A static program must not find the shared libraries, so that it proves what it is meant to.
run() {
	local program=$1
	shift
	if [ "$how" != static ]; then
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

# Runs a program on both sides, with $work/dpu and $work/host for what they print. The host is started again as long as
# the DPU's server is not there: a client that comes too early fails. The result is the DPU's, and the host's if that
# ended later.
#
#   both PROGRAM HOST-TEXT DPU-TEXT [FLAG...]
both() {
	local program=$1 host_text=$2 dpu_text=$3 server served=0
	shift 3
	run "$program" --pci-addr 03:00.0 --rep-pci b1:00.0 --text "$dpu_text" "$@" > "$work/dpu" 2> "$work/err" &
	server=$!
	until run "$program" --pci-addr b1:00.0 --text "$host_text" "$@" > "$work/host" 2>> "$work/err"; do
		kill -0 "$server" 2> /dev/null || { served=1; break; }
	done
	wait "$server" && [ "$served" -eq 0 ]
}

# $1: side; then the lines that it must have printed, in any order.
expect_lines() {
	local side=$1
	shift
	diff <(printf '%s\n' "$@" | sort) <(sort "$work/$side") ||
		fail "the $side printed something else: $(cat "$work/err")"
}

ping() {
	both comch_ping 'from the host' 'from the DPU' || fail "comch_ping failed: $(cat "$work/err")"
	expect_lines dpu 'DPU got "ping from the host"' 'DPU got "pong from the DPU"'
	expect_lines host 'host got "ping from the DPU"' 'host got "pong from the host"'
}

# Both streams run at the same time, so both sides see a fault.
streams() {
	local count all
	for count in 0 1 500; do
		all="$count blocks, $((count * 65536)) bytes, all in order and whole"
		both comch_stream 'some words' 'other words' --count "$count" ||
			fail "the streams of $count blocks failed: $(cat "$work/dpu" "$work/host" "$work/err")"
		expect_lines dpu 'DPU got "some words"' "DPU got $all"
		expect_lines host 'host got "other words"' "host got $all"
	done
	DMA_COPY_SOFT_FAULTS=again=50 both comch_stream a b || fail "the streams did not survive full queues"
	! DMA_COPY_SOFT_FAULTS=fail=21:IO_FAILED both comch_stream a b ||
		fail "the stream lost a block and was called whole"
	grep -q ' blocks, .*, 0 of them out of order or damaged, and no end$' "$work/dpu" ||
		fail "a cut stream was called $(cat "$work/dpu")"
	! run comch_stream -n -1 2> /dev/null || fail "comch_stream took a negative count"
}

signal() {
	both sync_event_remote '' 'copied and signalled' || fail "sync_event_remote failed: $(cat "$work/err")"
	expect_lines host 'copied and signalled'
}

# The DPA answers in capital letters and in order, also when there are more pings than receives.
dpa_answers() {
	local count
	for count in 0 3 1000; do
		run msgq_ping -t 'a ping' -n "$count" > "$work/answers" 2> "$work/err" ||
			fail "msgq_ping of $count pings failed: $(cat "$work/err")"
		diff <(for ((i = 1; i <= count; i++)); do echo "the DPA answered $i: \"A PING\""; done) "$work/answers" ||
			fail "msgq_ping got other answers"
		[ ! -s "$work/err" ] || fail "msgq_ping complains: $(cat "$work/err")"
	done
	! run msgq_ping -t '28 bytes are one byte beyond' 2> /dev/null || fail "msgq_ping took a text that is too long"
}

dpa_copies() {
	[ "$(run dpa_dma_copy --text 'by the DPA' 2> "$work/err")" = 'by the DPA' ] ||
		fail "dpa_dma_copy lost the text: $(cat "$work/err")"
	[ "$(run dpa_dma_copy -p b1:00.1)" = 'Hello' ] || fail "dpa_dma_copy failed on the host"
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
signal
dpa_answers
dpa_copies
echo "examples ($how): ok"
