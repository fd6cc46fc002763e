#!/usr/bin/env bash
# The C tests, against a kit that was built with the address and undefined behaviour sanitizers, as they are.
#
#   c_tests.sh KIT OUT
set -euo pipefail

kit=${1:?usage: c_tests.sh KIT OUT}
out=${2:?usage: c_tests.sh KIT OUT}
here=$(cd "$(dirname "$0")" && pwd)
abi=$here/../../abi
flags=(-std=gnu11 -D_GNU_SOURCE -DDOCA_ALLOW_EXPERIMENTAL_API -g -Wall -Wextra -Werror)
sanitizers=(-fsanitize=address,undefined -fno-sanitize-recover=all)

packages() {
	PKG_CONFIG_PATH=$kit/lib/pkgconfig pkg-config "$@"
}

# $1: name; then sources and flags. Packages are given in PACKAGES.
build_and_run() {
	local name=$1 options
	shift
	read -r -a options <<< "$(packages --cflags --libs $PACKAGES)"
	"${CC:-gcc}" "${flags[@]}" "${sanitizers[@]}" -o "$out/$name" "$@" "${options[@]}" -Wl,-rpath,"$kit/lib" -lpthread
	timeout 300 "$out/$name" || { echo "$name failed" >&2; exit 1; }
}

mkdir -p "$out"
export DMA_COPY_SOFT_DIR=$out/soft
mkdir -p -m 700 "$DMA_COPY_SOFT_DIR"
cd "$here"
"${CC:-gcc}" "${flags[@]}" -fsyntax-only -I"$kit/include" -I"$abi" prototypes_test.c
echo "prototypes: ok"
PACKAGES=doca-common build_and_run macros_test macros_test.c
PACKAGES=doca-common build_and_run macros_dpu_test macros_test.c -DDOCA_ARCH_DPU -DWANT_DPU
for about in log clock mmap_advise buf_pool; do
	PACKAGES=doca-common build_and_run "${about}_test" "${about}_test.c" capture.c
done
PACKAGES='doca-comch doca-common' build_and_run exit_test exit_test.c capture.c
# The DPA's code has another language standard, no experimental functions, and is a file of its own.
"${CC:-gcc}" -std=c11 -g -Wall -Wextra -Werror "${sanitizers[@]}" -I"$kit/include" -c -o "$out/dpa_test_dev.o" \
	dpa_test_dev.c
PACKAGES='doca-dpa doca-common' build_and_run dpa_test dpa_test.c "$out/dpa_test_dev.o" capture.c
argp=(argp_lines.c argp_program.c)
for about in flags json endings calls types; do
	PACKAGES='doca-argp doca-common' build_and_run "argp_${about}_test" "argp_${about}_test.c" "${argp[@]}" capture.c
done
