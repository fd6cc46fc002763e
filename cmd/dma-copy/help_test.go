package main

import (
	"cmp"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/cli/program"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/cli/version"
	"github.com/dma-copy/dma-copy/internal/exit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestHelpGolden compares both helps of each command with the golden file in its folder, and of the program with the
// file of a copy.
func TestHelpGolden(t *testing.T) {
	for _, name := range append(root.Names(program.New().Commands), "") {
		golden := filepath.Join("..", "..", "internal", "cli", cmp.Or(name, root.CopyName), "testdata", "help.golden")
		if slices.Contains([]string{"push", "pull", "sync"}, name) {
			golden = filepath.Join("..", "..", "internal", "cli", "transfer", "testdata", name+".golden")
		}
		short, long := invoke(nil, append(words(name), "-h")...), invoke(nil, append(words(name), "--help")...)
		long.stdout = short.stdout + "\n" + strings.Repeat("=", 80) + "\n\n" + long.stdout
		checkGolden(t, golden, long)
	}
}

// A command line with nothing on it is no error, unless something but the file to copy is named.
func TestGreeting(t *testing.T) {
	got := invoke(nil)
	if got.err != nil || got.ran || strings.Count(got.stdout, "\n") != 5 || !strings.Contains(got.stdout, "--help") {
		t.Errorf("error %v, ran %t, printed %q", got.err, got.ran, got.stdout)
	}
	mustRun(t, map[string]string{"DMA_COPY_FILE": "x"})
	const missing = "--file is missing: name the file to send or to create with -f FILE"
	checkRefusal(t, invoke(nil, "-q"), missing)
}

// The short help fits a terminal, and has some flags, two examples and how to see the rest.
func TestShortHelp(t *testing.T) {
	for _, name := range append(root.Names(program.New().Commands), "") {
		args := append(strings.Fields(name), "-h")
		got := invoke(nil, args...)
		if lines := strings.Count(got.stdout, "\n"); got.err != nil || lines > 40 || lines < 15 {
			t.Errorf("%s: %v, %d lines:\n%s", args, got.err, lines, got.stdout)
		}
		full := invoke(nil, append(strings.Fields(name), "--help")...).stdout
		if !strings.Contains(got.stdout, "\nExamples:\n  ") || !strings.Contains(got.stdout, "\nMore: dma-copy ") ||
			strings.HasSuffix(full, got.stdout) {
			t.Errorf("%s prints\n%s", args, got.stdout)
		}
	}
}

// checkGolden compares the output of a command with a golden file.
func checkGolden(t *testing.T, golden string, got invocation) {
	t.Helper()
	if got.err != nil || got.ran || got.stderr != "" {
		t.Fatalf("error %v, ran %t, stderr %q", got.err, got.ran, got.stderr)
	}
	if *update {
		must(t, os.MkdirAll(filepath.Dir(golden), 0o755))
		must(t, os.WriteFile(golden, []byte(got.stdout), 0o644))
	}
	if want := readFile(t, golden); got.stdout != want {
		t.Errorf("what is printed differs from %s (accept it with go test -update):\n%s", golden, got.stdout)
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	for line := range strings.Lines(invoke(nil, "-h").stdout + invoke(nil, "--help").stdout) {
		if len(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("longer than %d columns: %s", 80, line)
		}
	}
}

func TestHelpNamesEveryOption(t *testing.T) {
	help := invoke(nil, "--help").stdout
	flagsOfACopy().VisitAll(func(flag *pflag.Flag) {
		named := strings.Contains(help, "--"+flag.Name+" ") || strings.Contains(help, "--"+flag.Name+",")
		if named == flag.Hidden {
			t.Errorf("the help names --%s: %t", flag.Name, named)
		}
	})
}

// Help and version work even with settings that would be refused.
func TestHelpAndVersionNeedNoSettings(t *testing.T) {
	broken := map[string]string{"DMA_COPY_WAIT": "never", "DMA_COPY_JSON": "/nonexistent"}
	for _, line := range []string{
		"--help", "-h -l 45", "-h", "--version", "-v -p _",
		"config show --help", "config show push -h", "config check --help",
	} {
		got := invoke(broken, words(line)...)
		if got.err != nil || got.ran || got.stdout == "" || got.stderr != "" {
			t.Errorf("%s: error %v, ran %t, stdout %q, stderr %q", line, got.err, got.ran, got.stdout, got.stderr)
		}
	}
}

// The arguments of config may be flags of other commands, but its help is its own.
func TestHelpOfConfig(t *testing.T) {
	want := invoke(nil, "config", "--help").stdout
	short := invoke(nil, "config", "-h").stdout
	for line, want := range map[string]string{
		"config show --help": want, "help config": want, "config show push --depth 4 -h": short,
		"config check -h": short,
	} {
		if got := invoke(nil, words(line)...); got.err != nil || got.stdout != want {
			t.Errorf("%s: error %v, printed %q", line, got.err, got.stdout)
		}
	}
	checkRefusal(t, invoke(nil, "config", "check", "--", "--help"), `FILE "--help": no such file or directory; `+
		`name a readable parameter file`)
}

func TestVersion(t *testing.T) {
	shape := regexp.MustCompile(`^dma-copy \S+ \(go\S+ linux/\w+\)\nDOCA runtime: .+\n$`)
	if got := invoke(nil, "--version").stdout; !shape.MatchString(got) {
		t.Errorf("printed %q", got)
	}
}

// A script that asks for help must notice that it got none.
func TestHelpReportsAFullDisk(t *testing.T) {
	stdio := root.Streams{Stdout: fullDisk{}, Stderr: io.Discard,
		Env: func(string) (string, bool) { return "", false }}
	for _, line := range []string{"--help", "-h", "help", "doctor --help", "help devices"} {
		if err := program.New().Execute(t.Context(), stdio, words(line)); !errors.Is(err, syscall.ENOSPC) ||
			exit.Code(err) != exit.Failure {
			t.Errorf("%s: error %v", line, err)
		}
	}
}

func TestVersionReportsAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if err := version.Print(full, "", "text"); err == nil {
		t.Error("no error from a version that could not be printed")
	}
}
