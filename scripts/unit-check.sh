#!/usr/bin/env bash
# Checks the units in packaging/systemd with systemd-analyze, which needs no running systemd: that of the daemon, alone
# and with its drop-in for daemons that serve other machines, and that of a copy are valid, and the exposure of each is
# at most 2.0. Debian: systemd.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly unit=packaging/systemd/dma-copy.service
readonly copy_unit=packaging/systemd/dma-copy@.service
readonly dropin=packaging/systemd/network.conf
readonly most=20 # in tenths

command -v systemd-analyze > /dev/null || {
	echo "unit-check: systemd-analyze is missing: install the package systemd" >&2
	exit 1
}

# verify wants the programs of the unit to exist, so the copy that it gets names one that does.
copies=$(mktemp -d)
trap 'rm -rf "$copies"' EXIT

# prepare UNIT: the copy of it in $copies/dma-copy.service.
prepare() {
	sed 's|^ExecStart=/usr/bin/dma-copy |ExecStart=/bin/true |' "$1" > "$copies/dma-copy.service"
	grep -q '^ExecStart=/bin/true ' "$copies/dma-copy.service" || {
		echo "unit-check: $1 does not start /usr/bin/dma-copy" >&2
		exit 1
	}
}

# check NAME checks the unit in the file $copies/dma-copy.service. An unknown key or system call is only a warning
# for verify.
check() {
	local complaints report
	complaints=$(systemd-analyze verify --man=no --recursive-errors=no "$copies/dma-copy.service" 2>&1) || {
		echo "$complaints" >&2
		exit 1
	}
	if grep -F dma-copy.service <<< "$complaints" >&2; then
		exit 1
	fi
	report=$(systemd-analyze security --no-pager --offline=true --threshold="$most" "$copies/dma-copy.service") || {
		echo "$report" >&2
		echo "unit-check: the exposure of $1 is above $((most / 10)).$((most % 10))" >&2
		exit 1
	}
	echo "$1: $(tail -n 1 <<< "$report")"
}

systemd-analyze --version | head -n 1
prepare "$unit"
check "$unit"
# The settings of a drop-in have the meaning of the same lines at the end of the unit.
cat "$dropin" >> "$copies/dma-copy.service"
check "$unit with $dropin"
prepare "$copy_unit"
check "$copy_unit"
