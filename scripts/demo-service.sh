#!/usr/bin/env bash
# Runs the ten commands at the beginning of guide/service.md over the software device: a daemon on the DPU and commands
# on the host, both with keys. Shows each command with its output, and fails if any of them does.
set -euo pipefail

program=$(realpath "${1:-bin/dma-copy}")
work=$(mktemp -d)
daemon=

# Ends the daemon and removes all files, however the demonstration ends.
clean_up() {
	[ -z "$daemon" ] || kill "$daemon" 2> /dev/null || true
	wait || true
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The sides connect through a private directory, and each has its own keys. Nothing else on this machine is used.
export DMA_COPY_SOFT_DIR=$work/device DMA_COPY_DRIVER=soft DMA_COPY_RUNTIME_DIR=$work/run
mkdir -m 700 "$DMA_COPY_SOFT_DIR"
mkdir "$work/host" "$work/dpu"

fail() {
	echo "demo-service: $*" >&2
	exit 1
}

# side NAME COMMAND...: runs a command of one side in its directory, instead of this shell. DPU_KEY and HOST_KEY are
# the lines that keys new printed there.
side() {
	local name=$1 words=() word
	shift
	for word in "$@"; do
		case $word in
		dma-copy) words+=("$program") ;;
		DPU_KEY) words+=("$(head -n 1 "$work/dpu.key")") ;;
		HOST_KEY) words+=("$(head -n 1 "$work/host.key")") ;;
		*) words+=("$word") ;;
		esac
	done
	cd "$work/$name"
	DMA_COPY_KEYS=$work/$name/keys exec "${words[@]}"
}

# run NAME COMMAND...: shows a command and its output.
run() {
	local failed=0
	printf '%-4s│ $ %s\n' "$1" "${*:2}"
	(side "$@") > "$work/out" 2>&1 || failed=$?
	sed "s/^/$(printf '%-4s│   ' "$1")/" "$work/out"
	[ "$failed" = 0 ] || fail "exit code $failed"
	case ${*:2} in
	'dma-copy keys new') cp "$work/out" "$work/$1.key" ;;
	'dma-copy keys trust dpu '*) same_words dpu ;;
	'dma-copy keys trust host '*) same_words host ;;
	esac
}

# same_words SIDE: compares the words that keys trust has just printed with those of the key that the side made.
same_words() {
	local made trusted
	made=$(sed -n 's/^# //p' "$work/$1.key")
	trusted=$(sed -n "s/^trusted $1: //p" "$work/out")
	[ -n "$made" ] && [ "$made" = "$trusted" ] || fail "the words of the key of $1 differ"
	echo "    │   (the words are the same on both sides)"
}

# serve NAME COMMAND...: shows a daemon's command, starts it and waits until it is ready.
serve() {
	printf '%-4s│ $ %s\n' "$1" "${*:2}"
	(side "$@") > "$work/daemon" 2>&1 &
	daemon=$!
	until grep -q '^ready ' "$work/daemon"; do
		kill -0 "$daemon" 2> /dev/null || { cat "$work/daemon" >&2; fail "the daemon has ended"; }
		sleep 0.05
	done
	sed "s/^/$(printf '%-4s│   ' "$1")/" "$work/daemon"
}

host() { run host "$@"; }

dpu() {
	case $2 in
	serve) serve dpu "$@" ;;
	*) run dpu "$@" ;;
	esac
}

# A test compares the following lines with docs/guide/service.md.
dpu  dma-copy keys new
host dma-copy keys new
host dma-copy keys trust dpu DPU_KEY
dpu  dma-copy keys trust host HOST_KEY
dpu  mkdir inbox
dpu  dma-copy serve -p 03:00.1 -r b1:00.1 --share inbox=inbox,rw
host dma-copy ping -p b1:00.1 :
host dma-copy push -p b1:00.1 /etc/hosts :inbox/
host dma-copy ls -p b1:00.1 -l :inbox
host dma-copy pull -p b1:00.1 :inbox/hosts copy

cmp /etc/hosts "$work/dpu/inbox/hosts"
cmp /etc/hosts "$work/host/copy"
kill -TERM "$daemon"
wait "$daemon" || fail "the daemon ended with exit code $?"
daemon=
echo "The file was copied to the share and back, between two sides that know each other's keys."
