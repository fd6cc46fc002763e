#!/usr/bin/env bash
# Fails with one line, which says how to install it, if Go, the C compiler with the headers of the C library, or one of
# the given commands is missing. GO and CC are other names of the first two. With CGO_ENABLED=0 no C is compiled.
set -euo pipefail
cd "$(dirname "$0")/.."

# missing WHAT DEB RPM
missing() {
	echo "$1: sudo apt install $2 (Debian, Ubuntu) or sudo dnf install $3 (RHEL, Fedora)" >&2
	exit 1
}

go=${GO:-go}
wanted=$(awk '$1 == "go" {print $2}' go.mod)
install_go="Go $wanted or newer is missing: install it from https://go.dev/dl"
command -v "$go" > /dev/null || { echo "$install_go (there is no command $go)" >&2; exit 1; }
# Here an older Go downloads the one that go.mod asks for, or fails.
said=$("$go" list -m 2>&1) || { echo "$install_go (${said##*$'\n'})" >&2; exit 1; }

if [ "${CGO_ENABLED:-1}" != 0 ]; then
	cc=${CC:-$("$go" env CC)}
	command -v "${cc%% *}" > /dev/null || missing "a C compiler is missing (command ${cc%% *})" "gcc libc6-dev" "gcc"
	# shellcheck disable=SC2086 # CC may have arguments
	echo '#include <pthread.h>' | $cc -fsyntax-only -x c - 2> /dev/null ||
		missing "the headers of the C library are missing" libc6-dev glibc-devel
fi

for command in "$@"; do
	command -v "$command" > /dev/null && continue
	case $command in
	cc) missing "a C compiler is missing (command cc)" gcc gcc ;;
	cmp | diff) missing "$command is missing" diffutils diffutils ;;
	*) missing "$command is missing" "$command" "$command" ;;
	esac
done
