#!/usr/bin/env bash
# The parts of a release, which `make release-dry-run` and the workflow of releases put together:
#
#   version    prints the newest version of CHANGELOG.md
#   check      fails unless this commit can be released as that version
#   notes      prints what CHANGELOG.md says of that version
#   assemble   makes build/release: packages, archives of the programs, SBOM, SHA256SUMS, RELEASE_NOTES.md
#
# assemble needs what `make packages` makes, and SOURCE_DATE_EPOCH, the time of all files.
set -euo pipefail
cd "$(dirname "$0")/.."

semantic_version='(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z]+(\.[0-9A-Za-z]+)*)?'
release=build/release

fail() {
	echo "release: $1" >&2
	exit 1
}

# safe.directory: the checkout may belong to another user, whose history git would not read otherwise.
in_checkout() {
	git -c safe.directory='*' "$@"
}

# newest_heading: the first heading of a released version in CHANGELOG.md.
newest_heading() {
	grep -m 1 '^## \[[0-9]' CHANGELOG.md ||
		fail "CHANGELOG.md has no section of a version, such as ## [1.2.3] - 2026-01-31"
}

version() {
	local heading version
	heading=$(newest_heading)
	[[ $heading =~ ^'## ['$semantic_version'] - '[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] ||
		fail "CHANGELOG.md: '$heading' is not ## [MAJOR.MINOR.PATCH] - YYYY-MM-DD"
	version=${heading#'## ['}
	echo "${version%%']'*}"
}

# section NAME: the text of a section of CHANGELOG.md, without its heading and the empty lines around it.
section() {
	awk -v heading="## [$1]" '
		index($0, "## ") == 1 || /^\[[^]]+\]: / { inside = index($0, heading) == 1; next }
		inside' CHANGELOG.md | sed -e '/./,$!d' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}

# Links to files of the repository become addresses, because the page of a release is elsewhere.
notes() {
	local version text
	version=$(version)
	text=$(section "$version")
	[ -n "$text" ] || fail "CHANGELOG.md says nothing of $version"
	sed -E "s,\]\(([^):#]+[)#]),](https://github.com/dma-copy/dma-copy/blob/v$version/\1,g" <<< "$text"
}

check() {
	local version tags tag
	version=$(version)
	notes > /dev/null
	grep -q "^\[$version\]: https://" CHANGELOG.md || fail "CHANGELOG.md has no link for [$version] at its end"
	[ -z "$(in_checkout status --porcelain)" ] || fail "the checkout has changes that are not committed: see git status"
	tags=$(in_checkout tag --points-at HEAD --list 'v[0-9]*')
	for tag in $tags; do
		check_tag "$tag" "$version"
	done
	echo "release: $version${tags:+, tagged as $tags}"
}

# check_tag TAG VERSION: whether a tag of this commit is that of the version, with nothing left to release.
check_tag() {
	[ "$1" = "v$2" ] || fail "this commit is tagged as $1, but the newest version of CHANGELOG.md is $2"
	[ "$(in_checkout cat-file -t "$1")" = tag ] || fail "$1 is not an annotated tag: make it with git tag -s"
	in_checkout cat-file tag "$1" | grep -qE '^-----BEGIN (PGP|SSH) SIGNATURE-----' ||
		fail "$1 is not signed: make it with git tag -s"
	[ -z "$(section Unreleased)" ] || fail "CHANGELOG.md has lines under Unreleased: move them to $2"
}

# stage NAME: puts what `make install` installs, and the pages of the top directory, below build/archive. The record of
# installed files is for `make uninstall`, which an archive does not have.
stage() {
	rm -rf build/archive
	mkdir -p "build/archive/$1"
	DESTDIR=$PWD/build/archive/$1 scripts/install.sh install /
	rm -f "build/archive/$1/share/doc/dma-copy/installed"
	cp LICENSE README.md CHANGELOG.md SECURITY.md "build/archive/$1/"
}

# archive NAME: packs a directory below build/archive, the same for the same content.
archive() {
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r-w --format=gnu \
		-C build/archive -c "$1" | gzip -9 -n > "$release/$1.tar.gz"
}

archives() {
	local name amd64 arm64
	name=dma-copy-$(version)-linux
	amd64=$name-amd64 arm64=$name-arm64
	stage "$amd64"
	archive "$amd64"
	mv "build/archive/$amd64" "build/archive/$arm64"
	install -m 755 bin/dma-copy-arm64 "build/archive/$arm64/bin/dma-copy"
	archive "$arm64"
}

assemble() {
	: "${SOURCE_DATE_EPOCH:?the time of all files, in seconds since 1970}"
	rm -rf "$release"
	mkdir -p "$release"
	archives
	cp build/packages/*.deb build/packages/*.rpm "$release/"
	cp build/licences/sbom.cdx.json "$release/dma-copy-$(version).cdx.json"
	(cd "$release" && sha256sum -- *) > build/SHA256SUMS
	mv build/SHA256SUMS "$release/"
	notes > "$release/RELEASE_NOTES.md"
	ls -l "$release"
}

case ${1:-} in
version | check | notes | assemble) "$1" ;;
*) fail "usage: scripts/release.sh version|check|notes|assemble" ;;
esac
