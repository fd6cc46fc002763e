#!/usr/bin/env bash
# Programs written as DOCA's public guides of different releases show: compiled against the kit as C and as C++ without
# a warning, and run.
#
#   programs.sh KIT OUT
set -euo pipefail

kit=${1:?usage: programs.sh KIT OUT}
out=${2:?usage: programs.sh KIT OUT}
here=$(cd "$(dirname "$0")" && pwd)
abi=$here/../../abi
flags=(-DDOCA_ALLOW_EXPERIMENTAL_API -Wall -Wextra -Werror)

fail() {
	echo "programs: $*" >&2
	exit 1
}

# $1: c or c++, then further arguments of the compiler. The language's own default standard, as programs have it.
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
		*_abi.h | *config.h | */doca_compat.h | */doca_common_defines.h | */doca_version.h) continue ;;
		esac
		for language in c c++; do
			compile "$language" -fsyntax-only -I"$kit/include" "-DHEADER=<${header##*/}>" "$here/includes_test.c" ||
				fail "${header##*/} alone does not do for $language"
		done
	done
}

# The release that a program chooses by the directory of the pkg-config files, or when it runs.
releases() {
	local release options expected
	for release in $(cd "$kit/lib/pkgconfig" && echo [0-9]*); do
		[ "$(PKG_CONFIG_PATH=$kit/lib/pkgconfig/$release pkg-config --modversion doca-argp)" = "$release.0999" ] ||
			fail "pkg-config for $release has another release"
		read -r -a options <<< "$(PKG_CONFIG_PATH=$kit/lib/pkgconfig/$release pkg-config --cflags --libs doca-common)"
		compile c -o "$out/release" "-DMAJOR=${release%.*}" "-DMINOR=${release#*.}" "$here/release_test.c" \
			"${options[@]}" -Wl,-rpath,"$kit/lib" || fail "no program for $release"
		expected="$release.0999 $release.0999"
		prints "^$expected $release.0999" "DMA_COPY_KIT_VERSION=$release" "$out/release"
		prints "^$expected 3.3.0999" "$out/release"
		prints "^$expected 3.3.0999" DMA_COPY_KIT_VERSION=3,3 "$out/release"
	done
	! compile c -fsyntax-only -DMAJOR=3 -DMINOR=9 -DDMA_COPY_KIT_VERSION=309 -I"$kit/include" "$here/release_test.c" \
		2> "$work/err" || fail "there is a release 3.9"
}

# The name of a function in DOCA 2.7 is a name for it while a program compiles. The list has the names.
former_names() {
	local name language
	for name in $(sed -n 's/.*"\(doca_[a-z_]*\)".*/\1/p' "$abi"/doca_*functions.def); do
		for language in c c++; do
			printf '%s\n' '#include <doca_comch_consumer.h>' '#include <doca_comch_producer.h>' \
				"void (*use(void))(void);" "void (*use(void))(void) { return (void (*)(void))$name; }" |
				compile "$language" -Wno-cast-function-type -fsyntax-only -I"$kit/include" - ||
				fail "$name is no name for $language"
		done
	done
}

# $1: language, $2: program, which is named for a release.
build() {
	local options release=${2#guide_}
	read -r -a options <<< "$(PKG_CONFIG_PATH=$kit/lib/pkgconfig/${release/_/.} pkg-config --cflags --libs \
		doca-argp doca-comch doca-dma doca-common)"
	compile "$1" -O1 -g -o "$out/$2.$1" "$here/$2.c" "${options[@]}" -Wl,-rpath,"$kit/lib" || fail "$2 is no $1"
}

# $1: a line that the program must print, then what runs it.
prints() {
	local line=$1
	shift
	timeout 60 env "$@" > "$work/out" 2> "$work/err" || fail "$* ended with $?: $(cat "$work/err")"
	grep -q "$line\$" "$work/out" || fail "$* does not print \"$line\": $(cat "$work/out")"
}

# The shared parameter file has a group for programs that run on DPDK.
run_2_7() {
	printf '{"doca_dpdk_flags": {"devices": [{"device": "pf", "id": "03:00.0", "hws": true}], "flags": ""},
		"doca_program_flags": {"pci-addr": "0000:03:00.0", "rep-pci": "0000:b1:00.0"}}\n' > "$work/params.json"
	prints 'received 128 bytes' "$1" -j "$work/params.json"
	prints 'received 128 bytes' "$1" -p 0000:03:00.1 -r 0000:b1:00.1
}

run_2_10() {
	prints 'the bytes are the same' DMA_COPY_SOFT_SIDE=dpu "$1"
	prints 'the bytes are the same' DMA_COPY_SOFT_SIDE=host "$1"
}

# A PF and its SF have one PCI address.
run_3_3() {
	prints 'device mlx5_0 is a PF' "$1" --pci-addr b1:00.0
	prints 'device mlx5_0 is a PF' DMA_COPY_SOFT_FUNCTIONS=vf,sf "$1" --pci-addr b1:00.0
	prints 'device mlx5_4 is a VF' DMA_COPY_SOFT_FUNCTIONS=vf,sf "$1" --pci-addr b1:00.2
	prints 'device mlx5_5 is a SF' DMA_COPY_SOFT_FUNCTIONS=vf,sf "$1" --pci-addr b1:00.0 --sf-index 4
	prints 'representor pf0vf0 of a VF' DMA_COPY_SOFT_FUNCTIONS=vf,sf "$1" --pci-addr 03:00.0
	grep -q 'representor en3f0c1pf0sf4 of a SF$' "$work/out" || fail "$1 finds no representor of the SF"
	! timeout 60 "$1" --pci-addr b1:00.0 --sf-index 4 > "$work/out" 2> "$work/err" ||
		fail "$1 found an SF that is not there"
}

mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DMA_COPY_SOFT_DIR=$work/soft
mkdir -m 700 "$DMA_COPY_SOFT_DIR"
includes
releases
former_names
for release in 2_7 2_10 3_3; do
	for language in c c++; do
		build "$language" "guide_$release"
		"run_$release" "$out/guide_$release.$language"
	done
done
echo "programs: ok"
