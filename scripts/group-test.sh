#!/usr/bin/env bash
# Tests scripts/group.sh: a signal ends a script and the processes of its command at once.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkfifo "$work/began" "$work/held"

# The command never ends by itself. The pipe `held` has a writer until all its processes have ended.
cat > "$work/script" << 'SCRIPT'
set -euo pipefail
. ./group.sh
trap end_group EXIT
in_group false && exit 1
in_group true
in_group bash -c 'echo > "$1/began"; sleep infinity & wait' - "$1" > "$1/held"
echo "the script went on" >&2
SCRIPT

bash "$work/script" "$work" &
script=$!
exec 3< "$work/held"
read -r < "$work/began"
kill -TERM "$script"
result=0
wait "$script" || result=$?
cat <&3 # returns when no process is left
[ "$result" -eq 143 ] || { echo "group-test: exit code $result" >&2; exit 1; }
