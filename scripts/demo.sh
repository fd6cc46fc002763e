#!/usr/bin/env bash
# Copies files and a directory between a host and a DPU process over the software device, and verifies them.
# Shows the commands as typed in two terminals, and the output of each side.
set -euo pipefail

program=$(realpath "${1:-bin/dma-copy}")
go=${GO:-go}
work=$(mktemp -d)

# Ends the processes and removes all files, however the demonstration ends.
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

# The two processes connect through a private directory and use nothing else on this machine.
export DMA_COPY_SOFT_DIR=$work/runtime DMA_COPY_DRIVER=soft
mkdir -m 700 "$DMA_COPY_SOFT_DIR"
mkdir "$work/host" "$work/dpu"

# side NAME ARGUMENT...: runs one side in its own directory and exits with its exit code.
side() {
	cd "$work/$1"
	exec "$program" "${@:2}" > "$work/$1.out" 2>&1
}

# output_of NAME: prints the output of a side, marked with its name.
output_of() {
	sed "s/^/$(printf '%-4s│   ' "$1")/" "$work/$1.out"
}

# copy FILE [FLAG...]: runs both sides, that of the DPU with the flags; either may start first.
copy() {
	local host=(-p b1:00.1 -f "$1") dpu=(-p 03:00.1 -r b1:00.1 -f "$@") failed=0 host_pid dpu_pid
	echo "host│ \$ dma-copy ${host[*]}"
	echo "dpu │ \$ dma-copy ${dpu[*]}"
	side host "${host[@]}" & host_pid=$!
	side dpu "${dpu[@]}" & dpu_pid=$!
	wait "$host_pid" || failed=1
	wait "$dpu_pid" || failed=1
	output_of host
	output_of dpu
	[ "$failed" = 0 ] || { echo "demo: $1 was not copied" >&2; exit 1; }
	echo
}

# verify FILE: compares the files of both sides as read from disk. Here both are on one machine.
verify() {
	echo "    │ \$ dma-copy verify host/$1 dpu/$1"
	(cd "$work" && "$program" verify "host/$1" "dpu/$1") | sed 's/^/    │   /'
	echo
}

# round_trip FILE: copies it from the host to the DPU and, after removing it on the host, back.
round_trip() {
	cp "$work/host/$1" "$work/original"
	copy "$1"
	printf 'host│ $ rm %s\n' "$1"
	rm "$work/host/$1"
	copy "$1"
	verify "$1"
	cmp "$work/original" "$work/host/$1"
}

# make_tree DIRECTORY: creates a directory with files, an empty one, and a symlink.
make_tree() {
	mkdir -p "$work/host/$1/letters" "$work/host/$1/empty"
	for letter in a b c d e f g h; do
		echo "$letter" > "$work/host/$1/letters/$letter"
	done
	ln -s letters/a "$work/host/$1/first"
}

# verify_tree DIRECTORY: compares the copy of a directory with a manifest of the original.
verify_tree() {
	local write=(--write "host/$1.sums" --relative-to "host/$1" -l ERROR "host/$1")
	local check=(--extra --quiet "dpu/$1" "host/$1.sums")
	echo "    │ \$ dma-copy verify ${write[*]}"
	(cd "$work" && "$program" verify "${write[@]}") 2>&1 | sed 's/^/    │   /'
	echo "    │ \$ dma-copy verify ${check[*]}"
	(cd "$work" && "$program" verify "${check[@]}") | sed 's/^/    │   /'
	diff -r --no-dereference "$work/host/$1" "$work/dpu/$1"
	echo
}

cp "$("$go" env GOROOT)/bin/go" "$work/host/go"
: > "$work/host/empty"
printf 'Data by DMA, messages by Comch.\n' > "$work/host/words.txt"

for file in go empty words.txt; do
	round_trip "$file"
done

make_tree tree
copy tree
echo 'host│ $ echo B > tree/letters/b'
echo B > "$work/host/tree/letters/b"
copy tree --overwrite # copies the file that has changed
verify_tree tree
echo "All files were copied unchanged."
