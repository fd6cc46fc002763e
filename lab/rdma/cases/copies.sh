# Copies without failures. Each case has a daemon in guest a with the share files, and commands in guest b.

case_copy_pushes_a_file() {
	start_daemon
	make_file source 6000003
	copy push "$work/source" "$remote/files/target"
	used_rdma
	same_as_a source target
}

case_copy_pulls_a_file() {
	start_daemon
	at_a make_file share/source 6000003
	copy pull "$remote/files/source" "$work/target"
	used_rdma
	same_as_a target source
}

case_copy_sizes() {
	start_daemon
	local size
	for size in 0 1 4097 1048577; do
		make_file "file-$size" "$size"
		copy push "$work/file-$size" "$remote/files/file-$size"
		same_as_a "file-$size" "file-$size"
		copy pull "$remote/files/file-$size" "$work/back-$size"
		cmp "$work/file-$size" "$work/back-$size"
	done
}

case_copy_digests() {
	start_daemon
	make_file source 3000001
	local digest
	for digest in none crc32c blake3 sha256; do
		copy push --digest "$digest" "$work/source" "$remote/files/$digest"
		used_rdma
		same_as_a source "$digest"
	done
}

# A tree both ways, and the repetition of a copy.
case_copy_tree() {
	start_daemon
	make_tree "$work/tree" 100
	copy push "$work/tree" "$remote/files/tree"
	used_rdma
	copy pull "$remote/files/tree" "$work/back"
	diff -r "$work/tree" "$work/back"
	copy sync "$work/tree" "$remote/files/tree"
	rm "$work/tree/0/file-10"
	copy sync --delete "$work/tree" "$remote/files/tree"
	copy sync --delete "$remote/files/tree" "$work/back"
	diff -r "$work/tree" "$work/back"
}

case_copy_moves_content_by_rdma() {
	start_daemon
	make_file source 8000000
	local before packets
	before=$(rdma_packets)
	copy push "$work/source" "$remote/files/target"
	packets=$(($(rdma_packets) - before))
	[ "$packets" -gt $((8000000 / 4096)) ] || fail "the RDMA device has sent $packets packets only"
}

# RDMA devices are used only if the command asks for them.
case_copy_by_default_uses_tls() {
	start_daemon
	make_file source 3000000
	"$program" push "${client[@]}" "$work/source" "$remote/files/target" 2>&1 | tee "$work/summary"
	grep -q '^path  *tls .*(encrypted)' "$work/summary" || fail "the copy was not encrypted"
	same_as_a source target
}

case_copy_over_tls() {
	start_daemon
	make_file source 3000000
	"$program" push "${client[@]}" --encrypt "$work/source" "$remote/files/target" 2>&1 | tee "$work/summary"
	grep -q '^path  *tls .*(encrypted)' "$work/summary" || fail "the copy was not encrypted"
	same_as_a source target
}

# The ratio to ib_read_bw between the same guests, in both directions.
case_copy_rate() {
	local bandwidth
	bandwidth=$(read_bandwidth 524288 -n 200)
	daemon_settings=(--digest none) # a digest would be computed by emulated instructions
	start_daemon
	make_file source 134217728
	copy push -o json --digest none "$work/source" "$remote/files/target"
	measured_copy "push of 128 MiB" "$bandwidth"
	copy pull -o json --digest none "$remote/files/target" "$work/target"
	measured_copy "pull of 128 MiB" "$bandwidth"
	cmp "$work/source" "$work/target"
}

# measured_copy WHAT BANDWIDTH: the rate of the last copy, which had -o json, until its last second and without its
# start, beside the rate of ib_read_bw.
measured_copy() {
	local rate
	rate=$(sed -n '/"phase":"moving"/s/.*"bytes_per_second":\([0-9.e+]*\),.*/\1/p' "$work/summary" | tail -n 1)
	[ -n "$rate" ] || fail "no progress has a rate"
	measured "$1" "$(awk -v rate="$rate" -v bandwidth="$2" 'BEGIN {
		printf "%.1f MB/s, %.2f times ib_read_bw", rate / 1e6, rate / 1e6 / bandwidth
	}')"
}
