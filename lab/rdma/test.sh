#!/usr/bin/env bash
# Tests remote memory access over real verbs, without an RDMA card: boots two guests in qemu, each with a soft-RoCE
# device (the kernel's rdma_rxe), joined by a link that can be delayed and cut, and runs the cases of lab/rdma/cases
# with dma-copy, which the guests run from this machine's file system. test.sh [NAME...] runs the cases whose names
# begin with a NAME. Needs Debian on x86-64; installs missing packages, as root or by sudo. The guests are emulated, so
# this proves correctness, not speed.
#
# Logs and results are in build/rdma/log, the kernel in build/rdma/kernel. From the environment: PROGRAM, the program to
# test (bin/dma-copy); UCX_TEST, the test program of internal/ucx (build/rdma/ucx.test); ACCEL, the accelerator of qemu
# (tcg); GUEST_MEMORY in MiB (1024).
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$PWD/build/rdma
program=${PROGRAM:-bin/dma-copy}
ucx_test=${UCX_TEST:-$build/ucx.test}
log=$build/log
kernel=$build/kernel
guest_memory=${GUEST_MEMORY:-1024}
boot_time=180 # seconds, at most

fail() {
	echo "test-rdma: $*" >&2
	exit 1
}

# install_missing: the packages of commands and libraries that are missing here. The guests run them, too.
install_missing() {
	local missing=() wanted package
	while read -r wanted package; do
		case $wanted in
		/*) compgen -G "$wanted" > /dev/null || missing+=("$package") ;;
		*) command -v "$wanted" > /dev/null || missing+=("$package") ;;
		esac
	done <<- 'WANTED'
		qemu-system-x86_64 qemu-system-x86
		busybox busybox-static
		cpio cpio
		depmod kmod
		ip iproute2
		socat socat
		tcpdump tcpdump
		ib_read_bw perftest
		ibv_devinfo ibverbs-utils
		ucx_perftest ucx-utils
		/usr/lib/*/libucp.so.0 libucx0
		/usr/lib/*/libibverbs/librxe-rdmav*.so ibverbs-providers
	WANTED
	[ "${#missing[@]}" -gt 0 ] || return 0
	command -v apt-get > /dev/null || fail "missing packages, and no apt-get to install them: ${missing[*]}"
	local as_root=()
	[ "$(id -u)" -eq 0 ] || as_root=(sudo)
	"${as_root[@]}" apt-get update -q > "$log/install.log" 2>&1 &&
		"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
			"${missing[@]}" >> "$log/install.log" 2>&1 ||
		fail "cannot install ${missing[*]}: see $log/install.log"
}

# select_cases PREFIX...: lines NAME SECONDS, in the order of the files. A comment "# case_NAME: SECONDS s" in a file
# sets another time limit than the default.
select_cases() {
	local name seconds prefix
	while read -r name; do
		seconds=$(sed -n "s/^# case_$name: \([0-9]*\) s$/\1/p" lab/rdma/cases/*.sh)
		for prefix in "$@"; do
			[[ $name != "$prefix"* ]] || { printf '%s %s\n' "$name" "${seconds:-400}"; break; }
		done
	done < <(sed -n 's/^case_\([a-z0-9_]*\)() {.*/\1/p' lab/rdma/cases/*.sh)
}

# put_files GUEST: what a guest finds in /tmp/out. Its results come back there.
put_files() {
	mkdir -p "$log/$1/scripts"
	cp -r lab/rdma/{guest.sh,lib.sh,run-case.sh,cases} "$log/$1/scripts/"
	cp "$program" "$log/$1/dma-copy"
	cp "$ucx_test" "$log/$1/ucx.test"
}

# boot GUEST: starts a guest in the background. Guest a waits for connections on the links, b connects. Landlock is off
# (lsm=): it gives each thread credentials of its own, and then the kernel refuses a thread to send over a software RDMA
# device that another thread has opened, which UCX takes for a reason to abort. The kernel does not check its timer
# (no_timer_check): on a busy machine the emulated one may not fire in the time that the check waits, and the kernel
# panics.
boot() {
	local links=() link number=1 wait_or_connect=on
	[ "$1" = a ] || wait_or_connect=off
	for link in data control; do
		links+=(-netdev "stream,id=$link,server=$wait_or_connect,addr.type=unix,addr.path=$sockets/$link"
			-device "virtio-net-pci,netdev=$link,host_mtu=4500,mac=52:54:00:00:0$number:0$1")
		number=$((number + 1))
	done
	local options="console=ttyS0 quiet panic=-1 no_timer_check mitigations=off lsm= rdma_role=$1"
	qemu-system-x86_64 -machine "pc,accel=${ACCEL:-tcg}" -cpu max -smp 1 -m "$guest_memory" -nographic -no-reboot \
		-kernel "$kernel/vmlinuz" -initrd "$kernel/initrd.gz" -object rng-random,id=rng,filename=/dev/urandom \
		-device virtio-rng-pci,rng=rng -append "$options" \
		-virtfs local,path=/,mount_tag=machine,security_model=none,readonly=on,multidevs=remap \
		-virtfs "local,path=$log/$1,mount_tag=out,security_model=none,multidevs=remap" \
		"${links[@]}" < /dev/null > "$log/console-$1" 2>&1 &
	guests+=($!)
}

clean_up() {
	local guest
	for guest in "${guests[@]}"; do kill "$guest" 2> /dev/null || true; done
	wait
	rm -rf "$sockets" "$log"/{a,b}/{scripts,dma-copy,ucx.test,cases}
}

# follow: prints results as they come, until the last, a guest that ends, or the time limit.
follow() {
	local seen=0 end=$((SECONDS + $1)) lines
	until grep -q '^end$' "$log/b/results" 2> /dev/null; do
		kill -0 "${guests[0]}" 2> /dev/null || fail "guest a ended: see $log/console-a"
		kill -0 "${guests[1]}" 2> /dev/null || { sleep 1; break; }
		[ "$SECONDS" -lt "$end" ] || fail "not finished in time: see $log/console-b"
		show_results
		sleep 1
	done
	show_results
	grep -q '^end$' "$log/b/results" 2> /dev/null || fail "guest b ended early: see $log/console-b"
}

show_results() {
	[ -e "$log/b/results" ] || return 0
	lines=$(wc -l < "$log/b/results")
	[ "$lines" -gt "$seen" ] || return 0
	sed -n "$((seen + 1)),${lines}p" "$log/b/results" | sed '/^end$/d'
	seen=$lines
}

# conclude: the logs of cases that failed, what was measured, and the result.
conclude() {
	local name failed=0
	while read -r _ name _; do
		failed=$((failed + 1))
		printf '\n--- %s (%s)\n' "$name" "$log/b/$name.log"
		tail -n 40 "$log/b/$name.log"
	done < <(grep '^FAIL' "$log/b/results")
	[ ! -e "$log/b/measured" ] || { echo; cat "$log/b/measured"; }
	printf '\n%d cases, %d failed, %d s\n' "$(grep -c '^ok\|^FAIL' "$log/b/results")" "$failed" "$SECONDS"
	[ "$failed" -eq 0 ]
}

[ "$(uname -m)" = x86_64 ] || fail "the guests are x86-64: this machine is $(uname -m)"
[ -x "$program" ] || fail "$program is missing: make build"
[ -x "$ucx_test" ] || fail "$ucx_test is missing: go test -tags ucx -c -o $ucx_test ./internal/ucx"
mkdir -p "$build"
exec 9> "$build/lock"
flock -n 9 || fail "another run uses $build"
rm -rf "$log"
mkdir -p "$log"
install_missing
lab/rdma/initramfs.sh "$kernel"
sockets=$(mktemp -d) guests=()
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for guest in a b; do put_files "$guest"; done
[ $# -gt 0 ] || set -- ""
select_cases "$@" > "$log/b/cases"
[ -s "$log/b/cases" ] || fail "no case begins with $*"
boot a
for _ in $(seq 100); do [ ! -S "$sockets/control" ] || break; sleep 0.1; done
boot b
follow $((boot_time + $(awk '{ total += $2 + 20 } END { print total }' "$log/b/cases")))
conclude | tee "$log/summary"
