#!/usr/bin/env bash
# Counts instructions under valgrind, and prints them beside the recorded numbers for the same compilers and
# architecture. Unlike times, they hardly change between runs, regardless of other work of the machine. MEASURES limits
# the counts; UPDATE=1 records the numbers.
set -euo pipefail
cd "$(dirname "$0")/../.."

known=lab/scripts/instructions.txt
out=$PWD/build/instructions
measures=${MEASURES:-task batch message file version refused}
runs=3      # of each count, of which the smallest counts: a run is longer if a thread had to wait
GO=${GO:-go}

command -v valgrind > /dev/null || { echo "valgrind is not installed; on Debian: apt install valgrind" >&2; exit 1; }
mkdir -p "$out"
temporary=$(mktemp -d -p /dev/shm) # in memory, where a system call does not wait for a disk
trap 'rm -rf "$temporary"' EXIT

# smallest COMMAND...: the smallest of the numbers that the runs of a command print.
smallest() {
	local _ least=
	for _ in $(seq "$runs"); do
		local number
		number=$("$@") || return 1
		[ "${number:-0}" -gt 0 ] || { echo "nothing was counted: $*" >&2; return 1; }
		if [ -z "$least" ] || [ "$number" -lt "$least" ]; then least=$number; fi
	done
	echo "$least"
}

# The engine's loop for one task, in C alone (cabi/ctest/instructions_test.c, built like the program).
hot_loop() {
	valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=hot_loop \
		"$out/test/instructions_test" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

task() {
	local tasks=6400 # number of tasks in the test
	make -s -C internal/doca/internal/cabi/ctest OUT="$out" CFLAGS='-std=gnu11 -O2 -g' \
		"$out/test/instructions_test" > /dev/null
	runs=1
	local all
	all=$(smallest hot_loop) || return 1
	echo $((all / tasks))
}

# whole CODE COMMAND...: all instructions of a process that ends with this exit code, but for those of Go's scheduler,
# which has more to do the longer a system call takes. One CPU for Go, so that no thread spins while it waits; no
# signals between its threads; no search for the limits of a container, which differs from machine to machine; no
# garbage collection, which starts at different moments; and no environment.
whole() {
	local want=$1 code=0
	shift
	env -i PATH="$PATH" HOME=/nonexistent TMPDIR="$temporary" \
		GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1,containermaxprocs=0,cpu.rdtscp=off GOGC=off \
		valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file="$temporary/counts" \
		--log-file="$temporary/log" \
		"$@" > "$temporary/output" 2>&1 || code=$?
	if [ "$code" -ne "$want" ]; then
		echo "exit code $code instead of $want: $*" >&2
		cat "$temporary/output" >&2
		return 1
	fi
	awk '
		/^fl=/ { scheduler = /\/src\/runtime\/(proc|lock_[a-z]*|mgclimit|time|sys_linux_[a-z0-9]*)\.(go|s)$/ }
		/^[0-9]/ && !scheduler { count += $2 }
		END { printf "%d\n", count }
	' "$temporary/counts"
}

# benchmark PACKAGE NAME FEW MANY: one operation of a benchmark in Go: the difference of two runs of it.
benchmark() {
	local few many
	[ -x "$out/${1##*/}.test" ] || "$GO" test -c -o "$out/${1##*/}.test" "$1"
	few=$(smallest operations "${1##*/}" "$2" "$3") || return 1
	many=$(smallest operations "${1##*/}" "$2" "$4") || return 1
	echo $(((many - few) / ($4 - $3)))
}

operations() {
	whole 0 "$out/$1.test" -test.run '^$' -test.bench "$2" -test.benchtime "$3x"
}

# start CODE ARGUMENT...: the whole program, which ends at once.
start() {
	smallest whole "$1" "$out/dma-copy" "${@:2}"
}

count() {
	case $1 in
		task) task ;;
		batch) benchmark ./internal/dmaxfer/native '^BenchmarkDMATask$/^depth=16$' 2000 10000 ;;
		message) benchmark ./internal/negotiate/native '^BenchmarkFile$' 200 2200 ;;
		file) benchmark ./internal/dmaxfer/disk '^BenchmarkCreate$/^put$' 500 4500 ;;
		version) start 0 version --driver soft ;;
		refused) start 3 --no-such-flag ;;
		*) echo "unknown measure $1" >&2; return 1 ;;
	esac
}

rm -f "$out"/*.test
"$GO" build -o "$out/dma-copy" ./cmd/dma-copy
by="$(uname -m) gcc-$("${CC:-gcc}" -dumpversion | cut -d. -f1) $("$GO" env GOVERSION | cut -d. -f1,2)"
for measure in $measures; do
	now=$(count "$measure") || exit 1
	before=$(sed -n "s/^$by $measure //p" "$known" 2> /dev/null || true)
	if [ -n "${UPDATE:-}" ]; then
		kept=$(grep -v "^$by $measure " "$known" 2> /dev/null || true)
		printf '%s\n' "$kept" "$by $measure $now" | sed '/^$/d' | sort > "$known"
	fi
	echo "$measure: $now instructions, ${before:-none} recorded"
done
