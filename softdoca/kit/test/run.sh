#!/usr/bin/env bash
# All tests of the kit alone, from outside, as its users have it: installed, moved elsewhere, used through pkg-config.
# Takes SDKDIR, the built kit, TEST_OUT, a directory for what is made here, CC and CXX from the environment.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=${TEST_OUT:?where to put what the tests build}
rm -rf "$out"
mkdir -p "$out"

# A kit that was moved after it was built must not remember where it came from.
make -s -C "$here/.." install SDKDIR="$SDKDIR" DESTDIR="$out" PREFIX=/moved
kit=$out/moved

# "include" is relative because headers.sh wants it so.
(cd "$kit" && CFLAGS='-Wall -Wextra -Werror' "$here/../../test/headers.sh" include)
"$here/exports.sh" "$kit"
"$here/older_names.sh" "$kit" "$here/../../docs/older-names.md"

make -s -C "$here/.." SDKDIR="$out/sanitized" OUT="$out/sanitized-objects" \
	CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all'
"$here/c_tests.sh" "$out/sanitized" "$out/tests"

"$here/programs.sh" "$kit" "$out/programs"

"$here/examples.sh" "$kit" "$out/examples" shared
"$here/examples.sh" "$kit" "$out/examples" static
if command -v meson > /dev/null && command -v ninja > /dev/null; then
	"$here/examples.sh" "$kit" "$out/examples" meson
else
	echo "examples (meson): skipped, because meson or ninja is not installed"
fi
"$here/readme.sh" "$kit" "$here/../../README.md"
