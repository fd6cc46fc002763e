//go:build ucx && cgo

package ucx

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The loader is tested with libraries that do nothing. They are generated from the list of functions, so that they are
// complete, and then changed.
const stubSource = `
#define UCP_FUNC(name) void name(void) { __builtin_trap(); }
#define ucp_get_version ucp_get_version_of_the_list
#include "ucp_functions.def"
#undef ucp_get_version
void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release)
{
	*major = MAJOR, *minor = MINOR, *release = 3;
}
`

// makeLibrary compiles the library with further options of the compiler.
func makeLibrary(t *testing.T, options ...string) string {
	t.Helper()
	return compile(t, stubSource, append([]string{"-DMAJOR=1", "-DMINOR=99"}, options...)...)
}

func compile(t *testing.T, source string, options ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "libucp.so.0")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-shared", "-fPIC", "-w", "-I", here, "-o", file, "-x", "c", "-"}, options...)
	command := exec.Command("cc", args...)
	command.Stdin = strings.NewReader(source)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

func mustNotLoad(t *testing.T, file string, words ...string) {
	t.Helper()
	_, err := loadLibrary(file)
	if !errors.Is(err, ErrUnavailable) {
		t.Fatalf("got %v, want %v", err, ErrUnavailable)
	}
	for _, word := range append(words, "libucx0") {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not mention %q", err, word)
		}
	}
}

func TestCompleteLibraryIsLoaded(t *testing.T) {
	if _, err := loadLibrary(makeLibrary(t)); err != nil {
		t.Fatal(err)
	}
}

func TestLibraryWithoutAFunction(t *testing.T) {
	list, err := os.ReadFile("ucp_functions.def")
	if err != nil {
		t.Fatal(err)
	}
	functions := 0
	for line := range strings.Lines(string(list)) {
		name, found := strings.CutPrefix(strings.TrimSpace(line), "UCP_FUNC(")
		name, _ = strings.CutSuffix(name, ")")
		if !found || name == "ucp_get_version" {
			continue
		}
		functions++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := makeLibrary(t, "-D"+name+"=something_else")
			mustNotLoad(t, file, file, "has no "+name)
		})
	}
	if functions < 30 {
		t.Errorf("the list has only %d functions", functions)
	}
}

func TestLibraryOfAnotherVersion(t *testing.T) {
	for _, version := range []struct{ options, text string }{
		{"-DMAJOR=1 -DMINOR=8", "UCX 1.8.3"}, {"-DMAJOR=2 -DMINOR=99", "UCX 2.99.3"},
		{"-DMAJOR=0 -DMINOR=99", "UCX 0.99.3"},
	} {
		file := compile(t, stubSource, strings.Fields(version.options)...)
		mustNotLoad(t, file, file, version.text, "1.13")
	}
}

func TestFileThatIsNoUCX(t *testing.T) {
	mustNotLoad(t, compile(t, "int nothing;"), "it is not UCX's library")
	missing := filepath.Join(t.TempDir(), "libucp.so.0")
	mustNotLoad(t, missing, missing, "No such file")
	text := filepath.Join(t.TempDir(), "libucp.so.0")
	if err := os.WriteFile(text, []byte("this is not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustNotLoad(t, text, text)
	mustNotLoad(t, strings.Repeat("long/", 2000))
}

// In a process of its own, because UCX would have installed its handlers when another test loaded it.
func TestGoKeepsItsSignals(t *testing.T) {
	if out := inProcess(t, "signals"); len(out) > 0 {
		t.Errorf("UCX has taken these:\n%s", out)
	}
}

func TestNilDereferenceIsRecovered(t *testing.T) {
	if out := inProcess(t, "nil dereference"); !strings.Contains(string(out), "nil pointer") {
		t.Errorf("got %s", out)
	}
}
