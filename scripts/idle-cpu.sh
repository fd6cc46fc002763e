#!/bin/sh
# Prints how much of a CPU a process uses, as a daemon that waits for commands:
#
#   scripts/idle-cpu.sh PID [SECONDS]      # 20 s by default
#
# The kernel counts the time of each thread in nanoseconds; /proc/PID/stat has only hundredths of a second. Threads that
# end meanwhile are not counted.
set -eu

pid=$1
seconds=${2:-20}

busy() { # the CPU time of all threads so far, in nanoseconds
	cat "/proc/$pid"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

before=$(busy)
sleep "$seconds"
after=$(busy)
awk -v used=$((after - before)) -v seconds="$seconds" 'BEGIN {
	printf "%.2f ms of CPU time in %s s: %.4f %% of a CPU\n", used / 1e6, seconds, used / 1e7 / seconds
}'
