#!/usr/bin/env bash
# Copies between network namespaces, each a machine of its own, over links that are delayed, lossy, slow and cut: make
# test-netns. There is one client, with a link to each server. The links are cmd/dma-copy/e2e/tunlink, because many
# kernels lack netem. Needs root and /dev/net/tun, and installs iproute2 if it is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."

program=$(realpath "${1:-bin/dma-copy}")
readonly idle=3 # seconds of --idle-timeout
readonly client=dma-copy-client-$$ server=dma-copy-server-$$ # and the number of the server
readonly port=7447
readonly servers=(1 2 3)
work=
daemons=()
links=()

address_of() { echo "192.0.2.${1}1"; } # of a server

url=ucx://$(address_of 1):$port/box
readonly url

fail() {
	echo "test-netns: $*" >&2
	exit 1
}

clean_up() {
	kill -KILL "${daemons[@]}" "${links[@]}" 2> /dev/null || true
	wait 2> /dev/null || true
	local number
	ip netns del "$client" 2> /dev/null || true
	for number in "${servers[@]}"; do ip netns del "$server-$number" 2> /dev/null || true; done
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

# link_end NUMBER NAMESPACE ADDRESS PEER listen|dial TEXT: one end of a link, whose settings come from a FIFO, as soon
# as it says the text.
link_end() {
	local end=$work/$1.$5
	ip netns exec "$2" ip tuntap add dev "tun$1" mode tun
	ip -n "$2" address add "$3" peer "$4" dev "tun$1"
	ip -n "$2" link set "tun$1" up
	mkfifo "$end.settings"
	ip netns exec "$2" "$work/tunlink" "tun$1" "$work/$1.link" "$5" 0<> "$end.settings" > "$end.log" 2>&1 &
	links+=($!)
	await "$end.log" "$6"
}

machine() {
	ip netns add "$1"
	ip -n "$1" link set lo up
}

make_network() {
	local number there here
	go build -o "$work/tunlink" ./cmd/dma-copy/e2e/tunlink
	machine "$client"
	for number in "${servers[@]}"; do
		there=$(address_of "$number") here=192.0.2.${number}2
		machine "$server-$number"
		link_end "$number" "$server-$number" "$there" "$here" listen listening
		link_end "$number" "$client" "$here" "$there" dial ready
		await "$work/$number.listen.log" ready
	done
}

# await FILE TEXT: waits until a line of the file begins with the text.
await() {
	for _ in $(seq 200); do
		! grep -qs "^$2" "$1" || return 0
		sleep 0.05
	done
	cat "$1" >&2
	fail "no line \"$2\" in $1"
}

# link NUMBER SETTINGS...: what a link does to packets, in either direction.
link() {
	local end
	for end in listen dial; do echo "${*:2}" > "$work/$1.$end.settings"; done
	sleep 0.1
}

keys() { "$program" keys "$@" --keys "$work/$side/keys"; }

make_keys() {
	local side number
	side=here
	mkdir "$work/here"
	keys new > "$work/here.line"
	for number in "${servers[@]}"; do
		mkdir -p "$work/$number/box"
		side=$number
		keys new > "$work/$number.line"
		keys trust client "$work/here.line" > /dev/null
		side=here
		keys trust "server$number" "$work/$number.line" > /dev/null
	done
}

# start_daemon NUMBER
start_daemon() {
	ip netns exec "$server-$1" "$program" serve --listen "$(address_of "$1"):$port" \
		--share box="$work/$1/box",rw --keys "$work/$1/keys" --runtime-dir "$work/$1/run" \
		--idle-timeout ${idle}s --path tls > "$work/$1/daemon.log" 2>&1 &
	daemons[$1]=$!
	await "$work/$1/daemon.log" ready
}

# command_here ARGUMENTS...: a command on the client.
command_here() {
	ip netns exec "$client" timeout 120 "$program" "$@" --keys "$work/here/keys" \
		--idle-timeout ${idle}s --wait 10s --quiet
}

# content NAME SIZE: a file of random bytes on the client.
content() { head -c "$2" /dev/urandom > "$work/here/$1"; }

# same NUMBER NAME: compares a file of the client with that of a server.
same() { cmp "$work/here/$2" "$work/$1/box/$2" || fail "$2 was not copied to server $1 as it is"; }

# Both directions, with a file and a tree.
copies() {
	rm -rf "$work/here/data" "$work/here/back" "$work/1/box/"*
	mkdir "$work/here/data"
	content data/large "$1"
	local i
	for i in $(seq 200); do content "data/small$i" $((i * 50)); done
	command_here push "$work/here/data" "$url/data"
	command_here pull "$url/data" "$work/here/back"
	diff -r "$work/here/data" "$work/1/box/data" || fail "the tree was not sent as it is"
	diff -r "$work/here/data" "$work/here/back" || fail "the tree was not received as it is"
}

# interrupted NAME FAILURE REPAIR: a copy of 40 MB at 5 MB/s fails in the middle, within the idle timeout and a
# second, and the same command completes it.
interrupted() {
	local name=$1 failure=$2 repair=$3 code=0 began took
	rm -rf "$work/1/box/"*
	content file 40000000
	link 1 delay=1ms rate=5000000
	command_here push "$work/here/file" "$url/file" > "$work/command.log" 2>&1 &
	local copying=$!
	sleep 2
	$failure
	began=$(date +%s%N)
	wait $copying || code=$?
	took=$((($(date +%s%N) - began) / 1000000))
	[ "$code" != 0 ] || fail "$name: the copy succeeded"
	[ ! -e "$work/1/box/file" ] || fail "$name: there is a file of the final name"
	$repair
	link 1 delay=1ms
	command_here push "$work/here/file" "$url/file"
	same 1 file
	echo "$name: exit code $code after $took ms: $(tail -n 1 "$work/command.log")"
	[ $took -le $(((idle + 1) * 1000 + 500)) ] || fail "$name: it took longer than the idle timeout and a second"
}

link_down() { link 1 down; }
link_up() { link 1 delay=1ms; }
stop_daemon() { kill -STOP "${daemons[1]}"; }
continue_daemon() { kill -CONT "${daemons[1]}"; }
kill_daemon() {
	kill -KILL "${daemons[1]}"
	wait "${daemons[1]}" 2> /dev/null || true
}
restart_daemon() { start_daemon 1; }

# over NAME SIZE SETTINGS...: copies over such a link.
over() {
	link 1 "${@:3}"
	copies "$2"
	echo "$1: ok"
}

push_to_all() { command_here push "$work/here/file" :box/ --to "$work/peers" -o json > "$work/events"; }

# ended NUMBER CODE: checks how the last push_to_all ended for a server.
ended() {
	grep '"type":"peer"' "$work/events" | grep "\"line\":$1," | grep -q "\"code\":$2[,}]" ||
		{ cat "$work/events" >&2; fail "several servers: not exit code $2 for server $1"; }
}

sent_to() { ip netns exec "$client" cat "/sys/class/net/tun$1/statistics/tx_bytes"; }

# A push to three servers: one on a good link, one behind delay and loss, and one whose link is cut in the middle. The
# first two have the file. The same command sends to the third what is missing, and nothing to the others.
several() {
	local number code=0 size=6000000 before after # bytes sent to server 3
	for number in "${servers[@]}"; do
		rm -rf "$work/$number/box/"*
		echo "ucx://$(address_of "$number"):$port"
	done > "$work/peers"
	content file $size
	link 1 delay=1ms
	link 2 delay=10ms loss=0.01
	link 3 delay=1ms rate=1000000
	before=$(sent_to 3)
	push_to_all &
	local copying=$!
	for _ in $(seq 300); do
		[ $(($(sent_to 3) - before)) -lt $((size / 2)) ] || break
		sleep 0.1
	done
	link 3 down
	wait $copying || code=$?
	[ "$code" = 12 ] || fail "several servers: exit code $code, expected 12"
	ended 1 0
	ended 2 0
	ended 3 7
	same 1 file
	same 2 file
	[ ! -e "$work/3/box/file" ] || fail "several servers: server 3 has a file of the final name"
	link 3 delay=1ms
	before=$(sent_to 3)
	push_to_all
	after=$(sent_to 3)
	for number in "${servers[@]}"; do ended "$number" 0; done
	same 3 file
	[ $((after - before)) -lt $((size - 1000000)) ] || fail "several servers: $((after - before)) bytes sent again"
	echo "several servers: the second push sent $((after - before)) of $size bytes to the one that was cut off"
}

make_network
make_keys
for number in "${servers[@]}"; do start_daemon "$number"; done
over "a good link" 20000000
over "20 ms there and back" 20000000 delay=10ms
over "20 ms, and 1 % of the packets lost" 2000000 delay=10ms loss=0.01
over "packets out of order and repeated" 5000000 delay=1ms reorder=0.05 duplicate=0.01
over "20 Mbit/s" 3000000 rate=2500000
over "changed packets" 2000000 corrupt=0.001
interrupted "link down" link_down link_up
interrupted "daemon stopped" stop_daemon continue_daemon
interrupted "daemon killed" kill_daemon restart_daemon
several
echo "test-netns: all passed"
