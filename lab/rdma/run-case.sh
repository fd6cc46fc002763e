#!/usr/bin/env bash
# run-case.sh NAME: runs the function case_NAME of a file in cases, in guest b, and cleans up this guest after it. Its
# commands, with their times, are in NAME.trace.
set -Eeuo pipefail
. /tmp/out/scripts/lib.sh
for file in /tmp/out/scripts/cases/*.sh; do . "$file"; done

trap clean_up EXIT
trap 'echo "$BASH_COMMAND: exit code $?, called by ${FUNCNAME[*]}" >&2' ERR
trap 'exit 143' TERM
exec {BASH_XTRACEFD}> "/tmp/out/$1.trace"
PS4='+ $EPOCHREALTIME '
set -x
clean_up
"case_$1"
