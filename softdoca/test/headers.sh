#!/usr/bin/env bash
# Compiles each header of the directories alone, as C11 and as C++17: it must include what it needs and be valid in both
# languages. C11 is GNU's, as everywhere here, because strict C11 hides what POSIX adds to <limits.h>.
# Takes CC, CXX and CFLAGS from the environment.
set -euo pipefail

: "${1:?usage: headers.sh DIRECTORY...}"

# The internal headers of the software device, all but soft.h and memory.h, are C only: they use <stdatomic.h>, which
# C++17 lacks, and names that C++ reserves. The headers of the binding of UCX are C only, too: the members of a
# structure have the names and the types of functions.
c_only() {
	[[ $1 == */ucx/* || $1 == dpa/* || $1 == sync/* ]] ||
		[[ $1 == device/* && $(basename "$1") != soft.h && $(basename "$1") != memory.h ]]
}

# The header is included, not compiled itself, so that "#pragma once" and the like do not warn.
compiles_as() {
	local language=$1 compiler=$2 standard=$3 header=$4
	printf '#include "%s"\n' "$PWD/$header" |
		"$compiler" "-std=$standard" ${CFLAGS:-} -fsyntax-only -x "$language" - ||
		{ echo "$header does not compile alone as $standard" >&2; return 1; }
}

headers=()
for directory in "$@"; do
	found=("$directory"/*.h)
	[ -e "${found[0]}" ] || { echo "no header in $directory" >&2; exit 1; }
	headers+=("${found[@]}")
done
failed=0
for header in "${headers[@]}"; do
	compiles_as c "${CC:-cc}" gnu11 "$header" || failed=1
	c_only "$header" || compiles_as c++ "${CXX:-c++}" c++17 "$header" || failed=1
done
[ "$failed" -eq 0 ] && echo "${#headers[@]} headers compile alone"
