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
added=$(git log --diff-filter=A --format=%H -- scripts/commits.sh 2> /dev/null | tail -n 1) || added=
if [ -z "$added" ]; then
	echo "no git history: commit subjects are not checked"
	exit
fi
[ "$(git rev-parse --is-shallow-repository)" = false ] || echo "shallow history: older commit subjects are not checked"
git log --no-merges --format=%s "$added..HEAD" | check
