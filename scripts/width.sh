#!/usr/bin/env bash
# Reports lines that are too wide: more than 120 columns in Go, scripts and makefiles (a tab is 4) and C (a tab is 8),
# and more than 100 in a Markdown paragraph of several lines. A paragraph, list item or heading on one line, a table, a
# code block and a link definition may have any width. Checks the named files, or those of the repository if none is
# named.
set -euo pipefail
shopt -s inherit_errexit

# safe.directory: the checkout may belong to another user, whose files git would not list otherwise.
in_checkout() {
	git -c safe.directory='*' -c core.quotePath=false "$@"
}

# A copy of the files without .git may lie inside another repository, which git would list instead.
list_files() {
	if [ -e .git ] && in_checkout rev-parse --git-dir > /dev/null 2>&1; then
		in_checkout ls-files --cached --others --exclude-standard
	else
		find . \( -path ./.git -o -path ./bin -o -path ./build -o -path ./coverage \) -prune -o -type f -print |
			sed 's,^\./,,'
	fi
}

# Counts characters, not bytes: without UTF-8's continuation bytes each character is one byte.
count='
	function width(line,    at) {
		gsub(/[\200-\277]/, "", line)
		while ((at = index(line, "\t")) > 0)
			line = substr(line, 1, at - 1) sprintf("%*s", tab - (at - 1) % tab, "") substr(line, at + 1)
		return length(line)
	}
	function report(file, number, columns) {
		printf "%s:%d: %d columns, at most %d\n", file, number, columns, limit
	}'

# check_code TAB FILE...
check_code() {
	LC_ALL=C awk -v tab="$1" -v limit=120 "$count"'
		(columns = width($0)) > limit { report(FILENAME, FNR, columns) }' "${@:2}"
}

# A block is a paragraph or the text of a list item. It is reported when it has a second line; a line of one word, such
# as a long address, cannot be wrapped.
check_markdown() {
	LC_ALL=C awk -v tab=4 -v limit=100 "$count"'
		function end_block(    i) {
			for (i = 1; lines > 1 && i <= wide; i++) report(file, number[i], columns[i])
			lines = wide = 0
		}
		FNR == 1 { end_block(); file = FILENAME; fence = "" }
		fence != "" { if (index($1, fence) == 1) fence = ""; next }
		$1 ~ /^(```|~~~)/ { end_block(); fence = substr($1, 1, 3); next }
		/^[ \t]*$/ || /^[ \t]*\|/ || /^#/ || /^ *\[[^]]+\]: / || /^<!--.*-->$/ { end_block(); next }
		/^[ \t]*([-*+]|[0-9]+[.)]) / { end_block() }
		{
			lines++
			if (width($0) > limit && NF > 1) { number[++wide] = FNR; columns[wide] = width($0) }
		}
		END { end_block() }' "$@"
}

# check FUNCTION ARGUMENT... for the files on standard input, one a line.
check() {
	local files
	mapfile -t files
	[ "${#files[@]}" -eq 0 ] || "$@" "${files[@]}"
}

if [ $# -gt 0 ]; then
	all=$(printf '%s\n' "$@")
else
	cd "$(dirname "$0")/.."
	all=$(list_files | while IFS= read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done)
fi
wide=$(
	{ grep -E '\.(go|sh|awk)$|(^|/)Makefile$|(^|/)\.ci/run$' <<< "$all" || true; } | check check_code 4
	{ grep -E '\.([ch]|def)$' <<< "$all" || true; } | check check_code 8
	{ grep -E '\.md$' <<< "$all" || true; } | check check_markdown
)
[ -z "$wide" ] || { printf '%s\n' "$wide"; echo "lines are too wide (CONTRIBUTING.md, Style)"; exit 1; } >&2
