# What the guests' scripts and the cases share; sourced by bash in both guests. Guest a has the daemon, b the commands.
# The guests are joined by two links: data, which cases delay and cut and which has the RDMA device, and control, over
# which b controls a.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp/work LC_ALL=C
ulimit -l unlimited

mtu=4500 # so that RoCE has an MTU of 4096
rdma_device=rxe0
port=7447
work=/tmp/work
program=/tmp/dma-copy

declare -A mac_of=(
	[data-a]=52:54:00:00:01:0a [data-b]=52:54:00:00:01:0b
	[control-a]=52:54:00:00:02:0a [control-b]=52:54:00:00:02:0b
)
# The link data has IPv6 only: with UCX 1.13 and rxe of Linux 6.1, UCX receives no datagrams (UD, which it needs to
# connect) over an IPv4 GID. GID 0 is the link-local address, GID 1 the one below.
declare -A address_of=(
	[data-a]=fd09:1::a [data-b]=fd09:1::b
	[control-a]=10.9.2.10 [control-b]=10.9.2.11
)
a=${address_of[data-a]}
control_a=${address_of[control-a]}

# elapsed FROM: the seconds since the time FROM, which was $EPOCHREALTIME.
elapsed() { awk -v from="$1" -v now="$EPOCHREALTIME" 'BEGIN { printf "%.1f\n", now - from }'; }

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# keep COMMAND...: executes a command, with its output in $work/output and, also if it does not end, in the log.
keep() { "$@" | tee "$work/output"; }

# measured WHAT VALUE UNIT: a line for the summary at the end.
measured() { echo "measured: $*" | tee -a /tmp/out/measured; }

# add_rdma_device: adds the device of the link data, unless it is there, and waits until it can be used.
add_rdma_device() {
	[ -e "/sys/class/infiniband/$rdma_device" ] || rdma link add "$rdma_device" type rxe netdev data || return
	wait_until 20 rdma_device_is_ready
}

rdma_device_is_ready() {
	local port=/sys/class/infiniband/$rdma_device/ports/1
	grep -qs ACTIVE "$port/state" && grep -qs '^fd09:' "$port/gids/1"
}

# wait_until SECONDS COMMAND...: repeats a command until it succeeds.
wait_until() {
	local end=$((SECONDS + $1))
	shift
	until "$@" > /dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || { echo "not within the time limit: $*" >&2; return 1; }
		sleep 0.2
	done
}

# at_a COMMAND...: executes a command in guest a, with the functions of this file, prints its output and returns its
# exit code. It does not wait for the end of the connection, which a command in the background may delay.
at_a() {
	local socket line output='' code=''
	exec {socket}<> "/dev/tcp/$control_a/9" || return
	printf '. /tmp/out/scripts/lib.sh\n(\n%s\n) < /dev/null\n' "$*" >&"$socket"
	printf 'printf "\\n=exit %%d\\n" $?\nexit\n' >&"$socket"
	while [ -z "$code" ] && IFS= read -r line; do
		case $line in
		'=exit '*) code=${line#=exit } ;;
		*) output+=$line$'\n' ;;
		esac
	done <&"$socket"
	exec {socket}>&-
	[ -n "$code" ] || { echo "guest a answers '$output'" >&2; return 255; }
	printf %s "${output%$'\n'}"
	return "$code"
}

# in_background NAME COMMAND...: starts a command that outlives the caller, with its output in /tmp/out/NAME.log.
in_background() {
	local name=$1
	shift
	(
		set +x # whose descriptor is inherited, too
		close_inherited
		exec setsid "$@"
	) < /dev/null > "/tmp/out/$name.log" 2>&1 &
	echo $! > "$work/$name.pid"
}

# close_inherited: closes what a shell of serve_commands has of socat, which would wait until nobody has it any more.
close_inherited() {
	local at number
	for at in /proc/self/fd/*; do
		number=${at##*/}
		[ "$number" -le 2 ] || eval "exec $number>&-" 2> /dev/null || true
	done
}

# signal NAME SIGNAL: sends a signal to what in_background has started.
signal() { kill "-$2" "$(cat "$work/$1.pid")"; }

ended() { ! kill -0 "$(cat "$work/$1.pid")" 2> /dev/null; }

# clean_up: ends what a case has left in this guest, and removes its files except the keys.
clean_up() {
	local file
	for file in "$work"/*.pid; do
		[ ! -e "$file" ] || kill -KILL -- "-$(cat "$file")" "$(cat "$file")" 2> /dev/null || true
	done
	find "$work" -mindepth 1 -maxdepth 1 ! -name keys -exec rm -rf {} +
	heal
}

# impair NETEM...: delays or loses what this guest sends over the link data.
impair() { tc qdisc replace dev data root netem limit 10000 "$@"; }

# heal: makes links and devices what they were at the beginning.
heal() {
	tc qdisc del dev data root 2> /dev/null || true
	ip link set data up
	ip addr replace "${address_of["data-${HOSTNAME#guest-}"]}/64" dev data nodad
	rdma link delete rxe1 2> /dev/null || true
	add_rdma_device
}

# capture NAME FILTER: starts to capture packets on the link data; captured NAME ends it and prints them.
capture() {
	tcpdump -i data -nn -v -U --immediate-mode -s 128 -w "$work/$1.pcap" "$2" 2> "$work/$1.tcpdump" &
	echo $! > "$work/$1.pid"
	wait_until 20 grep -q 'listening on' "$work/$1.tcpdump"
}

captured() {
	kill -INT "$(cat "$work/$1.pid")"
	wait "$(cat "$work/$1.pid")" 2> /dev/null || true
	rm "$work/$1.pid"
	tcpdump -nn -v -r "$work/$1.pcap" 2> /dev/null
}

# The daemon, and the commands that use it.

remote=ucx://[$a]:$port
export DMA_COPY_KEYS=$work/keys DMA_COPY_RUNTIME_DIR=$work/run DMA_COPY_VERBOSE=true
idle=30s # longer than a guest on a busy machine takes to connect
client=(--wait 30s --idle-timeout "$idle")

# start_daemon: starts the daemon in guest a and waits until it is ready; with keys, and with daemon_settings.
daemon_settings=()
start_daemon() {
	exchange_keys
	at_a "mkdir -p $work/share && in_background daemon $program serve --listen '[$a]:$port' \
		--share files=$work/share,rw --path rma,tls --idle-timeout $idle ${daemon_settings[*]}"
	wait_until 30 at_a grep -q '^ready ' /tmp/out/daemon.log || { at_a cat /tmp/out/daemon.log; fail "no daemon"; }
}

stop_daemon() {
	signal daemon TERM
	wait_until 20 ended daemon
}

daemon_descriptors() { find "/proc/$(cat "$work/daemon.pid")/fd" -type l | wc -l; }

# exchange_keys: makes a key in each guest that the other one trusts, unless they have them.
exchange_keys() {
	[ ! -d "$work/keys" ] || return 0
	local here there
	here=$("$program" keys new | sed -n 1p)
	there=$(at_a "$program keys new" | sed -n 1p)
	"$program" keys trust a "$there"
	at_a "$program keys trust b '$here'"
}

# copy push|pull|sync ARGUMENTS...: a copy over the path rma, whose output stays in $work/summary.
copy() {
	local code=0
	"$program" "$1" "${client[@]}" --path rma "${@:2}" > "$work/summary" 2>&1 || code=$?
	cat "$work/summary"
	return "$code"
}

# used_rdma: fails unless the last copy was over the path rma. A side that reads also knows transport and device.
used_rdma() {
	grep -q '^path  *rma' "$work/summary" || fail "the copy was not over the path rma"
	grep -q '^ok  *sent' "$work/summary" || grep -q "rma over rc_verbs/$rdma_device:1" "$work/summary" ||
		fail "the summary does not name rc_verbs"
}

# make_file NAME SIZE: random content.
make_file() { mkdir -p "$(dirname "$work/$1")" && head -c "$2" /dev/urandom > "$work/$1"; }

# make_tree DIRECTORY COUNT: COUNT files of different sizes in 10 directories, an empty directory and a symlink.
make_tree() {
	local number
	mkdir -p "$1"/{0..9} "$1/empty"
	for number in $(seq "$2"); do head -c $((number * 137)) /dev/urandom > "$1/$((number % 10))/file-$number"; done
	ln -s file-1 "$1/1/link"
}

# same_as_a LOCAL REMOTE: compares a file of this guest with one of the share.
same_as_a() {
	local here there
	here=$(sha256sum < "$work/$1")
	there=$(at_a "sha256sum < '$work/share/$2'")
	[ "$here" = "$there" ] || fail "$1 and $2 differ"
}

# arrived: how many bytes of content the copy in the background has reported, which has -o json. The partial file does
# not tell: its space is allocated at the beginning.
arrived() { sed -n 's/.*"phase":"moving","bytes":\([0-9]*\).*/\1/p' /tmp/out/copy.log | tail -n 1; }

# under_way BYTES: succeeds if the copy in the background has reported at least so many.
under_way() { [ "$(arrived || true)" -ge "$1" ]; }

# rdma_packets: how many packets the RDMA device of this guest has sent so far.
rdma_packets() { cat "/sys/class/infiniband/$rdma_device/ports/1/hw_counters/sent_pkts"; }
