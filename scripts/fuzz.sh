#!/usr/bin/env bash
# Runs every fuzz target of the module for a given time, or number of inputs, one after the other. The test program of a
# package is built once for all of its targets, because `go test -fuzz` accepts only one of them. With a short time Go
# sometimes reports its own deadline as a failure.
set -euo pipefail

duration=${1:?usage: fuzz.sh DURATION, for instance 10s or 3000x}
go=${GO:-go}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints the fuzz targets of the package in a directory.
list_targets() {
	local tests=("$1"/*_test.go)
	[ ! -e "${tests[0]}" ] || sed -nE 's/^func (Fuzz[[:alnum:]_]*)\(.*/\1/p' "${tests[@]}"
}

# Inputs are kept, and failures reported, where `go test` does it.
fuzz() {
	local package=$1 directory=$2 name=$3
	echo "== $name of $package, $duration"
	(cd "$directory" && "$work/fuzz.test" -test.paniconexit0 -test.run '^$' -test.fuzz "^$name\$" \
		-test.fuzztime "$duration" -test.fuzzcachedir "$cache/$package" < /dev/null)
}

cache=$("$go" env GOCACHE)/fuzz
found=
while read -r package directory; do
	targets=$(list_targets "$directory")
	[ -n "$targets" ] || continue
	found=yes
	"$go" test -c -fuzz=Fuzz -o "$work/fuzz.test" "$package"
	for name in $targets; do
		fuzz "$package" "$directory" "$name"
	done
done < <("$go" list -f '{{.ImportPath}} {{.Dir}}' ./...)
[ -n "$found" ] || { echo "no fuzz target found" >&2; exit 1; }
