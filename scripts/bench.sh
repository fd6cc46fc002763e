#!/usr/bin/env bash
# Measures everything that docs/BENCHMARKS.md shows, and writes it there between the markers, and its drawings beside it. What has been
# measured stays in build/bench as JSON. With names behind it (engine model durable disk memory large) it measures these only.
set -euo pipefail
cd "$(dirname "$0")/.."

page=docs/BENCHMARKS.md
records=build/bench
program=bin/dma-copy
mkdir -p "$records"

# Puts standard input between two marker lines of the page, in place of what is there.
put() {
	local name=$1 text
	text=$(mktemp)
	cat > "$text"
	awk -v from="<!-- $name -->" -v to="<!-- end of $name -->" -v text="$text" '
		$0 == to { inside = 0 }
		!inside { print }
		$0 == from { inside = 1; while ((getline line < text) > 0) print line }
	' "$page" > "$page.new"
	rm "$text"
	mv "$page.new" "$page"
}

# show NAME: what was measured, with a drawing unless it would be of single points.
show() {
	local plot=(--plot "docs/bench-$1.svg")
	[[ $1 != large-* ]] || plot=()
	"$program" bench show "$records/$1.json" -o markdown "${plot[@]}"
	[ "${#plot[@]}" -eq 0 ] || printf '\n![%s](bench-%s.svg)\n' "$1" "$1"
}

# measure NAME WHAT FLAGS...
measure() {
	local name=$1 record=$records/$1.json
	shift
	printf '\n=== %s ===\n' "$name" >&2
	"$program" bench "$@" -o json > "$record.new" || {
		local code=$?
		[ "$code" -eq 12 ] || { rm "$record.new"; return "$code"; } # 12: some contenders failed, which the page then says
	}
	mv "$record.new" "$record"
	show "$name" | put "$name"
}

room() { # MIB DIR: tells whether there is that much
	[ -d "$2" ] && [ "$(df --output=avail -m "$2" | tail -n 1)" -gt "$1" ]
}

copies() { # NAME MIB DIR FLAGS...: unless there is no room
	if room "$2" "$3"; then measure "$1" copy --dir "${@:3}"; else echo "no room for $2 MiB in $3: $1 is left out" >&2; fi
}

disk() { copies disk 3000 "$records" --sizes 2MiB,64MiB,1GiB; }

memory() { copies memory 3000 /dev/shm --sizes 2MiB,64MiB,1GiB; }

# With all tools and rounds these would take most of the time.
large() {
	copies large-disk 9000 "$records" --sizes 1GiB,4GiB --tools cp
	copies large-memory 9000 /dev/shm --sizes 1GiB,4GiB --tools cp
}

durable() { copies durable 3000 "$records" --sizes 2MiB,64MiB,1GiB --durability full --tools cp; }

engine() { measure engine engine --chunks 4KiB,64KiB,256KiB,1MiB,2MiB --depths 1,2,4,8,16,32,64; }

# Without moving bytes: this machine would be slower than the model.
model() {
	DMA_COPY_SOFT_LIMITS=move_bytes=0 measure model engine --model bluefield3 --runs 3 --sdk-log-level ERROR \
		--chunks 4KiB,64KiB,256KiB,1MiB,2MiB --depths 1,2,4,8,16,32,64,128
}

[ $# -gt 0 ] || set -- engine model durable disk memory large
for name in "$@"; do "$name"; done
