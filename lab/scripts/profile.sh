#!/usr/bin/env bash
# Copies a file between two processes on the software device, with a CPU profile of each, and prints the functions that
# take the time. SIZE is the size of the file (1G if not set), SENDER host or dpu. The profiles stay in build/profile
# for `go tool pprof`.
set -euo pipefail
cd "$(dirname "$0")/../.."

size=${SIZE:-1G}
sender=${SENDER:-host}
folder=$PWD/build/profile
program=$PWD/bin/dma-copy
export DMA_COPY_SOFT_DIR=$folder/run DMA_COPY_DRIVER=soft

rm -rf "$folder"
mkdir -p "$folder/run"
chmod 700 "$folder/run"
trap 'rm -rf "$folder"/run "$folder"/*.file' EXIT
head -c "$size" /dev/urandom > "$folder/$sender.file"

copy() {
	local side=$1
	shift
	"$program" "$@" -f "$folder/$side.file" --durability none --cpuprofile "$folder/$side.pprof"
}
copy dpu -p 03:00.0 -r b1:00.0 &
copy host -p b1:00.0
wait $!

for side in host dpu; do
	printf '\n=== %s ===\n' "$side"
	"${GO:-go}" tool pprof -top -nodecount 25 "$program" "$folder/$side.pprof" 2> /dev/null
done
