# Sourced by scripts that run long commands, so that a signal ends them at once: bash itself handles a signal only when
# the command in the foreground has ended, and goes on after Ctrl-C if the command, as `go test`, exits by itself.
# shellcheck shell=bash

group=
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# in_group COMMAND...: runs a command in a process group of its own.
in_group() {
	local result=0
	set -m
	"$@" < /dev/null &
	group=$!
	set +m
	wait "$group" || result=$?
	group=
	return "$result"
}

# end_group ends the command with all its processes. The script calls it when it exits.
end_group() {
	[ -z "$group" ] || kill -- "-$group" 2> /dev/null || true
}
