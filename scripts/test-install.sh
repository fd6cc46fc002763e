#!/usr/bin/env bash
# Tests `make install` and `make uninstall` in an empty directory: what install creates, uninstall removes, and nothing
# that others put there.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DESTDIR=$work/root

fail() {
	echo "test-install: $1" >&2
	exit 1
}

# files: the files and directories below $DESTDIR.
files() {
	(cd "$DESTDIR" && find . | LC_ALL=C sort)
}

# A file of another program, in directories that install also uses.
mkdir -p "$DESTDIR/opt/share/man/man1"
echo > "$DESTDIR/opt/share/man/man1/other.1"
before=$(files)

scripts/install.sh install /opt
for file in bin/dma-copy share/man/man1/dma-copy.1 share/bash-completion/completions/dma-copy \
	share/zsh/site-functions/_dma-copy share/fish/vendor_completions.d/dma-copy.fish \
	share/doc/dma-copy/{LICENSE,THIRD_PARTY_NOTICES}; do
	[ -s "$DESTDIR/opt/$file" ] || fail "$file was not installed"
done
compgen -G "$DESTDIR/opt/share/man/man5/*.5" > /dev/null || fail "no page of section 5 was installed"
"$DESTDIR/opt/bin/dma-copy" version > /dev/null || fail "the program does not run"

# A second install, over one that had a further page.
echo opt/share/man/man1/dma-copy-former.1 >> "$DESTDIR/opt/share/doc/dma-copy/installed"
echo > "$DESTDIR/opt/share/man/man1/dma-copy-former.1"
scripts/install.sh install /opt
echo > "$DESTDIR/opt/bin/other"
scripts/install.sh uninstall /opt
after=$(files)
expected=$(printf '%s\n' "$before" ./opt/bin ./opt/bin/other | LC_ALL=C sort)
if [ "$after" != "$expected" ]; then
	diff <(echo "$expected") <(echo "$after") >&2 || true
	fail "uninstall left or removed these files"
fi

! scripts/install.sh uninstall /opt 2> /dev/null || fail "uninstall succeeded where nothing is installed"
# An install that cannot write one of its files fails, and what it has written can be removed.
mkdir -p "$DESTDIR/opt/share/zsh/site-functions/_dma-copy"
before=$(files)
! scripts/install.sh install /opt 2> /dev/null || fail "install succeeded without one of its files"
scripts/install.sh uninstall /opt
[ "$(files)" = "$before" ] || fail "uninstall after a failed install left or removed files"
echo "make install and uninstall: ok"
