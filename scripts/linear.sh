#!/usr/bin/env bash
# Copies files of growing size and prints the time per MiB, which is constant if the total time is linear in the size.
# The files are sparse, on tmpfs, copied as zeros and written to /dev/null, so that neither memory nor a disk has to
# hold them. The sizes are interleaved in ROUNDS rounds (5 if not set); SIZES lists them in MiB.
set -euo pipefail
cd "$(dirname "$0")/.."

sizes=${SIZES:-64 256 1024 4096 16384}
rounds=${ROUNDS:-5}
program=$PWD/bin/dma-copy
folder=$(mktemp -d -p /dev/shm dma-copy-linear.XXXXXX)
trap 'rm -rf "$folder"' EXIT
export DMA_COPY_SOFT_DIR=$folder/run DMA_COPY_DRIVER=soft
mkdir -m 700 "$folder/run"

# copy MIB: prints the time of the copy in microseconds, from the connection of both sides on.
copy() {
	local seconds
	"$program" -p 03:00.0 -r b1:00.0 -f - --quiet > /dev/null &
	seconds=$("$program" -p b1:00.0 -f "$folder/$1" --sparse never -o json |
		sed -n '/"type":"summary"/s/.*"elapsed_seconds":\([0-9.]*\).*/\1/p')
	wait $!
	awk -v seconds="$seconds" 'BEGIN { printf "%d\n", seconds * 1000000 }'
}

for size in $sizes; do
	truncate -s "${size}M" "$folder/$size"
done
for ((round = 0; round < rounds; round++)); do
	for size in $sizes; do
		copy "$size" >> "$folder/times.$size"
	done
done
printf '%8s  %14s  %8s  %8s\n' MiB 'us/MiB: median' min max
for size in $sizes; do
	sort -n "$folder/times.$size" | awk -v size="$size" '
		{ time[NR] = $1 / size }
		END { printf "%8d  %14.1f  %8.1f  %8.1f\n", size, time[int((NR + 1) / 2)], time[1], time[NR] }'
done
