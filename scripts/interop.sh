#!/usr/bin/env bash
# Tests that this dma-copy and that of another release copy between each other: files, trees, the service and resumed
# copies, in both directions and with each release in both roles. Takes the other release as the path of its program or
# as a git revision, which it builds once, in build/interop. Without one it takes the release before this commit, and
# tests nothing if there is none. With --release-before it only prints the tag of that release, or nothing. Takes GO
# from the environment.
set -euo pipefail
cd "$(dirname "$0")/.."

go=${GO:-go}
previous=${1:-}

# safe.directory: the checkout may belong to another user, whose history git would not read otherwise.
in_checkout() {
	git -c safe.directory='*' "$@"
}

# release_before: the newest release that this commit follows, and is not itself.
release_before() {
	in_checkout describe --abbrev=0 --match 'v[0-9]*' --exclude '*-*' HEAD^ 2> /dev/null || true
}

# build_revision REVISION: builds the program of a revision unless it is there, and prints its path.
build_revision() {
	local commit dir
	commit=$(in_checkout rev-parse --verify --quiet "$1^{commit}") ||
		{ echo "$1 is neither a program nor a revision of this repository (fetch its tags)" >&2; return 1; }
	dir=$PWD/build/interop/$commit
	if [ ! -x "$dir/dma-copy" ]; then
		echo "building $1 ($commit)" >&2
		rm -rf "$dir"
		mkdir -p "$dir/source"
		in_checkout archive "$commit" | tar -x -C "$dir/source"
		flags="-X main.version=$1 -X github.com/dma-copy/dma-copy/internal/cli/root.version=$1"
		flags="$flags -X github.com/dma-copy/dma-copy/internal/release.version=$1" # one of them exists
		"$go" -C "$dir/source" build -buildvcs=false -trimpath -ldflags "$flags" -o "$dir/dma-copy" ./cmd/dma-copy >&2
		rm -rf "$dir/source"
	fi
	echo "$dir/dma-copy"
}

if [ "$previous" = --release-before ]; then
	release_before
	exit
fi
if [ -z "$previous" ]; then
	previous=$(release_before)
	[ -n "$previous" ] || { echo "there is no earlier release: nothing is tested; give PREVIOUS=REVISION"; exit; }
fi
if [ -f "$previous" ]; then
	program=$(realpath "$previous")
else
	program=$(build_revision "$previous")
fi
echo "this release with $previous ($("$program" version | head -n 1))"
"$go" test -count=1 -parallel 8 ./cmd/dma-copy/e2e -run '^TestInterop' -interop.previous="$program"
