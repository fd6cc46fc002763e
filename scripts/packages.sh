#!/usr/bin/env bash
# Makes the packages for Debian and RPM of both ARCHITECTURES (amd64 and arm64) in the directory OUT (build/packages),
# from bin/dma-copy, bin/dma-copy-arm64 and what else `make packages` has built. Also takes VERSION, GLIBC and
# STRIP_ARM64 from the environment, and the time of all files from SOURCE_DATE_EPOCH, by default that of the commit.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly nfpm=$PWD/build/tools/nfpm
out=$(realpath -m "${OUT:-build/packages}")
stage=

PACKAGE_VERSION=$(scripts/package-version.sh "$VERSION")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory='*' log -1 --format=%ct)}
export PACKAGE_VERSION SOURCE_DATE_EPOCH GLIBC

# The files of the program's own installation, and then those for a system.
fill_stage() {
	DESTDIR=$stage scripts/install.sh install /usr
	"$2" --strip-all -o "$stage/usr/bin/dma-copy" "$1"
	gzip -9n "$stage"/usr/share/man/man*/*
	fill_documentation "$stage/usr/share/doc/dma-copy"
	mkdir -p "$stage"/usr/lib/{systemd/system,sysusers.d,tmpfiles.d}
	cp packaging/systemd/dma-copy{,@}.service "$stage/usr/lib/systemd/system/"
	cp packaging/systemd/dma-copy.sysusers "$stage/usr/lib/sysusers.d/dma-copy.conf"
	cp packaging/systemd/dma-copy.tmpfiles "$stage/usr/lib/tmpfiles.d/dma-copy.conf"
	mkdir -p "$stage/etc/examples"
	cp packaging/etc/* "$stage/etc/"
	cp packaging/logrotate "$stage/etc/logrotate"
	cp configs/{client,dpu,host,serve}.json "$stage/etc/examples/"
	cp -r packaging/maintainer "$stage/maintainer"
	chmod -R u=rwX,go=rX "$stage"
}

# fill_documentation DIRECTORY: Debian and RPM have different names for the same.
fill_documentation() {
	mkdir -p "$1"/{deb,examples} "$stage/usr/share/lintian/overrides"
	cp packaging/systemd/network.conf "$1/examples/"
	cp -r examples/grafana "$1/examples/"
	mkdir -p "$1/docs"
	cp -r docs/*.md docs/*.schema.json docs/guide docs/reference "$1/docs/"
	cp packaging/debian-copyright "$1/deb/copyright"
	cp packaging/lintian-overrides "$stage/usr/share/lintian/overrides/dma-copy"
	cp build/licences/sbom.cdx.json CHANGELOG.md "$1/"
	cp build/licences/sbom.cdx.json "$1/deb/"
	gzip -9nc "$1/THIRD_PARTY_NOTICES" > "$1/deb/THIRD_PARTY_NOTICES.gz"
	gzip -9nc CHANGELOG.md > "$1/deb/changelog.gz"
	debian_changelog | gzip -9nc > "$1/deb/changelog.Debian.gz"
}

debian_changelog() {
	printf 'dma-copy (%s-1) stable; urgency=medium\n\n  * See changelog.gz.\n\n' "$PACKAGE_VERSION"
	printf ' -- dma-copy maintainers <maintainers@dma-copy.example>  %s\n' \
		"$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
}

# make_packages ARCHITECTURE BINARY STRIP
make_packages() {
	stage=$(mktemp -d)
	trap 'rm -rf "$stage"' EXIT
	fill_stage "$2" "$3"
	(
		cd "$stage"
		ARCH=$1 UNIT_DIR=/lib/systemd/system "$nfpm" package -f "$OLDPWD/packaging/nfpm.yaml" -p deb -t "$out"
		ARCH=$1 UNIT_DIR=/usr/lib/systemd/system "$nfpm" package -f "$OLDPWD/packaging/nfpm.yaml" -p rpm -t "$out"
	)
	rm -rf "$stage"
}

rm -rf "$out"
mkdir -p "$out"
for architecture in ${ARCHITECTURES:-amd64 arm64}; do
	case $architecture in
		amd64)
			[ "$(uname -m)" = x86_64 ] || { echo "packages: amd64 needs an x86-64 machine" >&2; exit 1; }
			make_packages amd64 bin/dma-copy strip
			;;
		arm64) make_packages arm64 bin/dma-copy-arm64 "$STRIP_ARM64" ;;
		*) echo "packages: no packages for $architecture" >&2; exit 1 ;;
	esac
done
(cd "$out" && sha256sum -- *.deb *.rpm > SHA256SUMS)
