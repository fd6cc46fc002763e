#!/usr/bin/env bash
# Tests that scripts/release.sh cuts the notes of a version out of a changelog, and refuses a commit that cannot be
# released for each of its reasons.
set -euo pipefail
cd "$(dirname "$0")"

# The repositories below must be neither the one that a git hook works on nor depend on the user's settings.
unset "${!GIT_@}"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1

command -v git > /dev/null || { echo "git is not installed: scripts/release.sh is not tested"; exit; }

release=$PWD/release.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
repository=$work/repository
failures=0

fail() {
	echo "release-test: $1" >&2
	failures=$((failures + 1))
}

git_in() {
	git -C "$repository" -c user.name=test -c user.email=test@localhost "$@"
}

# changelog HEADING [UNRELEASED]: a changelog whose newest version has this heading, in a new repository.
changelog() {
	rm -rf "$repository"
	mkdir -p "$repository/scripts"
	cp "$release" "$repository/scripts/"
	cat > "$repository/CHANGELOG.md" <<- PAGE
		# Changelog

		## [Unreleased]

		${2:-}

		$1

		### Added

		- One thing, in
		  two lines: [there](docs/A.md#b), [elsewhere](https://localhost/c).

		### Fixed

		- Another one.

		## [1.1.9] - 2026-01-02

		- Older.

		[1.2.0]: https://localhost/1.2.0
		[1.1.9]: https://localhost/1.1.9
	PAGE
	git init -q "$repository"
	commit "docs: begin"
}

commit() {
	git_in add -A
	git_in commit -q --allow-empty -m "$1"
}

# signed_tag NAME: an annotated tag with the form of a signature; that it is valid is checked when it is pushed.
signed_tag() {
	local commit
	commit=$(git_in rev-parse HEAD)
	printf 'object %s\ntype commit\ntag %s\ntagger test <test@localhost> 0 +0000\n\n%s\n%s\n' "$commit" "$1" \
		"$1" '-----BEGIN SSH SIGNATURE-----' > "$work/tag"
	git_in update-ref "refs/tags/$1" "$(git_in hash-object -t tag -w "$work/tag")"
}

# accepts NAME COMMAND
accepts() {
	"$repository/scripts/release.sh" "$2" > "$work/output" 2>&1 || fail "$1: $(< "$work/output")"
}

# refuses NAME COMMAND TEXT
refuses() {
	! "$repository/scripts/release.sh" "$2" > "$work/output" 2>&1 || fail "$1: accepted"
	grep -qF -- "$3" "$work/output" || fail "$1: '$3' is not in: $(< "$work/output")"
}

# prints NAME COMMAND TEXT
prints() {
	accepts "$1" "$2"
	[ "$(< "$work/output")" = "$3" ] || fail "$1: printed $(< "$work/output")"
}

good='## [1.2.0] - 2026-02-03'
changelog "$good"
prints "the version" version 1.2.0
there='[there](https://github.com/dma-copy/dma-copy/blob/v1.2.0/docs/A.md#b), [elsewhere](https://localhost/c)'
prints "the notes" notes $'### Added\n\n- One thing, in\n  two lines: '"$there"$'.\n\n### Fixed\n\n- Another one.'
prints "a commit without a tag" check "release: 1.2.0"
echo x > "$repository/new"
refuses "a new file" check "has changes that are not committed"
commit "docs: add a file"
git_in tag v1.2.0
refuses "a tag without a message" check "v1.2.0 is not an annotated tag"
git_in tag -d v1.2.0 > /dev/null
git_in tag -a -m v1.2.0 v1.2.0
refuses "a tag without a signature" check "v1.2.0 is not signed"
git_in tag -d v1.2.0 > /dev/null
signed_tag v1.2.0
prints "a signed tag" check "release: 1.2.0, tagged as v1.2.0"
signed_tag v1.2.1
refuses "the tag of another version" check "tagged as v1.2.1, but the newest version of CHANGELOG.md is 1.2.0"

changelog "$good" "- Not released yet."
accepts "lines under Unreleased, no tag" check
signed_tag v1.2.0
refuses "lines under Unreleased" check "has lines under Unreleased"

changelog '## [1.2.0-rc.1] - 2026-02-03'
prints "a version before the release" version 1.2.0-rc.1
refuses "no link" check "has no link for [1.2.0-rc.1]"
for heading in '## [1.2] - 2026-02-03' '## [1.2.0]' '## [1.2.0] - today' '## [01.2.0] - 2026-02-03'; do
	changelog "$heading"
	refuses "$heading" version "is not ## [MAJOR.MINOR.PATCH] - YYYY-MM-DD"
done
changelog "$good"
sed -i '/^## \[[0-9]/d' "$repository/CHANGELOG.md"
refuses "no version" version "has no section of a version"
changelog "$good"
sed -i '/^###/d; /^- \|^  two/d' "$repository/CHANGELOG.md"
refuses "an empty section" notes "says nothing of 1.2.0"

[ "$failures" -eq 0 ] || exit 1
