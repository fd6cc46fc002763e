#!/usr/bin/env bash
# All tests of the kit, from outside, as its users have it: installed, moved elsewhere, and used through pkg-config.
# Takes SDKDIR, the built kit, TEST_OUT, a directory for what is made here, CC and CXX from the environment.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=${TEST_OUT:?where to put what the tests build}
rm -rf "$out"
mkdir -p "$out"

# A kit that was moved after it was built must not remember where it came from.
make -s -C "$here/.." install SDKDIR="$SDKDIR" DESTDIR="$out" PREFIX=/moved
kit=$out/moved

# A relative PREFIX is relative to the directory of the caller of make, not to the source tree.
(cd "$root" && make -s install-sdk SDKDIR="$SDKDIR" PREFIX="$(realpath --relative-to=. "$out")/relative")
diff -r "$kit" "$out/relative"

# "include" is relative because headers.sh wants it so.
(cd "$kit" && CFLAGS='-Wall -Wextra -Werror' "$root/scripts/headers.sh" include)
"$here/exports.sh" "$kit"
"$here/older_names.sh" "$kit" "$here/../../docs/SDK.md"

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
"$here/loader.sh" "$kit" "$root/bin/dma-copy"
