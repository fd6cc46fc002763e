#!/usr/bin/env bash
# Runs every fuzz target of the module for a given time, or number of inputs, one after the other, because
# `go test -fuzz` accepts only one. With a short time Go sometimes reports its own deadline as a failure.
set -euo pipefail

duration=${1:?usage: fuzz.sh DURATION, for instance 10s or 3000x}
go=${GO:-go}

# One line per target: package, name. `go test -list` prints the names first and then their package.
list_targets() {
	"$go" test -list '^Fuzz' ./... | awk '
		/^Fuzz/ {names[++n] = $1; next}
		$1 == "ok" {for (i = 1; i <= n; i++) print $2, names[i]; n = 0}'
}

targets=$(list_targets)
[ -n "$targets" ] || { echo "no fuzz target found" >&2; exit 1; }
while read -r package name; do
	echo "== $name of $package, $duration"
	"$go" test -run '^$' -fuzz "^$name\$" -fuzztime "$duration" "$package" < /dev/null
done <<< "$targets"
