//go:build cgo

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
)

// cardlessSource replaces DOCA on a machine without a card: every function succeeds and finds nothing.
const cardlessSource = `
#include "doca_abi.h"
#define UNWRAP(...) __VA_ARGS__
#define DOCA_FUNC(lib, need, ret, name, params, args, former) ret name params { static ret nothing; return nothing; }
#define DOCA_PROC(lib, need, name, params, args, former) void name params { }
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) ret name(void) { return (ret)"3.0.0058"; }
#include "doca_functions.def"
`

// installCardless creates an installation of DOCA that finds no device.
func installCardless(t *testing.T) (directory string) {
	t.Helper()
	directory = t.TempDir()
	source := filepath.Join(t.TempDir(), "doca.c")
	writeFile(t, source, cardlessSource)
	declarations, err := filepath.Abs("../../softdoca/abi")
	if err != nil {
		t.Fatal(err)
	}
	compiler := "cc"
	if named := os.Getenv("CC"); named != "" {
		compiler = named
	}
	for _, library := range []string{"libdoca_common", "libdoca_dma", "libdoca_comch"} {
		file := library + ".so.3.0.0058"
		command := exec.Command(compiler, "-shared", "-fPIC", "-w", "-I", declarations, "-o",
			filepath.Join(directory, file), source)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if err := os.Symlink(file, filepath.Join(directory, library+".so.2")); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestCommandsOnDOCAWithoutACard(t *testing.T) {
	useSoftDevice(t, "all")
	directory := installCardless(t)
	cases := []struct {
		line  string
		code  int
		parts []string
	}{
		{"devices --driver doca", 6, []string{"no device found: doca 3.0.0058 (DMA engine)"}},
		{"devices", 0, []string{"driver soft 1", "because DOCA in " + directory + " finds no device"}},
		{"devices -o json", 0, []string{`"library_directory": ""`}},
		{"version --driver doca", 0, []string{"DOCA runtime: 3.0.0058\n", "driver: doca 3.0.0058 (DMA engine)\n"}},
		{"--version", 0, []string{"DOCA runtime: 3.0.0058\n"}},
		{"doctor --driver doca", 6, []string{
			"ok    DOCA 3.0.0058: libraries in " + directory +
				": libdoca_common.so.3.0.0058, libdoca_dma.so.3.0.0058, libdoca_comch.so.3.0.0058\n",
			"ok    driver: doca 3.0.0058 (DMA engine), because DOCA was requested\n",
			"FAIL  devices: none found  -- "}},
	}
	for _, tc := range cases {
		variables := map[string]string{"DMA_COPY_DOCA_LIBDIR": directory}
		got := invoke(variables, words(tc.line)...)
		all := got.stdout
		if got.err != nil {
			all += got.err.Error()
		}
		if code := report.ExitCode(got.err); code != tc.code {
			t.Errorf("%s: exit code %d (%v), want %d", tc.line, code, got.err, tc.code)
		}
		for _, part := range tc.parts {
			if !strings.Contains(all, part) {
				t.Errorf("%s: %s\nlacks %q", tc.line, all, part)
			}
		}
	}
}
