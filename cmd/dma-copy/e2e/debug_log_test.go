package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// debugLogOf returns the command line and environment with which a process also logs at DEBUG, and which levels a test
// is not to see on stderr, because the process logs them only for this. None for a program that is not dma-copy, and if
// the command line chooses the log by itself, other than by -l INFO.
func debugLogOf(o processOptions) (argv, environment, hidden []string) {
	const variable = "DMA_COPY_LOG_LEVEL="
	chosen := func(word string) bool {
		return slices.Contains([]string{"-j", "--json", "-q", "--quiet"}, word) || strings.Contains(word, "--log-") ||
			strings.HasPrefix(word, variable) || strings.Contains(word, " -l ")
	}
	words := slices.Concat(o.argv, o.environment)
	level := slices.Index(o.argv, "-l")
	switch {
	case !slices.ContainsFunc(o.argv, func(word string) bool { return filepath.Base(word) == "dma-copy" }):
		return o.argv, o.environment, nil
	case o.stderr != nil || o.closed.stderr || o.terminal != nil || slices.ContainsFunc(words, chosen):
		return o.argv, o.environment, nil
	case level < 0:
		environment = append(slices.Clip(o.environment), variable+"DEBUG")
		return o.argv, environment, []string{"info", "debug"}
	case level+1 < len(o.argv) && o.argv[level+1] == "INFO":
		argv = slices.Clone(o.argv)
		argv[level+1] = "DEBUG"
		return argv, o.environment, []string{"debug"}
	}
	return o.argv, o.environment, nil
}

// logSplitter passes on what a process prints on stderr, without the lines of the log that are hidden from the test,
// and keeps the last of all lines for a failed test. It is safe for concurrent use.
type logSplitter struct {
	to     *outputBuffer
	hidden []string // beginnings of lines

	mu      sync.Mutex
	pending []byte   // the beginning of a line that may be hidden
	last    []string // at most lastLines
	lines   int
}

func newLogSplitter(to *outputBuffer, hiddenLevels []string) *logSplitter {
	s := &logSplitter{to: to}
	for _, level := range hiddenLevels {
		s.hidden = append(s.hidden, `{"level":"`+level+`"`)
	}
	return s
}

// Write implements io.Writer.
func (s *logSplitter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for part := range bytes.Lines(p) {
		s.pending = append(s.pending, part...)
		if part[len(part)-1] == '\n' {
			s.pass()
		}
	}
	if len(s.pending) > 0 && s.pending[0] != '{' {
		s.pass() // a test may wait for a line without an end
	}
	return len(p), nil
}

// end passes on what is left when the process has ended.
func (s *logSplitter) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

func (s *logSplitter) pass() {
	line := string(s.pending)
	s.pending = s.pending[:0]
	if line == "" {
		return
	}
	if len(s.last) == lastLines {
		s.last = s.last[1:]
	}
	s.last, s.lines = append(s.last, line), s.lines+1
	if !slices.ContainsFunc(s.hidden, func(begin string) bool { return strings.HasPrefix(line, begin) }) {
		_, _ = s.to.Write([]byte(line)) // which never fails
	}
}

// tail returns the last lines, below how many there were before.
func (s *logSplitter) tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == 0 {
		return ""
	}
	return fmt.Sprintf("stderr with its log, after %d other lines:\n%s", s.lines-len(s.last), strings.Join(s.last, ""))
}

// isDMACopy reports whether a process runs dma-copy, and not another program, which a signal may end.
func (p *process) isDMACopy() bool {
	program, err := os.Readlink("/proc/" + strconv.Itoa(p.command.Process.Pid) + "/exe")
	return err == nil && filepath.Base(program) == "dma-copy"
}

// lastProcesses is how many of the processes of a failed test are reported: those that were started last.
const lastProcesses = 8

// recentProcesses are the processes of a test that were started last. It is safe for concurrent use.
type recentProcesses struct {
	mu        sync.Mutex
	processes []*process
}

func (r *recentProcesses) add(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.processes) == lastProcesses {
		r.processes = r.processes[1:]
	}
	r.processes = append(r.processes, p)
}

// reportIfFailed prints, for a test that has failed, what its last processes have printed last; once.
func (r *recentProcesses) reportIfFailed(t failing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.processes {
		p.reportIfFailed(t)
	}
	r.processes = nil
}

// A test sees of a log what its command line asks for, however it arrives, and a failed test prints all of it.
func TestLogIsSplit(t *testing.T) {
	const info = `{"level":"info","message":"agreed"}` + "\n"
	const debug = `{"level":"debug","message":"lanes started"}` + "\n"
	text := "10%  1 B/10 B" + "\n" + info + debug + "dma-copy: failed\n" + debug + "no end"
	for size := range len(text) {
		var seen outputBuffer
		s := newLogSplitter(&seen, []string{"debug"})
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size+1, len(rest)):] {
			_, _ = s.Write(rest[:min(size+1, len(rest))])
		}
		s.end()
		if got, want := seen.String(), strings.ReplaceAll(text, debug, ""); got != want {
			t.Fatalf("in parts of %d bytes: %q, want %q", size+1, got, want)
		}
		if got := s.tail(); !strings.Contains(got, debug) || !strings.HasSuffix(got, "no end") {
			t.Fatalf("in parts of %d bytes a failed test prints %q", size+1, got)
		}
	}
}

// A process logs at DEBUG unless its test is about the log.
func TestProcessesLogAtDebug(t *testing.T) {
	for line, want := range map[string]string{
		"dma-copy -f x":                          "dma-copy -f x DMA_COPY_LOG_LEVEL=DEBUG hides info debug",
		"dma-copy -l INFO -f x":                  "dma-copy -l DEBUG -f x hides debug",
		"refpeer -l INFO":                        "refpeer -l INFO hides",
		"env A=B dma-copy -f x":                  "env A=B dma-copy -f x DMA_COPY_LOG_LEVEL=DEBUG hides info debug",
		"dma-copy -l DEBUG -f x":                 "dma-copy -l DEBUG -f x hides",
		"dma-copy -l INFO --log-format text":     "dma-copy -l INFO --log-format text hides",
		"dma-copy serve -j serve.json --runtime": "dma-copy serve -j serve.json --runtime hides",
	} {
		argv, environment, hidden := debugLogOf(processOptions{argv: strings.Fields(line)})
		got := strings.Join(slices.Concat(argv, environment, []string{"hides"}, hidden), " ")
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
