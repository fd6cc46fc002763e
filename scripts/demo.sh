#!/usr/bin/env bash
# Copies real files between a host and a DPU process over the software device, both ways, and verifies them. It shows the
# commands as one would type them in two terminals, and what each side prints.
set -euo pipefail

program=$(realpath "${1:-bin/dma-copy}")
go=${GO:-go}
work=$(mktemp -d)

# The processes are ended and everything is removed, whichever way the demonstration ends.
clean_up() {
	local running
	running=$(jobs -p)
	[ -z "$running" ] || kill $running 2> /dev/null || true
	wait || true
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The two processes meet in a private directory and touch nothing else on this machine.
export DMA_COPY_SOFT_DIR=$work/runtime DMA_COPY_DRIVER=soft
mkdir -m 700 "$DMA_COPY_SOFT_DIR"
mkdir "$work/host" "$work/dpu"

# side NAME ARGUMENT...: one side in its own directory, as in a terminal of its own. Its exit code is the program's.
side() {
	cd "$work/$1"
	exec "$program" "${@:2}" > "$work/$1.out" 2>&1
}

# said NAME: what a side has printed, marked with its name.
said() {
	sed "s/^/$(printf '%-4s│   ' "$1")/" "$work/$1.out"
}

# copy FILE: both sides at once; either may be first.
copy() {
	local host=(-p b1:00.1 -f "$1") dpu=(-p 03:00.1 -r b1:00.1 -f "$1") failed=0 host_pid dpu_pid
	echo "host│ \$ dma-copy ${host[*]}"
	echo "dpu │ \$ dma-copy ${dpu[*]}"
	side host "${host[@]}" & host_pid=$!
	side dpu "${dpu[@]}" & dpu_pid=$!
	wait "$host_pid" || failed=1
	wait "$dpu_pid" || failed=1
	said host
	said dpu
	[ "$failed" = 0 ] || { echo "demo: $1 was not copied" >&2; exit 1; }
	echo
}

# verify FILE: both sides' files, which here are on one machine, as their disks have them.
verify() {
	echo "    │ \$ dma-copy verify host/$1 dpu/$1"
	(cd "$work" && "$program" verify "host/$1" "dpu/$1") | sed 's/^/    │   /'
	echo
}

# round_trip FILE: from the host to the DPU, and after the host has lost its file, back.
round_trip() {
	cp "$work/host/$1" "$work/original"
	copy "$1"
	printf 'host│ $ rm %s\n' "$1"
	rm "$work/host/$1"
	copy "$1"
	verify "$1"
	cmp "$work/original" "$work/host/$1"
}

cp "$("$go" env GOROOT)/bin/go" "$work/host/go"
: > "$work/host/empty"
printf 'Bytes by DMA, words by Comch.\n' > "$work/host/words.txt"

for file in go empty words.txt; do
	round_trip "$file"
done
echo "All files arrived as they were, in both directions."
