# Copies that fail: a side that is killed or stopped, a link that is cut or loses packets. After each the same command
# has to succeed, and to continue where the failed one ended.

mib=1048576

# start_copy push|pull [MIB [RATE]]: starts a copy of a file that takes 12 s, and waits until a third of it has arrived.
start_copy() {
	local size=$((${2:-12} * mib))
	case $1 in
	push)
		make_file source "$size"
		command=(push "$work/source" "$remote/files/target")
		;;
	pull)
		at_a make_file share/source "$size"
		command=(pull "$remote/files/source" "$work/target")
		;;
	esac
	in_background copy "$program" "${command[@]}" "${client[@]}" --path rma --bwlimit "${3:-1MiB}" -o json
	wait_until 100 under_way $((size / 3)) || { cat /tmp/out/copy.log; fail "the copy has not begun"; }
}

# start_recorded_copy push|pull: starts a copy of which so much has arrived that the receiver's journal has recorded it,
# which happens every 16 MiB: a receiver that is killed records nothing more.
start_recorded_copy() {
	start_copy "$1" 60 5MiB
	wait_until 100 under_way $((32 * mib)) || { cat /tmp/out/copy.log; fail "the copy does not proceed"; }
}

# copy_ends CODE...: waits until the copy ends, which it has to soon after its idle timeout, and compares its exit code
# with those that are expected.
copy_ends() {
	local from=$EPOCHREALTIME code=0 expected
	wait_until 60 ended copy || copy_hangs
	wait "$(cat "$work/copy.pid")" || code=$?
	cat /tmp/out/copy.log
	measured "${FUNCNAME[-2]#case_}: the command ended with $code after $(elapsed "$from") s"
	for expected in "$@"; do [ "$code" != "$expected" ] || return 0; done
	fail "exit code $code, expected $*"
}

# copy_hangs: fails, with the goroutines of the copy in the log.
copy_hangs() {
	signal copy QUIT
	wait_until 20 ended copy
	cat /tmp/out/copy.log
	fail "the copy does not end"
}

# resumes: repeats the command, which has to send only what is missing.
resumes() {
	"$program" "${command[@]}" "${client[@]}" --path rma -o json > "$work/events" 2>&1 ||
		{ cat "$work/events"; fail "the same command does not succeed"; }
	cat "$work/events"
	grep -q '"resumed_bytes":[1-9]' "$work/events" || fail "the copy has begun again from the start"
	case ${command[0]} in
	push) same_as_a source target ;;
	pull) same_as_a target source ;;
	esac
}

killed_daemon() {
	start_daemon
	start_recorded_copy "$1"
	at_a signal daemon KILL
	copy_ends 7
	start_daemon
	resumes
}

case_fail_push_daemon_killed() { killed_daemon push; }
case_fail_pull_daemon_killed() { killed_daemon pull; }

stopped_daemon() {
	start_daemon
	start_copy "$1"
	at_a signal daemon STOP
	copy_ends 7
	at_a signal daemon CONT
	resumes
}

case_fail_push_daemon_stopped() { stopped_daemon push; }
case_fail_pull_daemon_stopped() { stopped_daemon pull; }

killed_command() {
	start_daemon
	start_recorded_copy "$1"
	signal copy KILL
	copy_ends 137
	resumes
}

case_fail_push_command_killed() { killed_command push; }
case_fail_pull_command_killed() { killed_command pull; }

# The daemon gives up a command that is stopped, and the command notices when it continues.
case_fail_command_stopped() {
	start_daemon
	start_copy push
	signal copy STOP
	wait_until 100 at_a "grep -q 'code.*7' /tmp/out/daemon.log" || fail "the daemon does not give up the command"
	signal copy CONT
	copy_ends 7
	resumes
}

# All packets are lost, which neither side is told.
cut_link() {
	start_daemon
	start_copy "$1"
	impair loss 100%
	copy_ends 7
	heal
	resumes
}

case_fail_push_link_cut() { cut_link push; }
case_fail_pull_link_cut() { cut_link pull; }

case_fail_link_down() {
	start_daemon
	start_copy push
	ip link set data down
	copy_ends 7
	heal
	resumes
}

# The kernel removes a software device when nobody uses it any more, so the copy succeeds. The next one needs it.
case_fail_rdma_device_removed() {
	start_daemon
	start_copy push
	rdma link delete "$rdma_device"
	copy_ends 0
	same_as_a source target
	if copy push "$work/source" "$remote/files/other"; then fail "the path rma was possible without a device"; fi
	heal
	copy push "$work/source" "$remote/files/other"
	used_rdma
}

# Delay and loss that RC and TCP have to make up for.
case_fail_delay_and_loss() {
	start_daemon
	impair delay 2ms loss 0.1%
	make_file source 8000000
	copy push "$work/source" "$remote/files/target"
	used_rdma
	same_as_a source target
	copy pull "$remote/files/target" "$work/back"
	cmp "$work/source" "$work/back"
}

case_fail_nothing_is_left() {
	start_daemon
	make_file source 3000000
	copy push "$work/source" "$remote/files/warm-up"
	local before after
	before=$(at_a daemon_descriptors)
	copy push "$work/source" "$remote/files/target"
	sleep 1
	after=$(at_a daemon_descriptors)
	[ "$after" -le "$before" ] || fail "the daemon had $before open files, and $after after another copy"
}
