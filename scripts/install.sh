#!/usr/bin/env bash
# install.sh install PREFIX: copies the program and what belongs to it, which make has built, below $DESTDIR$PREFIX, and
# records each file and each new directory in share/doc/dma-copy/installed there.
# install.sh uninstall PREFIX: removes what is recorded; directories only if nothing else is in them.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly root=${DESTDIR:-}
readonly prefix=${2#/}
readonly share=$prefix/share
readonly doc=$share/doc/dma-copy
readonly record=$root/$doc/installed

# Paths are relative to the root here and in the record.
# make_directory PATH: a directory and those above it, of which new ones are recorded.
make_directory() {
	[ "$1" != . ] && [ ! -d "$root/$1" ] || return 0
	make_directory "$(dirname "$1")"
	install -d -m 755 "$root/$1"
	new+=("$1/")
}

# install_file MODE SOURCE TARGET
install_file() {
	make_directory "$(dirname "$3")"
	install -T -m "$1" "$2" "$root/$3"
	new+=("$3")
}

check_built() {
	local built
	for built in bin/dma-copy build/man/man1 build/completions/bash build/licences/THIRD_PARTY_NOTICES; do
		[ -e "$built" ] || { echo "install: $built is missing: run make all first" >&2; return 1; }
	done
}

# The record is written on exit: what a failed install has copied can be removed, too.
install_all() {
	local page section
	make_directory "$doc"
	new+=("$doc/installed")
	trap write_record EXIT
	install_file 755 bin/dma-copy "$prefix/bin/dma-copy"
	for page in build/man/man*/*.[0-9]; do
		section=${page##*.}
		install_file 644 "$page" "$share/man/man$section/${page##*/}"
	done
	install_file 644 build/completions/bash/dma-copy "$share/bash-completion/completions/dma-copy"
	install_file 644 build/completions/zsh/_dma-copy "$share/zsh/site-functions/_dma-copy"
	install_file 644 build/completions/fish/dma-copy.fish "$share/fish/vendor_completions.d/dma-copy.fish"
	install_file 644 LICENSE "$doc/LICENSE"
	install_file 644 build/licences/THIRD_PARTY_NOTICES "$doc/THIRD_PARTY_NOTICES"
}

# Entries of an earlier install stay recorded, so that all of them can be removed.
write_record() {
	local text
	text=$({ [ ! -f "$record" ] || cat "$record"; printf '%s\n' "${new[@]}"; } | LC_ALL=C sort -u)
	printf '%s\n' "$text" > "$record"
	chmod 644 "$record"
}

# In reverse order, what a directory has comes before the directory.
uninstall_all() {
	local paths path
	[ -f "$record" ] || { echo "uninstall: nothing is installed in $root/$prefix ($record is missing)" >&2; return 1; }
	mapfile -t paths < <(LC_ALL=C sort -r "$record")
	for path in "${paths[@]}"; do
		[[ $path != */ ]] || continue
		rm -f "$root/$path"
	done
	for path in "${paths[@]}"; do
		[[ $path == */ && -d $root/$path ]] || continue
		rmdir --ignore-fail-on-non-empty "$root/$path"
	done
}

new=()
case $1 in
	install)
		check_built
		install_all
		;;
	uninstall) uninstall_all ;;
	*) echo "install.sh: install or uninstall, not $1" >&2; exit 1 ;;
esac
