#!/usr/bin/env bash
# Runs the measurements of docs/BENCHMARKS.md, writes the tables there between the markers, and the plots beside it. The
# results stay in build/bench as JSON. With arguments (engine model durable disk memory large trees connected
# machines) only these run. The summary at the top of the page is made of its tables; the argument summary does that
# alone.
set -euo pipefail
cd "$(dirname "$0")/.."

page=docs/BENCHMARKS.md
records=build/bench
program=bin/dma-copy
mkdir -p "$records"

# Replaces the text between two marker lines of the page with standard input.
put() {
	local name=$1 text
	text=$(mktemp)
	cat > "$text"
	awk -v from="<!-- $name -->" -v to="<!-- end of $name -->" -v text="$text" '
		$0 == to { inside = 0 }
		!inside { print }
		$0 == from { inside = 1; while ((getline line < text) > 0) print line }
	' "$page" > "$page.new"
	rm "$text"
	mv "$page.new" "$page"
}

# show NAME: prints a record as Markdown, with a plot unless it has trees, or single points only.
show() {
	local plot=(--plot "docs/bench-$1.svg")
	[[ $1 != large-* && $1 != trees-* && $1 != connected-* && $1 != machines-* ]] || plot=()
	"$program" bench show "$records/$1.json" -o markdown "${plot[@]}"
	[ "${#plot[@]}" -eq 0 ] || printf '\n![%s](bench-%s.svg)\n' "$1" "$1"
}

# measure NAME WHAT FLAGS...
measure() {
	local name=$1 record=$records/$1.json
	shift
	printf '\n=== %s ===\n' "$name" >&2
	"$program" bench "$@" -o json > "$record.new" || {
		local code=$?
		# 12: some candidates failed, which the tables show
		[ "$code" -eq 12 ] || { rm "$record.new"; return "$code"; }
	}
	mv "$record.new" "$record"
	show "$name" | put "$name"
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
		measure "$1" "$what" --dir "${@:3}"
	else
		echo "skipping $1: less than $2 MiB free in $3" >&2
	fi
}

disk() { copies disk 3000 "$records" --sizes 2MiB,64MiB,1GiB; }

memory() { copies memory 3000 /dev/shm --sizes 2MiB,64MiB,1GiB; }

# Only cp: with all tools these would take most of the time.
large() {
	copies large-disk 9000 "$records" --sizes 1GiB,4GiB --tools cp
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
	local dir=$records/ext4
	if mount_ext4 "$dir"; then
		trap 'unmount_ext4 "$records/ext4"' EXIT
		"$1" disk "$dir"
		trap - EXIT
		unmount_ext4 "$dir"
	else
		rm -f "$dir.img"
		echo "cannot mount an ext4 (that needs root and a loop device): measuring where the checkout is" >&2
		"$1" disk "$records"
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

durable() { copies durable 3000 "$records" --sizes 2MiB,64MiB,1GiB --durability full --tools cp; }

engine() { measure engine engine --chunks 4KiB,64KiB,256KiB,1MiB,2MiB --depths 1,2,4,8,16,32,64; }

# Without copying bytes, because this machine would be slower than the model.
model() {
	DMA_COPY_SOFT_LIMITS=move_bytes=0 measure model engine --model bluefield3 --runs 3 --sdk-log-level ERROR \
		--chunks 4KiB,64KiB,256KiB,1MiB,2MiB --depths 1,2,4,8,16,32,64,128
}

# cell BLOCK LABEL SIZE COLUMN: prints one cell of a table of the page, or a dash. LABEL is a regular expression.
cell() {
	awk -F ' *[|] *' -v block="$1" -v label="^($2)\$" -v size="$3" -v column="$4" '
		$0 == "<!-- " block " -->" { inside = 1 }
		$0 == "<!-- end of " block " -->" { inside = 0 }
		!inside { next }
		$2 == "" { at = size_at = 0; for (i = 2; i <= NF; i++) {
			if ($i == column) at = i
			if ($i == "size" || $i == "tree") size_at = i
		} }
		at && $2 ~ label && $size_at == size && $at != "" { print $at; found = 1; exit }
		END { if (!found) print "-" }' "$page"
}

# summary_row TEXT TABLES LABEL SIZE COLUMN: prints a row for both file systems. In LABEL, @ is the direction.
summary_row() {
	local text=$1 tables=$2 label=$3 size=$4 column=$5 system there back
	printf '| %s |' "$text"
	for system in disk memory; do
		there=${label//@/(host-to-dpu|push)} back=${label//@/(dpu-to-host|pull)}
		there=$(cell "$tables$system" "$there" "$size" "$column")
		back=$(cell "$tables$system" "$back" "$size" "$column")
		[ "$label" != "${label//@/}" ] && there="$there, $back"
		printf ' %s |' "$there"
	done
	printf '\n'
}

# The backquotes are Markdown.
# shellcheck disable=SC2016
summary() {
	local size
	{
		printf '| Copy | ext4 | tmpfs |\n|---|---:|---:|\n'
		for size in '2 MiB' '64 MiB' '1 GiB'; do
			summary_row "$size, a process started on each side" '' 'dma-copy @( [0-9]+ KiB)?' "$size" ratio
		done
		for size in '2 MiB' '64 MiB' '1 GiB'; do
			summary_row "$size, connected to a daemon" connected- 'dma-copy @ daemon dpu crc32c' "$size" ratio
		done
		summary_row '1 GiB, connected, `blake3`' connected- 'dma-copy @ daemon dpu blake3' '1 GiB' ratio
		summary_row '1 GiB, `rsync`' connected- rsync '1 GiB' ratio
		summary_row '10,000 small files, connected, to `cp -r`' connected- \
			'dma-copy @ daemon dpu crc32c' small 'to cp -r'
		summary_row 'the same, to `rsync -a`' connected- 'dma-copy @ daemon dpu crc32c' small 'to rsync -a'
		summary_row 'the same again, nothing changed, to `rsync -a`' connected- \
			'dma-copy @ daemon dpu crc32c again' small 'to rsync -a'
		summary_row '1 GiB over TCP without encryption, to `iperf3`' machines- \
			'dma-copy @ .*crc32c path tcp' '1 GiB' 'to iperf3'
		summary_row '1 GiB over TLS, to `socat` with OpenSSL' machines- \
			'dma-copy @ .*crc32c path tls' '1 GiB' 'to socat openssl'
		summary_row '1 GiB, share of the limit, connected' connected- \
			'dma-copy @ daemon dpu crc32c' '1 GiB' 'of limit'
	} | put summary
}

[ $# -gt 0 ] || set -- engine model durable disk memory large trees connected machines
for name in "$@"; do "$name"; done
[ "${*: -1}" = summary ] || summary
