//go:build cgo

package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/exit"
)

// cardlessSource replaces DOCA on a machine without a card: every function succeeds and finds nothing.
const cardlessSource = `
#include "doca_abi.h"
#define UNWRAP(...) __VA_ARGS__
#define DOCA_FUNC(lib, need, ret, name, params, args, former) ret name params { static ret nothing; return nothing; }
#define DOCA_PROC(lib, need, name, params, args, former) void name params { }
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) ret name(void) { return (ret)RELEASE; }
#include "doca_functions.def"
`

// installCardless adds to a directory an installation of DOCA that finds no device.
func installCardless(t *testing.T, directory, release, suffix string) {
	t.Helper()
	source, built := filepath.Join(t.TempDir(), "doca.c"), filepath.Join(t.TempDir(), "doca.so")
	writeFile(t, source, cardlessSource)
	compiler := cmp.Or(os.Getenv("CC"), "cc")
	command := exec.Command(compiler, "-shared", "-fPIC", "-w", "-I", "../../softdoca/abi",
		`-DRELEASE="`+release+`"`, "-o", built, source)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content := readFile(t, built)
	for _, library := range []string{"libdoca_common", "libdoca_dma", "libdoca_comch"} {
		file := library + ".so." + release
		writeFile(t, filepath.Join(directory, file), content)
		if err := os.Symlink(file, filepath.Join(directory, library+suffix)); err != nil {
			t.Fatal(err)
		}
	}
}

type installedCase struct {
	line  string
	code  int
	parts []string
}

func TestCommandsOnDOCAWithoutACard(t *testing.T) {
	useSoftDevice(t, "all")
	directory := t.TempDir()
	installCardless(t, directory, "3.0.0058", ".so.2")
	files := directory + ": libdoca_common.so.3.0.0058, libdoca_dma.so.3.0.0058, libdoca_comch.so.3.0.0058\n"
	runInstalled(t, directory, []installedCase{
		{"devices --driver doca", 6, []string{"no device found: doca 3.0.0058 (DMA engine)"}},
		{"devices", 0, []string{"driver soft 1", "because DOCA in " + directory + " finds no device"}},
		{"devices -o json", 0, []string{`"library_directory":""`}},
		{"version --driver doca", 0, []string{
			"DOCA runtime: 3.0.0058\nlibraries: " + files + "driver: doca 3.0.0058 (DMA engine)\n"}},
		{"--version", 0, []string{"DOCA runtime: 3.0.0058\n"}},
		{"doctor --driver doca", 6, []string{
			"ok    DOCA 3.0.0058: libraries in " + files,
			"ok    driver: doca 3.0.0058 (DMA engine), because DOCA was requested\n",
			"FAIL  devices: none found  -- "}},
	})

	// The newest version of several is loaded, and all commands say that it is newer than this program.
	installCardless(t, directory, "4.0.0012", ".so.3")
	const caution = "DOCA 4.0.0012 (libdoca_common.so.3) is newer than the releases that dma-copy was tested for, " +
		"2.7 to 3.5"
	runInstalled(t, directory, []installedCase{
		{"devices --driver doca", 6, []string{"no device found: doca 4.0.0012 (DMA engine)", caution}},
		{"version", 0, []string{"DOCA runtime: 4.0.0012\n", "warning: " + caution + "\n"}},
		{"version -o json", 0, []string{`"doca_caution":"` + caution + `"`}},
		{"doctor --driver doca", 6, []string{
			"warn  " + caution + ": libraries in " + directory + ": libdoca_common.so.4"}},
	})
}

func runInstalled(t *testing.T, directory string, cases []installedCase) {
	t.Helper()
	for _, tc := range cases {
		variables := map[string]string{"DMA_COPY_DOCA_LIBDIR": directory}
		got := invoke(variables, words(tc.line)...)
		all := got.stdout + got.stderr
		if got.err != nil {
			all += got.err.Error()
		}
		if code := exit.Code(got.err); code != tc.code {
			t.Errorf("%s: exit code %d (%v), want %d", tc.line, code, got.err, tc.code)
		}
		for _, part := range tc.parts {
			if !strings.Contains(all, part) {
				t.Errorf("%s: %s\nlacks %q", tc.line, all, part)
			}
		}
	}
}
