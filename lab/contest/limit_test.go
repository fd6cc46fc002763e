package contest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/lab/bench"
)

// buildLimit compiles limitProgram with more flags, and returns its path.
func buildLimit(t *testing.T, flags ...string) string {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	// It is read here, so that results of tests are not cached when it has changed.
	source, err := os.ReadFile("../limit/limit.c")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), limitProgram)
	flags = append(flags, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program, "-x", "c", "-")
	compilation := exec.CommandContext(t.Context(), compiler, flags...)
	compilation.Stdin = bytes.NewReader(source)
	if output, err := compilation.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, output)
	}
	return program
}

// The limit copies every byte, regardless of the size: none, fewer than a word for each checksum, about a chunk, and
// many chunks, so that both lanes use each of their slots again. Only on tmpfs a lane adds pages instead of writing.
func TestLimitCopies(t *testing.T) {
	const chunk = 512 << 10
	program := buildLimit(t, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover")
	for _, directory := range []string{t.TempDir(), "/dev/shm"} {
		w, err := newWorkspace(directory)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.close() })
		for _, size := range []int64{0, 1, 23, 24, 25, chunk - 1, chunk, chunk + 1, 2 * chunk, 37*chunk + 12345} {
			for _, flags := range [][]string{{}, {"--tcp"}} {
				if err := errors.Join(w.clear(), w.makeSource(t.Context(), size)); err != nil {
					t.Fatal(err)
				}
				argv := append(flags, w.source(), w.target())
				output, err := exec.CommandContext(t.Context(), program, argv...).CombinedOutput()
				if err != nil || len(output) > 0 {
					t.Errorf("%s, %d bytes: %v: %s", directory, size, err, output)
					continue
				}
				if err := (fileTask{w.newConditions(size)}).Check(t.Context(), true); err != nil {
					t.Errorf("%s, %d bytes: %v", directory, size, err)
				}
			}
		}
	}
}

// A side that fails ends the program.
func TestLimitFails(t *testing.T) {
	program := buildLimit(t)
	w := newTestWorkspace(t, 5<<20)
	if err := os.WriteFile(w.target(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]struct {
		argv   []string
		stderr string
	}{
		"no arguments":       {nil, "usage: "},
		"no source":          {[]string{"absent", w.target() + "2"}, "cannot open absent: "},
		"a directory":        {[]string{w.folder, w.target() + "2"}, "is not a regular file"},
		"an existing target": {[]string{w.source(), w.target()}, "File exists"},
		// A file of sysfs has fewer bytes than its size. The sender fails, and the receiver would wait.
		"a short source": {[]string{"/sys/devices/system/cpu/online", w.target() + "4"}, "became shorter"},
		"a short source over TCP": {
			[]string{"--tcp", "/sys/devices/system/cpu/online", w.target() + "5"}, "became shorter",
		},
		"a file too large": {
			[]string{"-c", `ulimit -f 4096; trap '' XFSZ; exec "$0" "$@"`, program, w.source(), w.target() + "3"},
			"File too large",
		},
	} {
		command := exec.CommandContext(t.Context(), program, run.argv...)
		if slices.Contains(run.argv, program) {
			command = exec.CommandContext(t.Context(), "sh", run.argv...)
		}
		output, err := command.CombinedOutput()
		failed, is := errors.AsType[*exec.ExitError](err)
		if !is || failed.ExitCode() != 1 || !strings.Contains(string(output), run.stderr) {
			t.Errorf("%s: %v: %q", name, err, output)
		}
	}
}

// The limit is a tool for files that is found in PATH, and left out if it is not there.
func TestLimitIsATool(t *testing.T) {
	t.Setenv("PATH", os.Getenv("PATH")+":"+filepath.Dir(buildLimit(t)))
	tools := findTools(t.Context(), []string{toolLimit}, fileTools)
	if len(tools) != 1 || !strings.HasPrefix(tools[0].Version, limitProgram+" ") {
		t.Fatalf("tools %+v", tools)
	}
	w := newTestWorkspace(t, 3<<20)
	c := fileTask{w.newConditions(3 << 20)}.toolEntries(tools, "none")[0].copyCandidate
	outcomes, err := bench.Rounds{Counted: 2}.Measure(t.Context(), []bench.Candidate{c})
	if err != nil || outcomes[0].Err != nil || len(outcomes[0].Runs) != 2 || outcomes[0].Runs[0].CPU <= 0 {
		t.Errorf("%+v, error %v", outcomes, err)
	}

	t.Setenv("PATH", t.TempDir())
	if absent := findTools(t.Context(), []string{toolLimit}, fileTools); absent[0].installed() {
		t.Errorf("found %+v in an empty PATH", absent)
	}
}

// A user without the limit is told how to build it.
func TestMissingLimitIsNoted(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var told []string
	p := Plan{Settings: bench.Settings{Tell: func(text string) { told = append(told, text) }}}
	setup := p.newSetup(t.Context(), newTestWorkspace(t, 1), CopySettings{Tools: []string{toolLimit}}, fileTools)
	if len(told) != 1 || !strings.Contains(told[0], "make limit") || setup.missing() == nil {
		t.Errorf("told %q, missing %q", told, setup.missing())
	}
}

// Between machines the limit copies over TCP.
func TestLimitIsANetworkTool(t *testing.T) {
	t.Setenv("PATH", os.Getenv("PATH")+":"+filepath.Dir(buildLimit(t)))
	w := newTestWorkspace(t, 3<<20)
	entries := w.networkEntries(toolLimit, fileTask{w.newConditions(3 << 20)}, "none")
	if len(entries) != 1 || entries[0].result.Network != networkTCP || entries[0].result.Encrypted {
		t.Fatalf("entries %+v", entries)
	}
	limit, is := entries[0].copyCandidate.(*toolCopy)
	if !is || !slices.Contains(limit.stages[0][0].argv, "--tcp") {
		t.Fatalf("candidate %+v", entries[0].copyCandidate)
	}
	outcomes, err := bench.Rounds{Counted: 1}.Measure(t.Context(), []bench.Candidate{limit})
	if err != nil || outcomes[0].Err != nil || len(outcomes[0].Runs) != 1 {
		t.Errorf("%+v, error %v", outcomes, err)
	}
}

func TestLimitRatios(t *testing.T) {
	results := []CopyResult{
		{Contender: toolCp, Seconds: spreadAt(0.3)}, {Contender: toolLimit, Seconds: spreadAt(0.2)},
		{Contender: programName, Seconds: spreadAt(0.4), CopySeconds: spreadAt(0.25)},
		{Contender: programName, Error: "lost"},
	}
	setRatios(results)
	for i, want := range [][2]float64{{2. / 3, 0}, {1, 0}, {0.5, 0.8}, {0, 0}} {
		got := [2]float64{results[i].LimitRatio, results[i].LimitCopyRatio}
		if diff := got[0] - want[0] + got[1] - want[1]; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%d: ratios %v, want %v", i, got, want)
		}
	}
}
