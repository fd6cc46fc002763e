#!/usr/bin/env bash
# Copies between two network namespaces, each a machine of its own, over a link that is delayed, lossy, slow and cut:
# make test-netns. The link is cmd/dma-copy/e2e/tunlink, because many kernels lack netem. Needs root and /dev/net/tun,
# and installs iproute2 if it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

program=$(realpath "${1:-bin/dma-copy}")
readonly idle=3 # seconds of --idle-timeout
readonly client=dma-copy-client-$$ server=dma-copy-server-$$
readonly address=192.0.2.1 port=7447
readonly url=ucx://$address:$port/box
work=
daemon=
links=()

fail() {
	echo "test-netns: $*" >&2
	exit 1
}

clean_up() {
	kill -KILL $daemon "${links[@]}" 2> /dev/null || true
	wait 2> /dev/null || true
	ip netns del "$client" 2> /dev/null || true
	ip netns del "$server" 2> /dev/null || true
	[ -z "$work" ] || rm -rf "$work"
}

[ "$(id -u)" = 0 ] || fail "needs root, for network namespaces"
[ -c /dev/net/tun ] || fail "needs /dev/net/tun"
if ! command -v ip > /dev/null; then
	apt-get update -qq && apt-get install -qq --no-install-recommends iproute2
fi
"$program" serve --help | grep -q -e --listen || fail "$program has no serve --listen"
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
work=$(mktemp -d)

# machine NAMESPACE ADDRESS PEER listen|dial: a namespace with one end of the link, whose settings come from a FIFO.
machine() {
	ip netns add "$1"
	ip -n "$1" link set lo up
	ip netns exec "$1" ip tuntap add dev tun0 mode tun
	ip -n "$1" address add "$2" peer "$3" dev tun0
	ip -n "$1" link set tun0 up
	mkfifo "$work/$4.settings"
	ip netns exec "$1" "$work/tunlink" tun0 "$work/link" "$4" 0<> "$work/$4.settings" > "$work/$4.log" 2>&1 &
	links+=($!)
	await "$work/$4.log" "$5"
}

make_network() {
	go build -o "$work/tunlink" ./cmd/dma-copy/e2e/tunlink
	machine "$server" $address 192.0.2.2 listen listening
	machine "$client" 192.0.2.2 $address dial ready
	await "$work/listen.log" ready
}

# await FILE TEXT: waits until a line of the file begins with the text.
await() {
	for _ in $(seq 200); do
		! grep -q "^$2" "$1" || return 0
		sleep 0.05
	done
	cat "$1" >&2
	fail "no line \"$2\" in $1"
}

# link SETTINGS...: what the link does to packets, in either direction.
link() {
	echo "$*" > "$work/listen.settings"
	echo "$*" > "$work/dial.settings"
	sleep 0.1
}

keys() { "$program" keys "$@" --keys "$work/$side/keys"; }

make_keys() {
	local side
	mkdir -p "$work/here" "$work/there/box"
	for side in here there; do keys new > "$work/$side.line"; done
	side=here keys trust server "$work/there.line" > /dev/null
	side=there keys trust client "$work/here.line" > /dev/null
}

start_daemon() {
	ip netns exec "$server" "$program" serve --listen $address:$port \
		--share box="$work/there/box",rw --keys "$work/there/keys" --runtime-dir "$work/run" \
		--idle-timeout ${idle}s --path tls > "$work/daemon.log" 2>&1 &
	daemon=$!
	await "$work/daemon.log" ready
}

# command_here ARGUMENTS...: a command on the client.
command_here() {
	ip netns exec "$client" timeout 120 "$program" "$@" --keys "$work/here/keys" \
		--idle-timeout ${idle}s --wait 10s --quiet
}

# content NAME SIZE: a file of random bytes on the client.
content() { head -c "$2" /dev/urandom > "$work/here/$1"; }

same() { cmp "$work/here/$1" "$work/there/box/$2" || fail "$1 was not copied as it is"; }

# Both directions, with a file and a tree.
copies() {
	rm -rf "$work/here/data" "$work/here/back" "$work/there/box/"*
	mkdir "$work/here/data"
	content data/large "$1"
	local i
	for i in $(seq 200); do content "data/small$i" $((i * 50)); done
	command_here push "$work/here/data" "$url/data"
	command_here pull "$url/data" "$work/here/back"
	diff -r "$work/here/data" "$work/there/box/data" || fail "the tree was not sent as it is"
	diff -r "$work/here/data" "$work/here/back" || fail "the tree was not received as it is"
}

# interrupted NAME FAILURE REPAIR: a copy of 40 MB at 5 MB/s fails in the middle, within the idle timeout and a
# second, and the same command completes it.
interrupted() {
	local name=$1 failure=$2 repair=$3 code=0 began took
	rm -rf "$work/there/box/"*
	content file 40000000
	link delay=1ms rate=5000000
	command_here push "$work/here/file" "$url/file" > "$work/command.log" 2>&1 &
	local copying=$!
	sleep 2
	$failure
	began=$(date +%s%N)
	wait $copying || code=$?
	took=$((($(date +%s%N) - began) / 1000000))
	[ "$code" != 0 ] || fail "$name: the copy succeeded"
	[ ! -e "$work/there/box/file" ] || fail "$name: there is a file of the final name"
	$repair
	link delay=1ms
	command_here push "$work/here/file" "$url/file"
	same file file
	echo "$name: exit code $code after $took ms: $(tail -n 1 "$work/command.log")"
	[ $took -le $(((idle + 1) * 1000 + 500)) ] || fail "$name: it took longer than the idle timeout and a second"
}

link_down() { link down; }
link_up() { link delay=1ms; }
stop_daemon() { kill -STOP "$daemon"; }
continue_daemon() { kill -CONT "$daemon"; }
kill_daemon() {
	kill -KILL "$daemon"
	wait "$daemon" 2> /dev/null || true
	daemon=
}

# over NAME SIZE SETTINGS...: copies over such a link.
over() {
	link "${@:3}"
	copies "$2"
	echo "$1: ok"
}

make_network
make_keys
start_daemon
over "a good link" 20000000
over "20 ms there and back" 20000000 delay=10ms
over "20 ms, and 1 % of the packets lost" 2000000 delay=10ms loss=0.01
over "packets out of order and repeated" 5000000 delay=1ms reorder=0.05 duplicate=0.01
over "20 Mbit/s" 3000000 rate=2500000
over "changed packets" 2000000 corrupt=0.001
interrupted "link down" link_down link_up
interrupted "daemon stopped" stop_daemon continue_daemon
interrupted "daemon killed" kill_daemon start_daemon
echo "test-netns: all passed"
