#!/usr/bin/env bash
# Runs `go test` with the given arguments. Prints its line for each package, at the end the failed tests with their
# output, and the slowest tests, as many as SLOWEST says.
set -euo pipefail
cd "$(dirname "$0")/.."

go=${GO:-go}
gotestsum=("$go" tool -modfile=tools/go.mod gotestsum)
events=$(mktemp)
trap 'rm -f "$events"' EXIT

result=0
"${gotestsum[@]}" --format standard-quiet --hide-summary skipped --jsonfile "$events" \
	--raw-command -- "$go" test -json "$@" || result=$?
if [ -n "${SLOWEST:-}" ]; then
	printf '\nThe slowest tests (a test with subtests includes them):\n'
	"${gotestsum[@]}" tool slowest --num "$SLOWEST" --jsonfile "$events"
fi
exit "$result"
