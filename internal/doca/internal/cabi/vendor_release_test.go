//go:build cgo

package cabi

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// releaseSource is a library with every function of the list, each of which does nothing.
const releaseSource = `
#include <stdlib.h>
#include "doca_abi.h"
#define UNWRAP(...) __VA_ARGS__
#define DOCA_FUNC(lib, need, ret, name, params, args, former) ret name params { abort(); }
#define DOCA_PROC(lib, need, name, params, args, former) void name params { abort(); }
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) ret name(void) { return (ret)RELEASE; }
#include "doca_functions.def"
`

var releaseLibraries = []string{"libdoca_common", "libdoca_dma", "libdoca_comch"}

// built has the libraries that buildRelease has compiled, by release and source. Their names make no difference.
var built = map[[2]string][]byte{}

// buildRelease creates a fake library under its real file name, and the link that programs load.
func buildRelease(t *testing.T, directory, library, release, source string) {
	t.Helper()
	key := [2]string{release, source}
	if built[key] == nil {
		built[key] = compileRelease(t, release, source)
	}
	file := library + ".so." + release
	if err := os.WriteFile(filepath.Join(directory, file), built[key], 0o700); err != nil {
		t.Fatal(err)
	}
	if release == "2" {
		return // the file has the link's name
	}
	if err := os.Symlink(file, filepath.Join(directory, library+".so.2")); err != nil {
		t.Fatal(err)
	}
}

func compileRelease(t *testing.T, release, source string) []byte {
	t.Helper()
	directory := t.TempDir()
	text, library := filepath.Join(directory, "library.c"), filepath.Join(directory, "library.so")
	if err := os.WriteFile(text, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(compilerName(), "-shared", "-fPIC", "-O0", "-w", "-I"+softdoca+"abi",
		`-DRELEASE="`+release+`"`, "-o", library, text)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// buildInstallation creates a directory with the three libraries, of these releases.
func buildInstallation(t *testing.T, releases ...string) string {
	t.Helper()
	directory := t.TempDir()
	for i, library := range releaseLibraries {
		buildRelease(t, directory, library, releases[i], releaseSource)
	}
	return directory
}

func loadSentence(t *testing.T, directory string) string {
	t.Helper()
	abi, _, err := OpenVendor(directory)
	if err == nil {
		abi.Close()
		t.Fatal("the libraries were accepted")
	}
	failure, is := errors.AsType[*LoadError](err)
	if !is {
		t.Fatalf("%T %v is no *LoadError", err, err)
	}
	return failure.Reason
}

func TestOneReleaseIsAccepted(t *testing.T) {
	directory := buildInstallation(t, "2.10.0087", "2.10.0087", "2.10.0087")
	abi, found, err := OpenVendor(directory)
	if err != nil {
		t.Fatal(err)
	}
	defer abi.Close()
	if found != directory {
		t.Errorf("directory %q, want %q", found, directory)
	}
	var want []string
	for _, library := range releaseLibraries {
		want = append(want, filepath.Join(directory, library+".so.2.10.0087"))
	}
	if got := abi.Libraries(); !slices.Equal(got, want) {
		t.Errorf("libraries %q, want %q", got, want)
	}
	if got := abi.Version(); got != "2.10.0087" {
		t.Errorf("version %q", got)
	}
}

func TestMixedReleasesAreRefused(t *testing.T) {
	cases := []struct {
		releases []string
		differs  string
	}{
		{[]string{"2.10.0087", "3.0.0058", "2.10.0087"}, "libdoca_common is 2.10.0087 and libdoca_dma is 3.0.0058"},
		{[]string{"3.3.0001", "3.3.0001", "2.9.4005"}, "libdoca_common is 3.3.0001 and libdoca_comch is 2.9.4005"},
	}
	for _, tc := range cases {
		directory := buildInstallation(t, tc.releases...)
		want := directory + " mixes releases of DOCA: " + tc.differs + "; install one release of both"
		if got := loadSentence(t, directory); got != want {
			t.Errorf("got\n %s\nwant\n %s", got, want)
		}
	}
}

// If the file names have no release, the loader still refuses.
func TestUnresolvedPrivateSymbolSaysThatReleasesDiffer(t *testing.T) {
	directory := t.TempDir()
	buildRelease(t, directory, "libdoca_common", "2", releaseSource)
	buildRelease(t, directory, "libdoca_dma", "2",
		"extern void priv_doca_task_new(void); void doca_dma_create(void) { priv_doca_task_new(); }")
	got := loadSentence(t, directory)
	for _, part := range []string{
		directory + " has libdoca_common.so.2 but libdoca_dma.so.2 cannot be loaded from there: ",
		"undefined symbol: priv_doca_task_new", "; the two are not of one release",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%s\nlacks %q", got, part)
		}
	}
}

func TestUnreadableLibraryIsNamedWithTheReason(t *testing.T) {
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "libdoca_common.so.2"), []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "DOCA's libraries are there but cannot be loaded: " + directory + "/libdoca_common.so.2: file too short"
	if got := loadSentence(t, directory); got != want {
		t.Errorf("got\n %s\nwant\n %s", got, want)
	}
}

func TestMissingDependencyIsNotAMissingLibrary(t *testing.T) {
	directory := t.TempDir()
	buildRelease(t, directory, "libdoca_common", "2.10.0087", releaseSource)
	buildNeedingLibrary(t, directory)
	got := loadSentence(t, directory)
	want := "libdoca_dma.so.2 cannot be loaded from there: libabsent.so: cannot open shared object file: " +
		"No such file or directory"
	if !strings.Contains(got, want) {
		t.Errorf("%s\nlacks %q", got, want)
	}
}

// buildNeedingLibrary creates a libdoca_dma that depends on a missing library.
func buildNeedingLibrary(t *testing.T, directory string) {
	t.Helper()
	work := t.TempDir()
	script := `set -e; cc="${CC:-cc}"; cd "$1"
		echo 'int absent(void) { return 0; }' >a.c; "$cc" -shared -fPIC -Wl,-soname,libabsent.so -o libabsent.so a.c
		echo 'int absent(void); int here(void) { return absent(); }' >b.c
		"$cc" -shared -fPIC -o "$2/libdoca_dma.so.2" b.c -L. -labsent; rm libabsent.so`
	if out, err := exec.Command("sh", "-c", script, "sh", work, directory).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestMissingCompanionIsSaid(t *testing.T) {
	directory := t.TempDir()
	buildRelease(t, directory, "libdoca_common", "2.10.0087", releaseSource)
	want := directory +
		" has libdoca_common.so.2 but libdoca_dma.so.2 cannot be loaded from there: there is no such file"
	if got := loadSentence(t, directory); got != want {
		t.Errorf("got\n %s\nwant\n %s", got, want)
	}
}

func TestAbsentLibrariesSayWhatWasLookedFor(t *testing.T) {
	directory := t.TempDir()
	want := "DOCA's libraries were not found: looked for libdoca_common.so.9 to .so.2, and .so, in " + directory
	if got := loadSentence(t, directory); got != want {
		t.Errorf("got\n %s\nwant\n %s", got, want)
	}
}
