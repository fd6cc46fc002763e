#!/usr/bin/env bash
# Makes the packages of the last commit twice, in two directories and without anything that the other build has cached,
# and compares them. Takes VERSION from the environment.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
# The cache of modules is shared; Go makes it read-only, but it is not below this directory.
trap 'rm -rf "$work"' EXIT

# build DIRECTORY: the checksums of the packages that are made in a clone there.
build() {
	git -c safe.directory='*' clone -q --no-local . "$1"
	GOCACHE=$1.cache make -s -C "$1" packages VERSION="$VERSION" > "$1.log" 2>&1 || { cat "$1.log" >&2; return 1; }
	cat "$1/build/packages/SHA256SUMS"
	rm -rf "$1.cache"
}

first=$(build "$work/one")
second=$(build "$work/a/second/directory")
if [ "$first" != "$second" ]; then
	diff <(echo "$first") <(echo "$second") >&2 || true
	echo "reproducible: the packages differ" >&2
	exit 1
fi
echo "$first"
echo "reproducible: both builds are the same"
