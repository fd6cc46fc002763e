#!/usr/bin/env bash
# The program in README.md compiles, as C and as C++, and prints what the page shows.
#
#   readme.sh KIT README
set -euo pipefail

kit=${1:?usage: readme.sh KIT README}
page=${2:?usage: readme.sh KIT README}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DMA_COPY_SOFT_DIR=$work/soft
mkdir -m 700 "$DMA_COPY_SOFT_DIR"

awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$page" > "$work/hello.c"
grep '^hello,' "$page" > "$work/shown" || { echo "readme: $page shows no output" >&2; exit 1; }
read -r -a options <<< "$(PKG_CONFIG_PATH=$kit/lib/pkgconfig pkg-config --cflags --libs \
	doca-comch doca-dma doca-common)"
for language in c c++; do
	"${CC:-gcc}" -DDOCA_ALLOW_EXPERIMENTAL_API -Wall -Wextra -Werror -x "$language" "$work/hello.c" -x none \
		"${options[@]}" -o "$work/hello"
	LD_LIBRARY_PATH=$kit/lib timeout 60 "$work/hello" > "$work/printed"
	diff "$work/shown" "$work/printed" || { echo "readme: the program prints something else" >&2; exit 1; }
done
echo "readme: ok"
