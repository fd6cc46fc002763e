#!/usr/bin/env bash
# Counts the instructions of the copy engine's loop for one task (ctest/instructions_test.c, built like the program) and
# compares the number with the recorded one for the same compiler and architecture. Unlike time, it is the same in every
# run. UPDATE=1 records the new number instead.
set -euo pipefail
cd "$(dirname "$0")/.."

tasks=6400        # number of tasks in the test
tolerance=3       # percent: another libc needs a few instructions more or less to copy the bytes of a task
known=scripts/instructions.txt
out=$PWD/build/instructions
program=$out/test/instructions_test

command -v valgrind > /dev/null || { echo "valgrind is not installed; on Debian: apt install valgrind" >&2; exit 1; }
make -s -C internal/doca/internal/softdev/ctest OUT="$out" CFLAGS='-std=gnu11 -O2 -g' "$program"
report=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=hot_loop "$program" 2>&1) ||
	{ echo "$report" >&2; exit 1; }
total=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' <<< "$report")
[ "${total:-0}" -gt 0 ] || { echo "callgrind did not count hot_loop:" >&2; echo "$report" >&2; exit 1; }
now=$((total / tasks))
by="$(uname -m) gcc-$("${CC:-gcc}" -dumpversion | cut -d. -f1)"

if [ -n "${UPDATE:-}" ]; then
	kept=$(grep -v "^$by " "$known" 2> /dev/null || true)
	printf '%s\n' "$kept" "$by $now" | sed '/^$/d' | sort > "$known"
	echo "$now instructions per task ($by): recorded in $known"
	exit
fi
before=$(sed -n "s/^$by //p" "$known" 2> /dev/null || true)
if [ -z "$before" ]; then
	echo "$now instructions per task; $known has no number for $by, UPDATE=1 records it"
elif [ $((now * 100)) -gt $((before * (100 + tolerance))) ]; then
	echo "$now instructions per task, $before before ($by): find out why, or record it with UPDATE=1" >&2
	exit 1
elif [ $((now * 100)) -lt $((before * (100 - tolerance))) ]; then
	echo "$now instructions per task, $before before ($by): better; record it with UPDATE=1"
else
	echo "$now instructions per task, $before before ($by)"
fi
