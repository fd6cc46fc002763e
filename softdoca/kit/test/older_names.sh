#!/usr/bin/env bash
# older-names.md's table of older names: what it says to call is in the kit's headers, what it replaces is not.
#
#   older_names.sh KIT PAGE
set -euo pipefail

kit=${1:?usage: older_names.sh KIT PAGE}
page=${2:?usage: older_names.sh KIT PAGE}
failed=0

# $1: column. Prints the names in it, one a line.
column() {
	awk -F '|' -v column="$1" '/^\| `/ { print $column }' "$page" |
		grep -o -E '\b(doca|DOCA)_[A-Za-z0-9_]+' | sort -u
}

check() {
	local name=$1 expected=$2 found=no
	! grep -q -w -F -- "$name" "$kit"/include/doca_*.h || found=yes
	[ "$found" = "$expected" ] && return
	echo "older_names: $name: in the headers: $found, in the table as if: $expected" >&2
	failed=1
}

old=$(column 2) new=$(column 3)
[ "$(wc -l <<< "$old")" -gt 30 ] || { echo "older_names: $page has no table of older names" >&2; exit 1; }
for name in $new; do
	check "$name" yes
done
# A name that both columns have is of a function whose parameters changed.
for name in $(comm -23 <(echo "$old") <(echo "$new")); do
	check "$name" no
done
[ "$failed" -eq 0 ] && echo "older_names: ok"
