#!/usr/bin/env bash
# Changes a file that is in the target already, copies it again, and prints as a table how many bytes are read of source
# and target and how many are sent, beside rsync, which also compares blocks here (--no-whole-file). SIZE is the size in
# MiB (95 if not set), DIR where the files are. Needs rsync and strace, which counts what is read of the two files.
set -euo pipefail
cd "$(dirname "$0")/../.."

size=${SIZE:-95}
program=$PWD/bin/dma-copy
folder=$(mktemp -d -p "${DIR:-/var/tmp}" dma-copy-changes.XXXXXX)
trap 'rm -rf "$folder"' EXIT
export DMA_COPY_SOFT_DIR=$folder/run DMA_COPY_DRIVER=soft
mkdir -m 700 "$folder/run"
for tool in rsync strace; do
	type -P "$tool" > /dev/null || { echo "changes.sh: $tool is missing: install its package" >&2; exit 1; }
done
head -c "${size}M" /dev/urandom > "$folder/original"

# The changes, each of the file named by $1. All but the one of the mode set another time: rsync looks at seconds.
touched() { touch -d @2000000000 "$1"; }
mode() { chmod 600 "$1"; }
byte() { printf x | dd of="$1" bs=1 seek=$((size * 1024 * 512)) conv=notrunc status=none; touched "$1"; }
appended() { echo 'one more line' >> "$1"; touched "$1"; }
inserted() { { echo 'one more line'; cat "$folder/original"; } > "$1"; touched "$1"; }

# count COMMAND...: prints the bytes read of source and target by system calls, and stores what the command prints.
count() {
	strace -f -qq -e trace=read,pread64,readv,preadv,preadv2,copy_file_range \
		-P "$folder/from/file" -P "$folder/to/file" -o "$folder/trace" "$@" > "$folder/output"
	awk '$NF ~ /^[0-9]+$/ { sum += $NF } END { print sum + 0 }' "$folder/trace"
}

copied() { count "$program" local -l 10 -p b1:00.0 --overwrite -o json "$folder/from" "$folder/to"; }
synced() { count rsync -a --no-whole-file --stats "$folder/from/" "$folder/to/"; }

# sent TOOL: bytes of content that came from the source.
sent() {
	case $1 in
	copied) sed -n 's/.*"type":"summary".*"copied_bytes":\([0-9]*\).*/\1/p' "$folder/output" ;;
	synced) sed -n 's/^Literal data: \([0-9,]*\) bytes/\1/p' "$folder/output" | tr -d , ;;
	esac
}

# mib BYTES: in MiB.
mib() { awk -v bytes="$1" 'BEGIN { printf bytes < 104858 ? bytes " B" : "%.1f MiB", bytes / 1048576 }'; }

echo "| Change of a file of $size MiB | dma-copy reads | sends | rsync reads | sends |"
echo '|---|---:|---:|---:|---:|'
for change in 'touched:another time' 'mode:another mode' 'byte:one byte' 'appended:one line at the end' \
	'inserted:one line at the beginning'; do
	row="| ${change#*:} |"
	for tool in copied synced; do
		rm -rf "$folder/from" "$folder/to"
		mkdir "$folder/from"
		cp "$folder/original" "$folder/from/file"
		cp -a "$folder/from" "$folder/to"
		"${change%%:*}" "$folder/from/file"
		reads=$("$tool")
		cmp -s "$folder/from/file" "$folder/to/file" || { echo "changes.sh: $tool left another content" >&2; exit 1; }
		row+=" $(mib "$reads") | $(mib "$(sent "$tool")") |"
	done
	echo "$row"
done
