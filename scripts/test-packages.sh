#!/usr/bin/env bash
# Tests the packages in a clean Debian system below build/cache, which debootstrap makes once: installation, a copy
# between both sides, an upgrade that keeps changed settings, removal and purge, of which nothing may be left; and what
# the packages for RPM contain, install and remove. Needs root, and debootstrap, lintian, rpm, rpmlint and
# qemu-user-static of Debian. Uses what `make packages` has built, with versions of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly lower=0.9.0-rc1 upper=0.9.0
readonly clean=$PWD/build/cache/root
readonly out=$PWD/build/test-packages
readonly root=$out/root
# Exists while the service is enabled.
readonly enabled=etc/systemd/system/multi-user.target.wants/dma-copy.service

fail() {
	echo "test-packages: $1" >&2
	exit 1
}

for tool in debootstrap lintian rpm rpmlint qemu-aarch64-static; do
	command -v "$tool" > /dev/null ||
		fail "$tool is missing: apt install debootstrap lintian rpm rpmlint qemu-user-static"
done
[ "$(id -u)" -eq 0 ] || fail "has to be run as root"

# A system of its own for each run, with its own /proc; both end with the script.
if [ -z "${TEST_PACKAGES_UNSHARED:-}" ]; then
	TEST_PACKAGES_UNSHARED=1 exec unshare --mount --pid --fork --kill-child "$0"
fi

make_clean_root() {
	[ ! -e "$clean/complete" ] || return 0
	rm -rf "$clean"
	mkdir -p "$(dirname "$clean")"
	debootstrap --variant=minbase --include=systemd bookworm "$clean" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
	touch "$clean/complete"
}

new_root() {
	! mountpoint -q "$root/proc" || umount "$root/proc"
	rm -rf "$root"
	cp -a "$clean" "$root"
	mount -t proc proc "$root/proc"
	mkdir "$root/packages"
	cp "$out"/*/*.deb "$root/packages/"
}

# inside COMMAND...: runs a command in the system.
inside() {
	HOME=/root DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
}

# files: all files but those of the package managers and of systemctl, the locks and backups of the lists of users, and
# a directory that RPM's systems have.
files() {
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./packages -o -path ./tmp -o -path ./run/systemd \
		-o -path ./var/lib/dpkg -o -path ./var/lib/rpm \) -prune -o -print) |
		grep -vE '^\./(usr/share/licenses|var/log/dpkg\.log|etc/((passwd|shadow|group|gshadow)-|\.pwd\.lock))$' |
		LC_ALL=C sort
}

# same NAME: the files are those in $before.
same() {
	local after
	after=$(files)
	[ "$before" = "$after" ] && return
	diff <(echo "$before") <(echo "$after") >&2 || true
	fail "$1 left or removed these files"
}

# sorted EARLIER LATER: package managers sort the packages of two versions of the program so.
sorted() {
	local earlier later
	earlier=$(scripts/package-version.sh "$1")
	later=$(scripts/package-version.sh "$2")
	dpkg --compare-versions "$earlier-1" lt "$later-1" || fail "dpkg does not sort $earlier before $later"
	[ "$(rpm --eval "%{lua: print(rpm.vercmp('$earlier', '$later'))}")" = -1 ] ||
		fail "rpm does not sort $earlier before $later"
}

test_versions() {
	sorted v1.2.3-rc1 v1.2.3
	sorted 1.2.3-rc1 1.2.3-rc2
	sorted 1.2.3-beta.2 1.2.3-rc.1
	sorted 1.2.3-rc1 1.2.3-rc1-4-gabcdef0
	sorted 1.2.3-rc1-4-gabcdef0 1.2.3-rc2
	sorted 1.2.3 1.2.3-4-gabcdef0
	sorted 1.2.3-4-gabcdef0 1.2.3-12-g0abcdef-dirty
	sorted 1.2.3-dirty 1.2.4-rc1
	sorted abcdef0 0.0.1-rc1
	sorted dev 0.0.1-rc1
	! scripts/package-version.sh '1.0 x' > /dev/null 2>&1 || fail "a version with a space was accepted"
}

# build VERSION: its packages for both architectures in $out/VERSION.
build() {
	VERSION=$1 OUT=$out/$1 scripts/packages.sh > /dev/null
}

# later_settings: the deb of the upper version with other content of config.json, as a later release may have.
later_settings() {
	local deb
	deb=$(echo "$out/$upper"/*_amd64.deb)
	dpkg-deb -R "$deb" "$out/unpacked"
	echo '// later' >> "$out/unpacked/etc/dma-copy/config.json"
	(cd "$out/unpacked" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | xargs -0 md5sum > DEBIAN/md5sums)
	dpkg-deb --root-owner-group -b "$out/unpacked" "$root/packages/later.deb" > /dev/null
	rm -rf "$out/unpacked"
}

# Both sides in the system, over the software device, as a user without rights.
copy_inside() {
	inside install -d -m 777 /tmp/copy
	inside sh -c 'head -c 3000000 /dev/urandom > /tmp/copy/source'
	inside setpriv --reuid nobody --regid nogroup --clear-groups sh -euc '
		export DMA_COPY_SOFT_DIR=/tmp/copy/soft
		mkdir -m 700 /tmp/copy/soft
		dma-copy --driver soft -p b1:00.1 -f /tmp/copy/source --quiet &
		dma-copy --driver soft -p 03:00.1 -r b1:00.1 -f /tmp/copy/target --quiet
		wait "$!"
		cmp /tmp/copy/source /tmp/copy/target
	' || fail "a copy failed"
	inside rm -r /tmp/copy
}

check_installed() {
	local file
	inside dpkg -V dma-copy || fail "dpkg -V found differences"
	for file in lib/systemd/system/dma-copy{,@}.service usr/lib/{sysusers,tmpfiles}.d/dma-copy.conf \
		etc/dma-copy/README usr/share/doc/dma-copy/{copyright,THIRD_PARTY_NOTICES.gz,sbom.cdx.json} \
		usr/share/doc/dma-copy/docs/{guide/service.md,reference/metrics.md,audit.schema.json} \
		usr/share/doc/dma-copy/examples/grafana/{alerts.yml,dma-copy.json} etc/logrotate.d/dma-copy \
		usr/share/man/man1/dma-copy.1.gz; do
		[ -s "$root/$file" ] || [ -L "$root/$file" ] || fail "$file was not installed"
	done
	inside systemd-analyze verify --man=no --recursive-errors=no dma-copy.service dma-copy@x.service ||
		fail "the units are not valid"
	[ "$(inside stat -c '%U %G %a' /var/lib/dma-copy)" = "dma-copy dma-copy 750" ] || fail "/var/lib/dma-copy is wrong"
	for file in config.json examples/{client,dpu,host,serve}.json; do
		inside dma-copy config check "/etc/dma-copy/$file" > /dev/null || fail "$file is not valid"
	done
	[ ! -L "$root/$enabled" ] || fail "the service was enabled"
}

test_deb() {
	local before
	new_root
	later_settings
	before=$(files)

	inside dpkg -i "/packages/dma-copy_0.9.0~rc1-1_amd64.deb" > /dev/null
	check_installed
	copy_inside

	# The changes of an administrator: own settings, changes of ours, a share with a file, a service that is enabled.
	echo '// ours' >> "$root/etc/dma-copy/config.json"
	cp "$root/etc/dma-copy/examples/serve.json" "$root/etc/dma-copy/serve.json"
	install -D /dev/null "$root/var/lib/dma-copy/inbox/file"
	inside systemctl --quiet enable dma-copy dma-copy@image

	inside dpkg --force-confdef --force-confold -i /packages/later.deb > /dev/null 2>&1
	[ "$(inside dpkg-query -W dma-copy)" = $'dma-copy\t0.9.0-1' ] || fail "the upgrade has another version"
	[ "$(tail -n 1 "$root/etc/dma-copy/config.json")" = '// ours' ] || fail "the upgrade did not keep changed settings"
	[ -L "$root/$enabled" ] || fail "the upgrade disabled the service"
	copy_inside

	inside dpkg -r dma-copy > /dev/null
	[ ! -e "$root/usr/bin/dma-copy" ] || fail "the program is left after removal"
	[ -e "$root/etc/dma-copy/config.json" ] || fail "removal also removed settings"
	[ -z "$(find "$root/etc/systemd/system" -name 'dma-copy*')" ] || fail "removal left the service enabled"

	inside dpkg -P dma-copy > /dev/null 2>&1
	[ -e "$root/var/lib/dma-copy/inbox/file" ] || fail "purge removed a file of a share"
	[ -e "$root/etc/dma-copy/serve.json" ] || fail "purge removed settings that the package did not install"
	rm -r "$root/var/lib/dma-copy" "$root/etc/dma-copy"
	same "purge"

	inside dpkg -i "/packages/dma-copy_0.9.0-1_amd64.deb" > /dev/null
	inside dpkg -P dma-copy > /dev/null
	same "installation and purge"
	echo "deb: installed, copied, upgraded, removed, purged"
}

# Errors of lintian fail; so do overrides that nothing needs any more.
test_lintian() {
	lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$out/$upper"/*.deb ||
		fail "lintian reports errors or warnings"
	echo "lintian: no errors and no warnings"
}

# in_root COMMAND...: rpm of this machine for the other system, whose database it creates.
in_root() {
	rpm --root "$root" --dbpath /var/lib/rpm --nodeps "$@"
}

test_rpm() {
	local before rpm=$out/$upper/dma-copy-0.9.0-1.x86_64.rpm
	[ "$(rpm -qp --qf '%{VERSION}' "$out/$lower"/*.x86_64.rpm)" = '0.9.0~rc1' ] || fail "the rpm has another version"
	rpm -qp --configfiles "$rpm" | grep -x /etc/dma-copy/config.json > /dev/null ||
		fail "config.json is no file of settings"
	rpm -qp --requires "$rpm" | grep '^glibc >= ' > /dev/null || fail "the rpm does not need the C library"
	new_root
	before=$(files)
	in_root -i "$out/$lower"/*.x86_64.rpm
	in_root -V dma-copy || fail "rpm -V found differences"
	[ -s "$root/usr/share/licenses/dma-copy/THIRD_PARTY_NOTICES" ] || fail "the rpm has no licences of others"
	copy_inside
	echo '// ours' >> "$root/etc/dma-copy/config.json"
	inside systemctl --quiet enable dma-copy
	in_root -U "$rpm"
	[ "$(tail -n 1 "$root/etc/dma-copy/config.json")" = '// ours' ] || fail "the rpm did not keep changed settings"
	[ -L "$root/$enabled" ] || fail "the rpm disabled the service"
	copy_inside
	in_root -e dma-copy
	[ "$(tail -n 1 "$root/etc/dma-copy/config.json.rpmsave")" = '// ours' ] || fail "removal lost changed settings"
	rm -r "$root/etc/dma-copy"
	same "removal of the rpm"
	echo "rpm: installed, copied, upgraded, removed"
}

# rpmlint unpacks by cpio, which would write the absolute names of nfpm's packages to this machine.
test_rpmlint() {
	mkdir -p "$out/bin"
	printf '#!/bin/sh\nexec %s --no-absolute-filenames "$@"\n' "$(command -v cpio)" > "$out/bin/cpio"
	chmod 755 "$out/bin/cpio"
	PATH=$out/bin:$PATH rpmlint -c packaging/rpmlint.toml "$out/$upper"/*.rpm || fail "rpmlint reports errors"
}

# paths DEB: the files in it.
paths() {
	dpkg-deb -c "$1" | awk '{ print $1, $6 }' | LC_ALL=C sort
}

test_arm64() {
	local arm64=$out/$upper/dma-copy_0.9.0-1_arm64.deb
	diff <(paths "$out/$upper/dma-copy_0.9.0-1_amd64.deb") <(paths "$arm64") ||
		fail "the architectures have other files"
	dpkg-deb -x "$arm64" "$out/arm64"
	local report program=(qemu-aarch64-static -L /usr/aarch64-linux-gnu "$out/arm64/usr/bin/dma-copy")
	"${program[@]}" version > /dev/null || fail "the program for arm64 does not run"
	report=$("${program[@]}" doctor --driver ucx 2>&1 || true) # it fails where UCX or keys are missing
	[[ $report != *'this dma-copy was built without it'* ]] || fail "the program for arm64 does not bind UCX"
	echo "arm64: the same files, and a program that runs"
}

make_clean_root
rm -rf "$out"
# rpm creates a database in the home directory even for queries of files.
mkdir -p "$out/home"
export HOME=$out/home
test_versions
build "$lower"
build "$upper"
test_lintian
test_rpmlint
test_arm64
test_deb
test_rpm
umount "$root/proc"
rm -rf "$out"
