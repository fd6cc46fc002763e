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

# The ratio to ib_read_bw in the same guests, with the loss of a start of a connection.
case_copy_rate() {
	local bandwidth from seconds rate
	bandwidth=$(read_bandwidth 524288 -n 200)
	start_daemon
	make_file source 33554432
	copy push --digest none "$work/source" "$remote/files/first"
	from=$EPOCHREALTIME
	copy push --digest none "$work/source" "$remote/files/target"
	seconds=$(elapsed "$from")
	rate=$(awk -v seconds="$seconds" 'BEGIN { printf "%.1f\n", 33.554432 / seconds }')
	measured "push of 32 MiB, the whole command" "$rate MB/s," \
		"$(awk -v a="$rate" -v b="$bandwidth" 'BEGIN { printf "%.2f", a / b }') times ib_read_bw"
	same_as_a source target
}
