# Cases without dma-copy: the guests have what the others need, and these show what they would see without it.

case_verbs_devices() {
	keep ibv_devinfo -d "$rdma_device"
	grep -q PORT_ACTIVE "$work/output" || fail "the device of guest b is not active"
	keep at_a ibv_devinfo -d "$rdma_device"
	grep -q PORT_ACTIVE "$work/output" || fail "the device of guest a is not active"
}

# read_bandwidth SIZE: ib_read_bw of guest b from a, in MB/s; further arguments for both.
read_bandwidth() {
	local flags=(-d "$rdma_device" -x 1 -F -s "$1" --report_gbits "${@:2}") gbits
	at_a in_background ib_read_bw ib_read_bw "${flags[@]}"
	wait_until 20 at_a "ss -ltn | grep -q :18515"
	keep ib_read_bw "${flags[@]}" "$control_a" >&2
	gbits=$(awk -v size="$1" '$1 == size { print $4 }' "$work/output")
	[ -n "$gbits" ] || fail "ib_read_bw reports no rate"
	awk -v gbits="$gbits" 'BEGIN { printf "%.1f\n", gbits * 1000 / 8 }'
}

case_verbs_read_bandwidth() {
	measured "ib_read_bw of 512 KiB" "$(read_bandwidth 524288 -n 200)" MB/s
}

# UCX as dma-copy uses it: worker addresses that travel over TCP, and reads by the receiver. rc_v is rc_verbs, with
# ud_verbs for requests to connect, which it needs without a connection manager.
case_verbs_ucx_get() {
	export UCX_TLS=rc_v UCX_NET_DEVICES=$rdma_device:1
	at_a in_background ucx_perftest env UCX_TLS="$UCX_TLS" UCX_NET_DEVICES="$UCX_NET_DEVICES" ucx_perftest
	wait_until 20 at_a "ss -ltn | grep -q :13337"
	local rate
	keep ucx_perftest "$control_a" -t ucp_get -s 524288 -n 200 -w 20 -f -v
	rate=$(awk -F , '/^ *[0-9]/ { rate = $5 } END { print rate }' "$work/output")
	[ -n "$rate" ] || fail "ucx_perftest reports no rate"
	measured "ucx_perftest, ucp_get of 512 KiB" "$rate" MB/s
}

case_verbs_traffic_class_is_seen() {
	capture roce 'udp port 4791'
	read_bandwidth 65536 -n 20 --tclass 96
	captured roce > "$work/roce"
	head -n 5 "$work/roce"
	grep -q 'class 0x60' "$work/roce" || fail "no packet has the traffic class 96"
}

case_verbs_delay_and_loss() {
	impair delay 2ms loss 0.1%
	read_bandwidth 65536 -n 200 > /dev/null
	tc -s qdisc show dev data
}
