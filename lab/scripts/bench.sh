#!/usr/bin/env bash
# Runs the measurements of docs/internals/benchmarks.md, keeps their records in lab/results, and updates the page
# and drawings. With arguments (engine model durable disk memory large trees connected machines) only these run.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=build/bench
records=lab/results
software=$(bin/dma-copy version -o json | sed -n 's/.*"version": *"\([^"]*\)".*/\1/p')
mkdir -p "$work"

# measure NAME PROGRAM ARGUMENT...: the record that the program writes replaces that of the name.
measure() {
	local name=$1 code=0
	printf '\n=== %s ===\n' "$name" >&2
	"${@:2}" > "$work/$name.new" || code=$?
	# 12: some candidates failed, which the tables show
	[ "$code" -eq 0 ] || [ "$code" -eq 12 ] || { rm "$work/$name.new"; return "$code"; }
	mv "$work/$name.new" "$records/$name.json"
}

# has_space MIB DIR: succeeds if there is that much free space.
has_space() {
	[ -d "$2" ] && [ "$(df --output=avail -m "$2" | tail -n 1)" -gt "$1" ]
}

# copies NAME MIB DIR FLAGS...: measures copies of files in DIR, or skips them if there is no space.
copies() {
	copies_of copy "$@"
}

# copies_of copy|tree|connected|machines NAME MIB DIR FLAGS...
copies_of() {
	local what=$1
	shift
	if has_space "$2" "$3"; then
		measure "$1" bin/lab "$what" --software "dma-copy $software" --dir "${@:3}"
	else
		echo "skipping $1: less than $2 MiB free in $3" >&2
	fi
}

disk() { copies disk 3000 "$work" --sizes 2MiB,64MiB,1GiB; }

memory() { copies memory 3000 /dev/shm --sizes 2MiB,64MiB,1GiB; }

# Only cp: with all tools these would take most of the time.
large() {
	copies large-disk 9000 "$work" --sizes 1GiB,4GiB --tools cp
	copies large-memory 9000 /dev/shm --sizes 1GiB,4GiB --tools cp
}

# mount_ext4 DIR: mounts a new ext4 with a journal, which a checkout need not be on, in an image of 8 GiB with an inode
# for each 4 KiB. unmount_ext4 removes it.
mount_ext4() {
	truncate -s 8G "$1.img" &&
		mkfs.ext4 -q -F -i 4096 -E lazy_itable_init=0,lazy_journal_init=0 -O has_journal "$1.img" &&
		mkdir -p "$1" && mount -o loop "$1.img" "$1"
}

unmount_ext4() {
	umount "$1" && rmdir "$1"
	rm -f "$1.img"
}

# on_ext4 FUNCTION runs FUNCTION disk DIR in an ext4 of its own where this user can mount one, and otherwise where the
# checkout is.
on_ext4() {
	local dir=$work/ext4
	if mount_ext4 "$dir"; then
		trap 'unmount_ext4 "$work/ext4"' EXIT
		"$1" disk "$dir"
		trap - EXIT
		unmount_ext4 "$dir"
	else
		rm -f "$dir.img"
		echo "cannot mount an ext4 (that needs root and a loop device): measuring where the checkout is" >&2
		"$1" disk "$work"
	fi
}

# tmpfs takes a page for each file. A directory of 100,000 files takes as long as everything else and is measured once.
trees() {
	on_ext4 trees_in
	trees_in memory /dev/shm
}

# trees_in NAME DIR
trees_in() {
	copies_of tree "trees-$1" 4000 "$2" --trees small,source,deep
	copies_of tree "trees-huge-$1" 4000 "$2" --trees huge-dir --runs 1
}

connected() {
	on_ext4 connected_in
	connected_in memory /dev/shm
}

# connected_in NAME DIR. blake3 is what auto chooses between keys.
connected_in() {
	copies_of connected "connected-$1" 4000 "$2" --sizes 2MiB,64MiB,1GiB --digests crc32c,blake3
}

machines() {
	on_ext4 machines_in
	machines_in memory /dev/shm
}

# machines_in NAME DIR. blake3 is what auto chooses between machines, crc32c is what the others are compared with.
machines_in() {
	copies_of machines "machines-$1" 4000 "$2" --sizes 2MiB,64MiB,1GiB --digests crc32c,blake3
}

durable() { copies durable 3000 "$work" --sizes 2MiB,64MiB,1GiB --durability full --tools cp; }

engine() {
	measure engine bin/lab engine --software "dma-copy $software" \
		--chunks 4KiB,64KiB,256KiB,1MiB,2MiB --depths 1,2,4,8,16,32,64
}

# Without copying bytes, because this machine would be slower than the model.
model() {
	DMA_COPY_SOFT_LIMITS=move_bytes=0 measure model bin/lab engine --software "dma-copy $software" \
		--model bluefield3 --runs 3 \
		--chunks 4KiB,64KiB,256KiB,1MiB,2MiB --depths 1,2,4,8,16,32,64,128
}

[ $# -gt 0 ] || set -- engine model durable disk memory large trees connected machines
for name in "$@"; do "$name"; done
bin/lab page "$records" docs/internals
