package e2e

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// runtimeDir is the directory through which the software devices of one test reach each other.
const runtimeDir = ".run"

// fixture is a directory with a host/ and a dpu/ in which both sides of a transfer run: what a script has, for tests
// that are written in Go.
type fixture struct {
	t            *testing.T
	dir          string
	environment  []string
	unprivileged bool // the programs run as user nobody, if the test runs as root

	// programs are the paths of what processes of these names run as dma-copy. Others run the one in PATH.
	programs map[string]string

	recent recentProcesses
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureIn(t, t.TempDir())
}

func newFixtureIn(t *testing.T, dir string) *fixture {
	t.Helper()
	requireSoftwareDevice(t)
	variables, err := prepareDirs(dir)
	must(t, err)
	return &fixture{t: t, dir: dir, environment: append(variables, "PATH="+os.Getenv("PATH"), "DMA_COPY_VERBOSE=true")}
}

// The command lines of both sides; more flags follow.
const (
	hostCommand   = "dma-copy -p b1:00.1 -f host/file "
	dpuCommand    = "dma-copy -p 03:00.1 -r b1:00.1 -f dpu/file "
	referenceFlag = "--protocol reference "
	refpeerHost   = "refpeer -role host -device b1:00.1 -file host/file "
	refpeerDPU    = "refpeer -role dpu -device 03:00.1 -rep b1:00.1 -file dpu/file "
)

// Idle timeouts for which a test waits.
const (
	// idleFlag is for a side that is to give up. A process that works is heard sooner, also on a busy machine.
	idleFlag = "--idle-timeout 10s "

	// patientFlag is for a side that is to succeed with others that work.
	patientFlag = "--idle-timeout 30s "
	beyondIdle  = 31 * time.Second // longer than patientFlag allows

	// unendingFlag is for a side that may wait for one that is stopped.
	unendingFlag = "--idle-timeout 10m "
)

// bothSides are the names of the sides, which are also those of their directories.
var bothSides = []string{"host", "dpu"}

// peerOf returns the other side.
func peerOf(side string) string {
	if side == "host" {
		return "dpu"
	}
	return "host"
}

// side is a running program of one side of a transfer.
type side struct {
	*process
	t *testing.T
}

// start runs a command line, whose words may be preceded by NAME=VALUE settings.
func (f *fixture) start(name, line string) side {
	f.t.Helper()
	return f.startWith(processOptions{name: name}, line)
}

// startWith is start with more options of the process.
func (f *fixture) startWith(o processOptions, line string) side {
	f.t.Helper()
	environment, argv := f.environment, strings.Fields(line)
	for strings.Contains(argv[0], "=") {
		environment, argv = append(environment[:len(environment):len(environment)], argv[0]), argv[1:]
	}
	if program := f.programs[o.name]; program != "" && argv[0] == "dma-copy" {
		argv[0] = program
	}
	o.dir, o.environment, o.unprivileged, o.argv = f.dir, environment, f.unprivileged, argv
	p, err := startProcess(o)
	must(f.t, err)
	f.recent.add(p)
	f.t.Cleanup(func() {
		f.recent.reportIfFailed(f.t) // before the end of one process ends others
		p.kill()
	})
	return side{process: p, t: f.t}
}

// expectExit expects an exit code and the output that goes with it, without warnings.
func (s side) expectExit(code int) {
	s.t.Helper()
	if err := s.checkExit(code, false); err != nil {
		s.t.Error(err)
	}
}

// expectExitEither expects one of two exit codes.
func (s side) expectExitEither(code, or int) {
	s.t.Helper()
	if s.exitCode() == or {
		code = or
	}
	// A DPU that was stopped while it copied keeps the memory that its engine may still use, with a warning.
	wantWarning := code != exitOK && strings.Contains(s.stderr.String(), "some resources could not be released")
	if err := s.checkExit(code, wantWarning); err != nil {
		s.t.Error(err)
	}
}

// expectStderr expects the process, which has ended, to have printed these texts on stderr.
func (s side) expectStderr(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if printed := s.stderr.String(); !strings.Contains(printed, text) {
			s.t.Errorf("the stderr of the %s does not contain %q:\n%s", s.name, text, printed)
		}
	}
}

// waitForLog waits until stderr matches the pattern, and fails the test if the process ends before.
func (s side) waitForLog(pattern *regexp.Regexp) {
	s.t.Helper()
	must(s.t, s.waitForStderr(pattern))
}

// path returns the path of the file of a side.
func (f *fixture) path(side string) string { return filepath.Join(f.dir, side, "file") }

// createFile makes a file of random bytes on one side.
func (f *fixture) createFile(side string, size int64) {
	f.t.Helper()
	must(f.t, writeRandomFile(f.path(side), f.t.Name(), size))
}

// createSparseFile makes a file of random bytes with a hole at its end. A receiver does not preallocate such a file, so
// it finds a full disk only while it writes.
func (f *fixture) createSparseFile(side string, size int64) {
	f.t.Helper()
	f.createFile(side, size)
	must(f.t, os.Truncate(f.path(side), size+1<<20))
}

// expectSameFiles expects both sides to have the same file.
func (f *fixture) expectSameFiles() {
	f.t.Helper()
	if err := compareFiles(f.path("host"), f.path("dpu")); err != nil {
		f.t.Error(err)
	}
}

// expectNoFile expects a side not to have the file.
func (f *fixture) expectNoFile(side string) {
	f.t.Helper()
	if _, err := os.Lstat(f.path(side)); err == nil {
		f.t.Errorf("the %s has the file", side)
	}
}

// expectClean expects no socket and no temporary file to be left.
func (f *fixture) expectClean() {
	f.t.Helper()
	dirs := []string{filepath.Join(f.dir, "host"), filepath.Join(f.dir, "dpu")}
	left, err := leftovers(filepath.Join(f.dir, runtimeDir), dirs)
	if err != nil || len(left) > 0 {
		f.t.Errorf("left behind: %s (%v)", strings.Join(left, ", "), err)
	}
}

// expectTransfer runs a transfer that has to succeed, with more flags for the DPU.
func (f *fixture) expectTransfer(dpuFlags string) {
	f.t.Helper()
	host := f.start("host", hostCommand)
	dpu := f.start("dpu", dpuCommand+dpuFlags)
	host.expectExit(exitOK)
	dpu.expectExit(exitOK)
}

// expectRecovery expects the next transfer to succeed after one that failed, and to remove the sockets and partial
// files of a process that was killed. The chunk size is that of the failed transfer. The receiver warns of a partial
// file that it cannot resume from.
func (f *fixture) expectRecovery(sender string, wantWarning bool) {
	f.t.Helper()
	lines := map[string]string{"host": hostCommand, "dpu": dpuCommand + "--chunk 4096 "}
	lines[peerOf(sender)] += "--overwrite"
	sides := f.startBoth(lines)
	sides[sender].expectExit(exitOK)
	if err := sides[peerOf(sender)].checkExit(exitOK, wantWarning); err != nil {
		f.t.Error(err)
	}
	f.expectSameFiles()
	f.expectClean()
}

// sidePair holds both sides of a transfer by their names.
type sidePair map[string]side

// startBoth starts both sides in either order: a map is walked in another order each time.
func (f *fixture) startBoth(lines map[string]string) sidePair {
	f.t.Helper()
	sides := sidePair{}
	for name, line := range lines {
		sides[name] = f.start(name, line)
	}
	return sides
}

// expectExit expects both sides to end with the same exit code.
func (p sidePair) expectExit(code int) {
	p["host"].t.Helper()
	for _, name := range bothSides {
		p[name].expectExit(code)
	}
}

var inFull = flag.Bool("e2e.full", false, "test each combination instead of some by chance, and TestHuge with 4 GiB")

// byChance returns one of the values, or all with -e2e.full. The names of the subtests say which.
func byChance[T any](all []T) []T {
	if *inFull {
		return all
	}
	i := rand.IntN(len(all))
	return all[i : i+1]
}

// forEachSender runs a test in both directions, each on a fixture of its own.
func forEachSender(t *testing.T, test func(f *fixture, sender string)) {
	t.Helper()
	for _, sender := range bothSides {
		t.Run(sender+"_sends", func(t *testing.T) {
			t.Parallel()
			test(newFixture(t), sender)
		})
	}
}
