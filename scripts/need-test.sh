#!/usr/bin/env bash
# Tests that `make demo` and `make test` say at once, in one line, what is missing on a fresh machine.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
unset CC GO MAKEFLAGS MAKELEVEL

# tools NAME...: a directory with the commands of a fresh machine, and these.
tools() {
	local command path
	rm -rf "${work:?}/bin"
	mkdir "$work/bin"
	for command in bash sh env make awk sed cat dirname mkdir nproc date rm tail "$@"; do
		path=$(type -P "$command") && ln -s "$path" "$work/bin/"
	done
}

# says TEXT TARGET...: making each target fails with one line, except for make's own, that has the text.
says() {
	local target
	for target in "${@:2}"; do
		if PATH=$work/bin make --no-print-directory "$target" > "$work/output" 2>&1 ||
			[ "$(grep -vc '^make: ' "$work/output")" != 1 ] || ! grep -qF -- "$1" "$work/output"; then
			echo "need-test: make $target: want one line with '$1', got:" >&2
			cat "$work/output" >&2
			failures=$((failures + 1))
		fi
	done
}

# fake COMMAND TEXT: a command that fails with this text.
fake() {
	printf '#!/bin/sh\necho "%s" >&2\nexit 1\n' "$2" > "$work/bin/$1"
	chmod +x "$work/bin/$1"
}

tools gcc cc cmp
says 'newer is missing: install it from https://go.dev/dl (there is no command go)' demo test
fake go 'go: go.mod requires go >= 1.99 (running go 1.20)'
says 'https://go.dev/dl (go: go.mod requires go >= 1.99 (running go 1.20))' demo test
tools go cmp
says 'a C compiler is missing (command gcc): sudo apt install gcc' demo test
tools go gcc cmp
says 'a C compiler is missing (command cc): sudo apt install gcc' test
tools go cmp
fake gcc 'pthread.h: No such file or directory'
fake cc 'pthread.h: No such file or directory'
says 'the headers of the C library are missing: sudo apt install libc6-dev' demo test
tools go gcc cc
says 'cmp is missing: sudo apt install diffutils' demo test

# A program without C needs no C compiler.
tools go
if ! PATH=$work/bin CGO_ENABLED=0 scripts/need.sh 2> "$work/output"; then
	echo "need-test: need.sh with CGO_ENABLED=0: $(cat "$work/output")" >&2
	failures=$((failures + 1))
fi

[ "$failures" -eq 0 ]
