#!/usr/bin/env bash
# Tests that scripts/width.sh and scripts/commits.sh accept what they should, and fail on each kind of bad input.
set -euo pipefail
cd "$(dirname "$0")"

# The repositories below must be neither the one that a git hook works on nor depend on the user's settings.
unset "${!GIT_@}"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1

scripts=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
	echo "lint-test: $1" >&2
	failures=$((failures + 1))
}

# accepts NAME COMMAND...
accepts() {
	"${@:2}" > /dev/null 2>&1 || fail "$1: refused"
}

# refuses NAME COMMAND...
refuses() {
	! "${@:2}" > /dev/null 2>&1 || fail "$1: accepted"
}

# repeat COUNT TEXT
repeat() {
	local i
	for ((i = 0; i < $1; i++)); do printf '%s' "$2"; done
}

# width ACCEPTS|REFUSES NAME FILE < CONTENT
width() {
	cat > "$work/$3"
	"$1" "$2" "$scripts/width.sh" "$work/$3"
}

x100=$(repeat 50 'x ')
width accepts "120 columns of Go" good.go <<< "// $(repeat 117 x)"
width refuses "121 columns of Go" bad.go <<< "// $(repeat 118 x)"
width accepts "tabs of 4 in Go" tabs.go <<< "$(repeat 2 $'\t')$(repeat 112 x)"
width refuses "tabs of 4 in Go, 121" tabs.go <<< "$(repeat 2 $'\t')$(repeat 113 x)"
width refuses "121 columns of a script" bad.sh <<< "# $(repeat 119 x)"
width refuses "121 columns of a makefile" Makefile <<< "# $(repeat 119 x)"
width accepts "characters of several bytes" umlauts.go <<< "// $(repeat 117 ü)"
width refuses "tabs of 8 in C, 121" bad.c <<< "$(repeat 2 $'\t')$(repeat 105 x)"
width accepts "tabs of 8 in C, 120" good.h <<< "$(repeat 2 $'\t')$(repeat 104 x)"
width refuses "a wide line in a list of functions" bad.def <<< "$(repeat 121 x)"
width accepts "a paragraph on one line" one.md <<< "$x100 and more"
width refuses "a wide line of a paragraph" several.md <<< "$x100 and more"$'\nthe second line'
width refuses "a wide line of a list item" item.md <<< "- one"$'\n'"- $x100 and more"$'\n  the second line'
width accepts "list items on one line" items.md <<< "- $x100 and more"$'\n'"- $x100 and more"
width accepts "a table" table.md <<< "| $x100 and more |"$'\n|---|\n'"| $x100 and more |"
width accepts "a code block" code.md <<< $'```\n'"$x100 and more"$'\nthe second line\n```'
width refuses "a paragraph after a code block" after.md <<< $'```\nx\n```\n'"$x100 and more"$'\nthe second line'
width accepts "a heading before a paragraph" heading.md <<< "# $x100 and more"$'\nthe text'
width accepts "a link definition" link.md <<< "[a link]: $(repeat 120 x)"$'\n'"[other]: $(repeat 120 x)"
width accepts "a word that cannot be wrapped" word.md <<< $'see\n'"$(repeat 120 x)"$'\nfor more'

# subject ACCEPTS|REFUSES SUBJECT
subject() {
	"$1" "subject '$2'" "$scripts/commits.sh" - <<< "$2"
}

subject accepts "dmaxfer/native: split the session's loop"
subject accepts "cmd/dma-copy,docs: say what --wait bounds"
subject refuses "split the session's loop"
subject refuses "dmaxfer native: split the session's loop"
subject refuses "Dmaxfer: split the session's loop"
subject refuses "dmaxfer:split the session's loop"
subject refuses "dmaxfer: x"
subject refuses "dmaxfer: split the session's loop."
subject accepts "docs: $(repeat 66 x)"
subject refuses "docs: $(repeat 67 x)"

# A copy of the files without history, here inside another repository, is checked, too; only its subjects cannot be.
copy_scripts() {
	mkdir -p "$1/scripts"
	cp "$scripts/commits.sh" "$scripts/width.sh" "$1/scripts/"
}
copy_scripts "$work/outer/plain"
accepts "no history" "$work/outer/plain/scripts/commits.sh"
accepts "no history, narrow lines" "$work/outer/plain/scripts/width.sh"
echo "// $(repeat 118 x)" > "$work/outer/plain/bad.go"
refuses "no history, 121 columns" "$work/outer/plain/scripts/width.sh"

# The commits of a repository: what precedes the script is not checked, what follows it is.
repository=$work/repository
in_repository() {
	git -C "$repository" -c user.name=test -c user.email=test@localhost "$@"
}

commit() {
	in_repository commit -q --allow-empty -m "$1"
}

check_repositories() {
	git init -q "$work/outer"
	accepts "no history inside another repository" "$work/outer/plain/scripts/commits.sh"
	refuses "121 columns inside another repository" "$work/outer/plain/scripts/width.sh"

	copy_scripts "$repository"
	git init -q "$repository"
	accepts "no commit of the script" "$repository/scripts/commits.sh"
	commit "Before there was a rule."
	in_repository add scripts
	commit "scripts: check commit subjects"
	commit "docs: name the rule"
	accepts "older subjects" "$repository/scripts/commits.sh"
	in_repository checkout -q -b side
	commit "docs: explain the rule"
	in_repository checkout -q --detach HEAD~1
	commit "docs: wrap the rule"
	in_repository merge -q -m "Merge the branch" side
	accepts "the subject of a merge" "$repository/scripts/commits.sh"
	commit "Broke the rule"
	refuses "a new subject" "$repository/scripts/commits.sh"
	git -c advice.detachedHead=false clone -q --depth 1 "file://$repository" "$work/shallow"
	accepts "a history of one commit" "$work/shallow/scripts/commits.sh"

	echo "// $(repeat 118 x)" > "$repository/bad.go"
	refuses "121 columns, not yet committed" "$repository/scripts/width.sh"
	[ "$(id -u)" -eq 0 ] || return 0
	chown -R 1 "$repository"
	refuses "a new subject in the checkout of another user" "$repository/scripts/commits.sh"
	refuses "121 columns in the checkout of another user" "$repository/scripts/width.sh"
}
! command -v git > /dev/null || check_repositories

[ "$failures" -eq 0 ] || exit 1
