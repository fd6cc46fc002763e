#!/usr/bin/env bash
# Counts the instructions that the copy engine's loop takes for one task (ctest/instructions_test.c, built as the program is) and
# compares them with what was counted before, by the same compiler on the same architecture. Other than seconds, the count is
# the same at every run. UPDATE=1 notes the new count instead.
set -euo pipefail
cd "$(dirname "$0")/.."

tasks=6400        # of the test
tolerance=3       # percent: another libc copies a task's bytes with a few instructions more or less
known=scripts/instructions.txt
out=$PWD/build/instructions
program=$out/test/instructions_test

command -v valgrind > /dev/null || { echo "valgrind is not installed; on Debian: apt install valgrind" >&2; exit 1; }
make -s -C internal/doca/internal/softdev/ctest OUT="$out" CFLAGS='-std=gnu11 -O2 -g' "$program"
said=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=hot_loop "$program" 2>&1) ||
	{ echo "$said" >&2; exit 1; }
total=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' <<< "$said")
[ "${total:-0}" -gt 0 ] || { echo "callgrind has not counted hot_loop:" >&2; echo "$said" >&2; exit 1; }
now=$((total / tasks))
by="$(uname -m) gcc-$("${CC:-gcc}" -dumpversion | cut -d. -f1)"

if [ -n "${UPDATE:-}" ]; then
	kept=$(grep -v "^$by " "$known" 2> /dev/null || true)
	printf '%s\n' "$kept" "$by $now" | sed '/^$/d' | sort > "$known"
	echo "$now instructions for a task ($by): noted in $known"
	exit
fi
before=$(sed -n "s/^$by //p" "$known" 2> /dev/null || true)
if [ -z "$before" ]; then
	echo "$now instructions for a task; nothing to compare with for $by in $known, UPDATE=1 notes it"
elif [ $((now * 100)) -gt $((before * (100 + tolerance))) ]; then
	echo "$now instructions for a task, $before before ($by): find out why, or note it with UPDATE=1" >&2
	exit 1
elif [ $((now * 100)) -lt $((before * (100 - tolerance))) ]; then
	echo "$now instructions for a task, $before before ($by): better; note it with UPDATE=1"
else
	echo "$now instructions for a task, $before before ($by)"
fi
