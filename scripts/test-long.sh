#!/usr/bin/env bash
# Tests that take too long for `make test` and `.ci/run`, and are run before a release: each sweep and each simulation
# LONG times (default 100), plain and under the race detector, and long tests in full. FIRST is the first seed of the
# simulations; without it each run tries others. ONLY is a regular expression: only what it matches in the list below is
# run, for example ONLY='dmaxfer .*Linked.*-race'.
#
# A failure does not keep the others from running. Its test, seed and step, and the command that repeats it, are printed
# at once and again at the end; the whole output is in build/test-long.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/group.sh
trap end_group EXIT

LONG=${LONG:-100}
FIRST=${FIRST:-$(date +%s)}
ONLY=${ONLY:-.}
export GO=${GO:-go}
export GOGC=800 # these tests have little memory, and end a third sooner
logs=build/test-long

# The list. Each line is one of
#
#   sweep   BUILD PACKAGE TESTS            LONG repetitions of tests that let each call, message or step fail once
#   full    BUILD PACKAGE TESTS FLAG...    tests in full, once, with these flags
#   target  NAME VARIABLE=VALUE...         a target of the Makefile
#
# BUILD is plain, race or both; TESTS is the argument of -run.
list() {
	sweep both internal/dmaxfer '^TestEvery(Native|Device|File)'
	sweep both internal/dmaxfer '^Test(PeerThatStopsIsGivenUp|UnequalIdleTimeouts|SlowTrees)$'
	sweep both internal/dmaxfer '^TestLocal(FileCallsFail(InATree)?|EntriesFail|EngineFails|HungCall)$'
	sweep both internal/dmaxfer '^TestLinked(Every.*|Interrupted|Stages|DeviceHangs|LeavesDMAWithSlowDisk)$'
	sweep both internal/dmaxfer '^TestEvery(Message|RefusedDOCACall)'
	sweep both internal/ping '^TestEveryMessageFails$'
	sweep both internal/dmaxfer/disk '^TestEveryOperation'
	sweep both internal/dmaxfer/tree '^TestEveryOperationFails$'
	sweep plain internal/dmaxfer '^TestTreeSurvivesALossOfPower$'
	sweep plain internal/doca '^Test(Every(CallRefused|TaskFailed|MessageCut)|SilenceFromEveryMessageOn)$'

	# The simulations of `make test`, LONG times, with other seeds; those of `make race`, which are a tenth as many.
	target test-sim SIMSEEDS=$((600 * LONG)) SIMFIRST="$FIRST"
	target test-sim SIMSEEDS=$((60 * LONG)) SIMFIRST=$((FIRST + 600 * LONG)) RACE=-race
	full plain cmd/dma-copy/e2e \
		'^Test(Huge|Sparse|Sizes|ChunksAndDepths|SignalDuringTransfer|TreeOverATreeIsRefused|ManyPairs)$' -e2e.full
	target test-corruption CORRUPTIONS=$((1000 * LONG))
	target test-escape FLIPS=$((10000 * LONG))
	target test-kill KILLS=$((10 * LONG))
	target soak COPIES=$((10 * LONG))
	full plain cmd/dma-copy/e2e '^TestRealTrees$' -trees="$("$GO" env GOROOT)/src"
}

sweep() {
	run_tests "$LONG" "$@"
}

full() {
	run_tests 1 "$@"
}

target() {
	run make --no-print-directory "$@"
}

# run_tests COUNT BUILD PACKAGE TESTS FLAG...
run_tests() {
	local count=$1 build=$2 package=$3 tests=$4
	shift 4
	local test=(scripts/go-test.sh -count="$count" -failfast -parallel 8 -timeout 0 "./$package" -run "$tests" "$@")
	[ "$build" = race ] || run "${test[@]}"
	[ "$build" = plain ] || run "${test[@]}" -race
}

# run COMMAND...: runs a command with its output in a numbered file.
run() {
	local log result=ok started=$SECONDS
	[[ "$*" =~ $ONLY ]] || return 0
	log=$logs/$((++started_commands)).log
	printf '== %s\n' "$*"
	in_group "$@" > "$log" 2>&1 || result=FAILED
	printf '%-6s  %5d s  %s\n' "$result" "$((SECONDS - started))" "$*" | tee -a "$logs/results"
	[ "$result" = ok ] || failures "$log" "$@" | tee -a "$logs/failures"
}
started_commands=0

# failures LOG COMMAND...: the failed tests of a log with what they say, and how to repeat them.
failures() {
	local log=$1
	shift
	printf '\nFAILED: %s\n' "$*"
	scripts/failed.sh "$log"
	printf 'repeat: %s\nlog: %s\n\n' "${*@Q}" "$log"
}

rm -rf "$logs"
mkdir -p "$logs"
echo "LONG=$LONG FIRST=$FIRST"
list
printf '\nresults after %d s, LONG=%d FIRST=%d\n' "$SECONDS" "$LONG" "$FIRST"
[ -e "$logs/results" ] || { echo "nothing matches ONLY='$ONLY'" >&2; exit 1; }
cat "$logs/results"
if [ -e "$logs/failures" ]; then
	cat "$logs/failures"
	exit 1
fi
