//go:build cgo

package cabi

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// softdoca is the directory of the software device and of DOCA's declarations, from here.
const softdoca = "../../../../softdoca/"

// compilerName returns the C compiler for the architecture of the tests, which differs from that of the machine under
// emulation.
func compilerName() string {
	if named := os.Getenv("CC"); named != "" {
		return named
	}
	return "cc"
}

// compile runs the C compiler in this directory and returns its output. Without a compiler the test is skipped, but
// fails in CI.
func compile(t *testing.T, source string, args ...string) string {
	t.Helper()
	compiler, err := exec.LookPath(compilerName())
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-std=gnu11", "-I.", "-I" + softdoca + "abi", "-x", "c", "-"}, args...)
	command := exec.CommandContext(t.Context(), compiler, args...)
	command.Stdin = strings.NewReader(source)
	var complaints strings.Builder
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command.Args, " "), err, complaints.String())
	}
	return string(output)
}

// runC compiles and runs a program from its source and the named files of this package, and returns its output.
func runC(t *testing.T, source string, with ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	args := []string{"-o", program, "-pthread"}
	compile(t, source, append(append(args, "-x", "c"), with...)...)
	output, err := exec.CommandContext(t.Context(), program).Output()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("these tests are emulated, and programs like them cannot be started by themselves here")
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("%v: %s", err, failed.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}
