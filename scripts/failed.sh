#!/usr/bin/env bash
# failed.sh LOG: prints the tests that failed in the output of a make target, each with the first and the last lines of
# its output, and their names at the end. Without such a test it prints the last lines of the output.
set -euo pipefail

log=$1

# gotestsum lists the Go tests that failed from "=== Failed" to "DONE", each with its output below its name. A C test
# has a line "== NAME" above its output, and one below it if it failed.
awk -v first=20 -v last=40 '
	function print_output(   i) {
		for (i = 1; i <= count; i++) {
			if (i == first + 1 && count > first + last) {
				printf "    ... %d lines left out\n", count - first - last
				i = count - last + 1
			}
			print line[i]
		}
		count = 0
	}
	/^=== Failed$/ { listed = 1; count = 0; next }
	listed && /^DONE [0-9]+ tests/ { print_output(); listed = 0; next }
	/^=== FAIL: / { print_output(); print; name[++failed] = $0; next }
	/^== / { count = 0 }
	listed || count > 0 || /^== / { line[++count] = $0 }
	END {
		if (listed) print_output()
		if (failed) print ""
		for (i = 1; i <= failed; i++) print name[i]
		exit !failed
	}' "$log" || tail -n 100 "$log"
