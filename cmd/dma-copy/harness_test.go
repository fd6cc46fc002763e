package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/program"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// invocation is the result of executing the command with a copy that only records its settings.
type invocation struct {
	settings copying.Settings
	ran      bool
	stdout   string
	stderr   string
	err      error
}

// invoke executes the command with these variables as the whole environment.
func invoke(variables map[string]string, args ...string) invocation {
	var got invocation
	var stdout, stderr bytes.Buffer
	stdio := root.Streams{Stdout: &stdout, Stderr: &stderr, Env: func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}}
	args = append([]string{}, args...) // nil would mean the test's own arguments
	got.err = withCopy(func(s copying.Settings) error {
		got.settings, got.ran = s, true
		return nil
	}).Execute(context.Background(), stdio, args)
	got.stdout, got.stderr = stdout.String(), stderr.String()
	return got
}

// withCopy returns the program with another copy, which is called with settings that are valid.
func withCopy(run func(copying.Settings) error) *root.Program {
	p := program.New()
	s, refused := p.Copy.Settings.(*copying.Settings), p.Copy.Refused
	p.Copy.Run = func(_ context.Context, streams root.Streams, _ []string, _ zerolog.Logger) error {
		if err := s.Validate(); err != nil {
			return refused(streams, err)
		}
		return run(*s)
	}
	return p
}

// flagsOfACopy returns the declared flags of the program without a command.
func flagsOfACopy() *pflag.FlagSet {
	return program.New().NewRootCommand(root.Streams{}, nil, nil).Flags()
}

// mustRun returns the settings of an execution that must succeed and print nothing.
func mustRun(t *testing.T, variables map[string]string, args ...string) copying.Settings {
	t.Helper()
	got := invoke(variables, args...)
	if got.err != nil || !got.ran {
		t.Fatalf("%q: ran %t, error %v", args, got.ran, got.err)
	}
	if got.stdout != "" || got.stderr != "" {
		t.Fatalf("%q: printed %q and %q", args, got.stdout, got.stderr)
	}
	return got.settings
}

// checkRefusal expects a usage error with exactly this sentence, no run and no output.
func checkRefusal(t *testing.T, got invocation, sentence string) {
	t.Helper()
	if got.err == nil {
		t.Fatalf("accepted; want the error %q", sentence)
	}
	if got.err.Error() != sentence {
		t.Errorf("error\n %s\nwant\n %s", got.err, sentence)
	}
	if code := exit.Code(got.err); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if got.ran || got.stdout != "" || got.stderr != "" {
		t.Errorf("ran %t, printed %q and %q", got.ran, got.stdout, got.stderr)
	}
}

// inNewDir makes a fresh directory the working directory and puts a file there, so that errors show a short name.
func inNewDir(t *testing.T, name, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, name, text)
}

// TestMain fails a run of tests that leaves goroutines behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// words splits a command line of a table; "_" stands for an empty argument.
func words(line string) []string {
	args := strings.Fields(line)
	for i, arg := range args {
		if arg == "_" {
			args[i] = ""
		}
	}
	return args
}

// fullDisk is a writer that fails like a file on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
