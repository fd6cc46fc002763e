#!/usr/bin/env bash
# Looks for known vulnerabilities in the code that the program calls, by default in all packages of the module. Exits
# with 0 if there are none, 3 if there are some, 75 if the database cannot be read, and another code if the scan fails.
# Takes GO and GOVULNDB, the address of the database (https or file), from the environment.
set -euo pipefail
cd "$(dirname "$0")/.."

go=${GO:-go}
database=${GOVULNDB:-https://vuln.go.dev}
[ $# -gt 0 ] || set -- ./...

readonly found=3 unreachable=75
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT

code=0
"$go" tool -modfile=tools/go.mod govulncheck -db "$database" "$@" 2> "$errors" || code=$?
cat "$errors" >&2
case $code in
0) ;;
"$found") echo "vuln: vulnerabilities found: update the modules or Go itself as listed above" >&2 ;;
*)
	# govulncheck exits with 1 for every other failure. These are the two that concern its database.
	if grep -qE '^(govulncheck: )?(creating client|fetching vulnerabilities): ' "$errors"; then
		echo "vuln: NOT CHECKED: the database $database cannot be read (set GOVULNDB to a mirror)" >&2
		exit "$unreachable"
	fi
	echo "vuln: the scan failed with exit code $code" >&2
	;;
esac
exit "$code"
