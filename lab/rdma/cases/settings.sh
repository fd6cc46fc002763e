# Settings that can be seen on the wire.

# link_local: the link-local address of this guest on the link data.
link_local() { ip -6 -br addr show dev data scope link | awk '{ sub("/.*", "", $3); print $3 }'; }

# sent_with_class PROTOCOL SOURCE: whether a captured packet of this guest has the traffic class 96.
sent_with_class() { grep -q "class 0x60,.*next-header $1 .*) $2\.[0-9]* > " "$work/packets"; }

# Both the packets of RoCE and those of the control connection have it. RoCE has the addresses of GID 0.
case_set_traffic_class() {
	start_daemon
	make_file source 3000000
	capture wire "udp port 4791 or tcp port $port"
	copy push --traffic-class 96 "$work/source" "$remote/files/target"
	captured wire > "$work/packets"
	grep -m 2 'next-header UDP' "$work/packets"
	grep -m 2 'next-header TCP' "$work/packets"
	sent_with_class UDP "$(link_local)" || fail "no packet of RoCE has the traffic class 96"
	sent_with_class TCP "${address_of[data-b]}" || fail "no packet of the control connection has the traffic class 96"
}

# GID 0 is the link-local address, GID 1 the other one.
case_set_gid_index() {
	local index address
	for index in 0 1; do
		address=fd09
		[ "$index" = 1 ] || address=fe80
		daemon_settings=(--gid-index "$index")
		start_daemon
		make_file source 3000000
		capture "gid-$index" 'udp port 4791'
		copy push --gid-index "$index" "$work/source" "$remote/files/target-$index"
		captured "gid-$index" > "$work/packets"
		head -n 2 "$work/packets"
		grep -q "$address" "$work/packets" || fail "no packet of RoCE has the address $address with GID $index"
		at_a stop_daemon
	done
}

# A second RDMA device, on the other link, must not be used.
case_set_net_devices() {
	rdma link add rxe1 type rxe netdev control
	at_a rdma link add rxe1 type rxe netdev control
	daemon_settings=(--net-devices rxe0:1)
	start_daemon
	make_file source 3000000
	copy push --net-devices rxe0:1 "$work/source" "$remote/files/target"
	used_rdma
	rdma link delete rxe1
	at_a rdma link delete rxe1
	if copy push --net-devices none:1 "$work/source" "$remote/files/other"; then
		fail "the path rma was possible without a device"
	fi
}

# gives_up TIMEOUT RETRIES: cuts the link in the middle of a pull, whose command reads, and sets took to how many
# milliseconds later the command ends because its RDMA device has given up, which is before the idle timeout.
gives_up() {
	in_background copy "$program" pull "${client[@]}" --path rma --ack-timeout "$1" --ack-retries "$2" \
		--bwlimit 1MiB -o json "$remote/files/source" "$work/target-$1"
	wait_until 100 under_way 4194304 || fail "the copy has not begun"
	impair loss 100%
	local from=${EPOCHREALTIME/./}
	wait_until 100 ended copy || fail "the copy does not end"
	took=$(((${EPOCHREALTIME/./} - from) / 1000))
	heal
	measured "set_ack_timeout: with $1 and $2 retries the command ended after $took ms"
	grep '^dma-copy:' /tmp/out/copy.log
	grep -q '^dma-copy: the connection to the server was lost' /tmp/out/copy.log ||
		fail "the device had not given up when the command ended"
}

# A device that waits shorter and retries less gives up sooner: at least by half of what the other one waits.
case_set_ack_timeout() {
	local took short
	start_daemon
	at_a "head -c 12582912 /dev/urandom > $work/share/source"
	gives_up 100ms 3
	short=$took
	gives_up 1s 6
	[ $((short + 3500)) -lt "$took" ] || fail "the device gave up after $short ms and $took ms"
}
