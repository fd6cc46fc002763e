#!/usr/bin/env bash
# Tests what scripts/failed.sh prints of the output of a target that failed.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect NAME WANT: compares with what failed.sh prints of the log on stdin.
expect() {
	local got
	cat > "$work/log"
	got=$(./failed.sh "$work/log")
	[ "$got" = "$2" ] && return
	printf 'failed-test: %s: want\n%s\ngot\n%s\n' "$1" "$2" "$got" >&2
	failures=$((failures + 1))
}

expect "tests of Go and C" "=== FAIL: a TestLong (0.00s)
$(seq 1 20)
    ... 40 lines left out
$(seq 61 100)
=== FAIL: b TestShort (0.10s)
    b_test.go:7: why

== build/sweep_test
sweep_test.c:9: why
=== FAIL: build/sweep_test

=== FAIL: a TestLong (0.00s)
=== FAIL: b TestShort (0.10s)
=== FAIL: build/sweep_test" << LOG
ok  	c	0.007s
FAIL	a	0.066s

=== Failed
=== FAIL: a TestLong (0.00s)
$(seq 1 100)
=== FAIL: b TestShort (0.10s)
    b_test.go:7: why

DONE 8 tests, 2 failures in 3.062s
== build/dma_test
ok a_copy
== build/sweep_test
sweep_test.c:9: why
=== FAIL: build/sweep_test
LOG

expect "no test" "$(seq 21 120)" < <(seq 1 120)

[ "$failures" -eq 0 ]
