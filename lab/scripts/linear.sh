#!/usr/bin/env bash
# Copies files of growing size in both directions, and prints the time per MiB and the most memory of each side, which
# should not grow. The total time should be linear in the size: a fixed part and the same time for each MiB, which are
# fitted to the medians. The sizes are interleaved in ROUNDS rounds (5 if not set); SIZES lists them in MiB. Needs GNU
# time.
#
# The files are sparse, on tmpfs, copied as zeros and written to /dev/null, so that neither memory nor a disk has to
# hold them. With DIR real files in that directory are copied: there must be space for all of them and a copy of the
# largest, and what does not fit into the page cache is measured at the speed of the disk.
#
# If a median differs by more than TOLERANCE percent (5 if not set) from the fitted time, the script prints what the
# machine did in the meantime: time stolen by the hypervisor or spent waiting for disks, data that was read or written,
# pages that were taken from the page cache, other load, and free space. It fails if there is no such cause.
set -euo pipefail
cd "$(dirname "$0")/../.."

read -ra sizes <<< "${SIZES:-64 256 1024 4096 16384}"
rounds=${ROUNDS:-5}
tolerance=${TOLERANCE:-5}
program=$PWD/bin/dma-copy
# All sources, one target, and what they need besides.
needed=$(printf '%s\n' "${sizes[@]}" | awk '{ sum += $1; if ($1 > most) most = $1 } END { print sum + most + 64 }')
folder=$(mktemp -d -p "${DIR:-/dev/shm}" dma-copy-linear.XXXXXX)
trap 'rm -rf "$folder"' EXIT
export DMA_COPY_SOFT_DIR=$folder/run DMA_COPY_DRIVER=soft
mkdir -m 700 "$folder/run"

fail() {
	echo "linear.sh: $1" >&2
	exit 1
}

gnu_time=$(type -P time) || fail 'GNU time is missing: install the package time'
free=$(df --output=avail -m "$folder" | tail -n 1)
[ -z "${DIR:-}" ] || [ "$free" -gt "$needed" ] ||
	fail "$DIR has $free MiB free, but $needed MiB are needed: set SIZES or another DIR"

# machine: prints counters of the machine since its start: jiffies of all CPUs, stolen, waiting for disks; KiB read,
# KiB written; pages taken from the page cache.
machine() {
	awk 'FILENAME == "/proc/stat" && $1 == "cpu" { for (i = 2; i <= 9; i++) all += $i; stolen = $9; waited = $6 }
		$1 == "pgpgin" { read = $2 }
		$1 == "pgpgout" { written = $2 }
		$1 == "pgsteal_kswapd" || $1 == "pgsteal_direct" { taken += $2 }
		END { printf "%d %d %d %d %d %d\n", all, stolen, waited, read, written, taken }' /proc/stat /proc/vmstat
}

# side NAME FLAGS...: runs one side, and notes its peak of resident memory in KiB in a file of that name.
side() {
	"$gnu_time" -q -f %M -o "$folder/peak.$1" "$program" "${@:2}"
}

# copy SENDER SIZE: prints the time of the copy in microseconds, from the connection of both sides on.
copy() {
	local sender=$1 receiver=dpu target=- seconds
	local -A address=([host]='-p b1:00.0' [dpu]='-p 03:00.0 -r b1:00.0')
	[ "$sender" = host ] || receiver=host
	[ -z "${DIR:-}" ] || target=$folder/target
	# shellcheck disable=SC2086 # the addresses are several words
	side "$receiver" ${address[$receiver]} -f "$target" --quiet > /dev/null &
	# shellcheck disable=SC2086
	seconds=$(side "$sender" ${address[$sender]} -f "$folder/$2" --sparse never -o json | elapsed)
	wait $!
	awk -v seconds="$seconds" 'BEGIN { printf "%d\n", seconds * 1000000 }'
}

elapsed() {
	sed -n '/"type":"summary"/s/.*"elapsed_seconds":\([0-9.]*\).*/\1/p'
}

# make_source SIZE: real data if it is copied to a disk, because a file system may treat zeros in a special way.
make_source() {
	if [ -n "${DIR:-}" ]; then
		head -c "$1M" /dev/urandom > "$folder/$1"
		sync "$folder/$1"
	else
		truncate -s "$1M" "$folder/$1"
	fi
}

# measure SENDER SIZE: copies once, and appends time, memory and what the machine did to the file of this combination.
measure() {
	local before after
	rm -f "$folder/target"
	before=$(machine)
	time=$(copy "$1" "$2")
	after=$(machine)
	echo "$time $(cat "$folder/peak.host" "$folder/peak.dpu" | tr '\n' ' ') $before $after" >> "$folder/runs.$1.$2"
}

# report SENDER SIZE: prints one line: size, the median, least and greatest time per MiB, the peak of both sides in MiB,
# percent of the CPU time that was stolen and waited, and MiB that were read, written and taken from the page cache.
report() {
	sort -n "$folder/runs.$1.$2" | awk -v size="$2" -v page="$(getconf PAGESIZE)" '
		{
			time[NR] = $1 / size
			if ($2 > host) host = $2
			if ($3 > dpu) dpu = $3
			for (i = 0; i < 6; i++) did[i] += $(10 + i) - $(4 + i)
		}
		END {
			if (did[0] == 0) did[0] = 1
			printf "%d %.1f %.1f %.1f %.0f %.0f %.1f %.1f %.0f %.0f %.0f\n", size,
				time[int((NR + 1) / 2)], time[1], time[NR], host / 1024, dpu / 1024,
				100 * did[1] / did[0], 100 * did[2] / did[0],
				did[3] / 1024, did[4] / 1024, did[5] * page / 1048576
		}'
}

# judge: reads the lines of report of one direction, prints them as a table, and what is not linear. It fails if the
# machine does not explain that.
judge() {
	awk -v direction="$1" -v tolerance="$tolerance" -v free="$free" '
		function apart(a, b) { return 100 * (a - b) / b }
		{ for (i = 1; i <= NF; i++) cell[NR, i] = $i }
		END {
			printf "\n%s\n%8s %15s %7s %7s %9s %8s %7s %7s %9s %9s %9s\n", direction, "MiB", "us/MiB: median",
				"min", "max", "host MiB", "dpu MiB", "stolen", "waited", "read", "written", "reclaimed"
			for (i = 1; i <= NR; i++)
				printf "%8d %15.1f %7.1f %7.1f %9d %8d %6.1f%% %6.1f%% %9d %9d %9d\n", cell[i, 1], cell[i, 2],
					cell[i, 3], cell[i, 4], cell[i, 5], cell[i, 6], cell[i, 7], cell[i, 8],
					cell[i, 9], cell[i, 10], cell[i, 11]
			# The time per MiB is a straight line over 1/MiB, whose slope is the fixed part.
			for (i = 1; i <= NR; i++) { x += 1 / cell[i, 1] / NR; y += cell[i, 2] / NR }
			for (i = 1; i <= NR; i++) {
				products += (1 / cell[i, 1] - x) * (cell[i, 2] - y)
				squares += (1 / cell[i, 1] - x) ^ 2
			}
			fixed = squares > 0 ? products / squares : 0
			each = y - fixed * x
			printf "fitted: %.1f ms and %.1f us/MiB\n", fixed / 1000, each
			for (i = 1; i <= NR; i++) {
				off = apart(cell[i, 2], each + fixed / cell[i, 1])
				if (off <= tolerance && off >= -tolerance) continue
				why = ""
				if (cell[i, 7] >= 1) why = why sprintf("; the hypervisor took %.1f %% of the CPU time", cell[i, 7])
				if (cell[i, 8] >= 1) why = why sprintf("; %.1f %% of the CPU time waited for disks", cell[i, 8])
				if (cell[i, 9] >= cell[i, 1] / 10) why = why sprintf("; %d MiB were read from disks", cell[i, 9])
				if (cell[i, 10] >= cell[i, 1] / 10)
					why = why sprintf("; %d MiB were written to disks", cell[i, 10])
				if (cell[i, 11] >= cell[i, 1] / 10)
					why = why sprintf("; the page cache gave up %d MiB", cell[i, 11])
				spread = apart(cell[i, 4], cell[i, 3])
				if (spread > 4 * tolerance)
					why = why sprintf("; runs of this size differ by %.0f %%: other load", spread)
				if (why == "") { why = "; the machine shows no cause"; failed = 1 }
				printf "%d MiB: %+.1f %% from the fitted time%s; %d MiB were free\n", cell[i, 1], off, why, free
				odd++
			}
			# A small file has smaller chunks, and so a smaller window.
			for (i = 5; i <= 6; i++)
				if (cell[NR, i] > cell[1, i] + 16) {
					printf "the memory of the %s grew from %d to %d MiB\n", i == 5 ? "host" : "DPU",
						cell[1, i], cell[NR, i]
					failed = 1
				}
			if (!odd) printf "linear: all within %s %%\n", tolerance
			exit failed
		}'
}

for size in "${sizes[@]}"; do
	make_source "$size"
done
for ((round = 0; round < rounds; round++)); do
	for size in "${sizes[@]}"; do
		for sender in host dpu; do
			measure "$sender" "$size"
		done
	done
done
code=0
for sender in host dpu; do
	for size in "${sizes[@]}"; do
		report "$sender" "$size"
	done | judge "from $sender" || code=1
done
exit $code
