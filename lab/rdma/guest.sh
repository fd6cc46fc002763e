#!/usr/bin/env bash
# guest.sh a|b: what a guest of test.sh does. Guest a executes the commands that b sends it; b runs the cases named in
# /tmp/out/cases and writes a line for each to /tmp/out/results: "ok NAME SECONDS" or "FAIL NAME SECONDS".
set -uo pipefail
. /tmp/out/scripts/lib.sh

set_up() {
	ip link set lo up
	local name
	for name in data control; do
		rename_interface "${mac_of["$name-$1"]}" "$name"
		ip link set "$name" mtu "$mtu" up
	done
	ip addr add "${address_of["control-$1"]}/24" dev control
	ip addr add "${address_of["data-$1"]}/64" dev data nodad
	add_rdma_device || return
	cp /tmp/out/dma-copy "$program" # each page of which would be read over 9p whenever it is executed
	hostname "guest-$1"
}

rename_interface() {
	local at
	for at in /sys/class/net/*; do
		[ "$(cat "$at/address")" != "$1" ] || { ip link set "$(basename "$at")" name "$2"; return; }
	done
	echo "no interface has the address $1" >&2
	return 1
}

serve_commands() {
	socat -t 90 TCP-LISTEN:9,bind="$control_a",reuseaddr,fork EXEC:/bin/bash,stderr
}

run_cases() {
	local name seconds result
	wait_until 120 at_a true || { echo "guest a does not answer" >&2; return 1; }
	while read -r name seconds; do
		local from=$EPOCHREALTIME
		echo "=== $name"
		if timeout -k 10 "$seconds" bash /tmp/out/scripts/run-case.sh "$name" < /dev/null > "/tmp/out/$name.log" 2>&1
		then result=ok; else result=FAIL; fi
		echo "$result $name $(elapsed "$from")" | tee -a /tmp/out/results
		at_a clean_up > /dev/null 2>&1
	done < /tmp/out/cases
	echo end >> /tmp/out/results
}

set_up "$1" || { echo "the guest cannot be set up" >&2; exit 1; }
case $1 in
a) serve_commands ;;
b) run_cases ;;
esac
