#!/usr/bin/env bash
# Programs written as DOCA's public guides of different releases show, compiled against the kit as C and as C++ without a
# warning.
#
#   programs.sh KIT OUT
set -euo pipefail

kit=${1:?usage: programs.sh KIT OUT}
out=${2:?usage: programs.sh KIT OUT}
here=$(cd "$(dirname "$0")" && pwd)
cabi=$here/../../internal/doca/internal/cabi
flags=(-DDOCA_ALLOW_EXPERIMENTAL_API -Wall -Wextra -Werror)

fail() {
	echo "programs: $*" >&2
	exit 1
}

# $1: c or c++, then what the compiler gets beside the flags. The language's own default standard, as programs have it.
compile() {
	local language=$1
	shift
	if [ "$language" = c ]; then
		"${CC:-gcc}" "${flags[@]}" -Werror=implicit-function-declaration -x c "$@"
	else
		"${CXX:-g++}" "${flags[@]}" -x c++ "$@"
	fi
}

# The headers that only define macros bring nothing along.
includes() {
	local header language
	for header in "$kit"/include/doca_*.h; do
		case $header in
		*/doca_abi.h | *config.h | */doca_compat.h | */doca_common_defines.h | */doca_version.h) continue ;;
		esac
		for language in c c++; do
			compile "$language" -fsyntax-only -I"$kit/include" "-DHEADER=<${header##*/}>" "$here/includes_test.c" ||
				fail "${header##*/} alone does not do for $language"
		done
	done
}

# What DOCA 2.7 called a function is a name for it while a program compiles. The list has the names.
former_names() {
	local name language
	for name in $(sed -n 's/.*"\(doca_[a-z_]*\)".*/\1/p' "$cabi/doca_functions.def"); do
		for language in c c++; do
			printf '%s\n' '#include <doca_comch_consumer.h>' '#include <doca_comch_producer.h>' \
				"void (*use(void))(void);" "void (*use(void))(void) { return (void (*)(void))$name; }" |
				compile "$language" -Wno-cast-function-type -fsyntax-only -I"$kit/include" - ||
				fail "$name is no name for $language"
		done
	done
}

mkdir -p "$out"
includes
former_names
echo "programs: ok"
