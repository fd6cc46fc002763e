#!/usr/bin/env bash
# Makes the packages of the last commit twice, in two directories, the second time without anything that Go has cached
# of earlier builds, and compares them. Takes VERSION from the environment.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# safe.directory: the checkout may belong to another user, whose history git would not read otherwise.
in_checkout() {
	git -c safe.directory='*' "$@"
}

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(in_checkout log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

# build DIRECTORY: the checksums of the packages that are made there, from the files of the last commit.
build() {
	mkdir -p "$1"
	in_checkout archive HEAD | tar -x -C "$1"
	make -s -C "$1" packages VERSION="$VERSION" > "$1.log" 2>&1 || { cat "$1.log" >&2; return 1; }
	cat "$1/build/packages/SHA256SUMS"
}

first=$(build "$work/one")
export GOCACHE=$work/cache
second=$(build "$work/a/second/directory")
if [ "$first" != "$second" ]; then
	diff <(echo "$first") <(echo "$second") >&2 || true
	echo "reproducible: the packages differ" >&2
	exit 1
fi
echo "$first"
echo "reproducible: both builds are the same"
