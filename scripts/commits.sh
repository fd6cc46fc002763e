#!/usr/bin/env bash
# Reports commit subjects that break the rule of CONTRIBUTING.md: `area: summary`, at most 72 characters, no final
# period. Checks the commits after the one that added this script, without merges; with `-`, the subjects on standard
# input, one a line.
set -euo pipefail

# Without UTF-8's continuation bytes each character is one byte.
check() {
	LC_ALL=C awk '
		{ subject = $0; gsub(/[\200-\277]/, ""); reason = "" }
		!/^[a-z0-9\/_.,-]+: .../ { reason = "is not `area: summary`, the area a package path or docs" }
		length($0) > 72 { reason = "has " length($0) " characters, at most 72" }
		/\.$/ { reason = "ends with a period" }
		reason != "" { printf "commit subject %s: %s\n", reason, subject; failed = 1 }
		END { exit failed }' >&2
}

if [ "${1:-}" = - ]; then
	check
	exit
fi
cd "$(dirname "$0")/.."

# safe.directory: the checkout may belong to another user, whose history git would not read otherwise.
in_checkout() {
	git -c safe.directory='*' "$@"
}

not_checked() {
	echo "$1: commit subjects are not checked"
	exit
}

# A copy of the files without .git may lie inside another repository, which git would find instead.
[ -e .git ] || not_checked "no git history"
command -v git > /dev/null || not_checked "git is not installed"
reason=$(in_checkout rev-parse --verify HEAD 2>&1 > /dev/null) || not_checked "${reason%%$'\n'*}"
added=$(in_checkout log --diff-filter=A --format=%H -- scripts/commits.sh | tail -n 1)
[ -n "$added" ] || not_checked "scripts/commits.sh is not committed"
[ "$(in_checkout rev-parse --is-shallow-repository)" = false ] ||
	echo "shallow history: older commit subjects are not checked"
in_checkout log --no-merges --format=%s "$added..HEAD" | check
