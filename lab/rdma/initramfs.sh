#!/usr/bin/env bash
# initramfs.sh DIR: downloads Debian's kernel and writes DIR/vmlinuz and DIR/initrd.gz, for the guests of test.sh. What
# is already there is kept; remove DIR to get the latest kernel.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"

# The guests' devices and file systems, soft-RoCE, the commands of rdma and tc that cases use, and packet capture.
modules=(
	virtio_pci virtio_net virtio_rng 9pnet_virtio 9p overlay rdma_rxe rdma_ucm ib_uverbs sch_netem af_packet
	crc32c_generic crc32_generic
)
applets=(sh mount mkdir insmod cat poweroff chroot)

fail() {
	echo "test-rdma: $*" >&2
	exit 1
}

# Downloads the package that linux-image-amd64 stands for, and unpacks it to ./kernel.
get_kernel() {
	local package depends
	depends=$(apt-cache depends linux-image-amd64 2> /dev/null) || true
	package=$(awk '/Depends: linux-image-/ { print $2; exit }' <<< "$depends")
	[ -n "$package" ] ||
		fail "no kernel for the guests: apt has no package linux-image-amd64 (this needs Debian, after apt-get update)"
	apt-get download -q "$package" 2> download.log || fail "cannot download $package: $(tail -n 1 download.log)"
	rm -rf kernel
	dpkg -x "$package"_*.deb kernel || fail "cannot unpack $package"
	rm -f "$package"_*.deb download.log
}

# with_dependencies RELEASE: the files of the modules, each after those it depends on.
with_dependencies() {
	local module
	for module in "${modules[@]}"; do
		modprobe -d kernel -S "$1" --show-depends "$module" || fail "kernel $1 has no module $module"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

build() {
	local release file name applet
	release=$(ls kernel/lib/modules)
	depmod -b kernel "$release"
	rm -rf initramfs
	mkdir -p initramfs/{bin,proc,sys,dev,modules,machine,changes,root}
	cp "$(command -v busybox)" initramfs/bin/busybox
	for applet in "${applets[@]}"; do ln -s busybox "initramfs/bin/$applet"; done
	cp "$here/guest-init" initramfs/init
	chmod 755 initramfs/init
	while read -r file; do
		name=$(basename "$file")
		case $name in
		*.xz) xz -dc "$file" > "initramfs/modules/${name%.xz}" ;;
		*.zst) zstd -qdc "$file" > "initramfs/modules/${name%.zst}" ;;
		*) cp "$file" initramfs/modules/ ;;
		esac
		sed 's/\.ko.*/.ko/' <<< "$name" >> initramfs/modules/order
	done < <(with_dependencies "$release")
	[ -s initramfs/modules/order ] || exit 1 # with_dependencies has said why
	(cd initramfs && find . | cpio -o -H newc --quiet | gzip -1) > initrd.new
	cp kernel/boot/vmlinuz-* vmlinuz
	rm -rf kernel initramfs
	mv initrd.new initrd.gz
}

# A change of the guests' init or of this file makes a new one.
inputs=$(sha256sum "$here/guest-init" "$here/initramfs.sh" | sha256sum)
if [ -s vmlinuz ] && [ -s initrd.gz ] && [ "$(cat inputs 2> /dev/null)" = "$inputs" ]; then
	exit 0
fi
get_kernel
build
printf '%s\n' "$inputs" > inputs
