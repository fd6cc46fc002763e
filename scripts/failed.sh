#!/usr/bin/env bash
# failed.sh LOG: prints the tests that failed in the output of a make target, each with the first and the last lines of
# its output, and their names at the end. Without such a test it prints the last lines of the output.
set -euo pipefail

log=$1

# Go tests are listed by gotestsum between these two lines, and each test of the C with its name.
awk -v first=20 -v last=40 '
	function end_test(   i) {
		if (count > first + last)
			printf "    ... %d lines left out\n", count - first - last
		for (i = (count - last > first ? count - last : first) + 1; i <= count; i++)
			print line[i]
		delete line
		count = 0
	}
	/^=== FAIL: / { end_test(); print; inside = 1; names[++failed] = $0; next }
	/^DONE [0-9]+ tests/ { end_test(); inside = 0 }
	inside { line[++count] = $0; if (count <= first) print }
	END {
		end_test()
		if (failed) print ""
		for (i = 1; i <= failed; i++) print names[i]
		exit !failed
	}' "$log" || tail -n 100 "$log"
