#!/usr/bin/env bash
# test-loaded.sh TARGET...: makes the targets ROUNDS times (default 3) while eight loops use the CPUs and one flushes a
# file to the disk again and again. Prints the failed tests of each round; its whole output is in build/loaded.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/group.sh

rounds=${ROUNDS:-3}
logs=build/loaded
rm -rf "$logs"
mkdir -p "$logs"

load=()
stop() {
	end_group
	kill "${load[@]}" 2> /dev/null || true
	rm -f "$logs/flushed"
}
trap stop EXIT

# A loop ends by itself when this script is gone, even if that was killed and could not stop it.
for _ in 1 2 3 4 5 6 7 8; do
	while kill -0 $$; do :; done 2> /dev/null &
	load+=($!)
done
while kill -0 $$; do dd if=/dev/zero of="$logs/flushed" bs=1M count=16 conv=fsync; done 2> /dev/null &
load+=($!)

failed=0
for ((round = 1; round <= rounds; round++)); do
	log=$logs/round-$round
	started=$SECONDS
	if in_group make --no-print-directory --keep-going "$@" > "$log" 2>&1; then
		echo "round $round: passed in $((SECONDS - started)) s"
		continue
	fi
	failed=$((failed + 1))
	echo "round $round: FAILED in $((SECONDS - started)) s ($log)"
	scripts/failed.sh "$log"
done
echo "$rounds rounds, $failed failed"
[ "$failed" -eq 0 ]
