//go:build cgo

package cabi

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The loader is tested with libraries of the right names that do nothing. They are generated from the list of
// functions, so that they are complete, and then changed.

const stubSource = `
#include "doca_abi.h"
#define OF_COMMON 1
#define OF_DMA 2
#define OF_COMCH 3
#if LIBRARY == OF_COMMON
#define STUB_COMMON(...) __VA_ARGS__
#else
#define STUB_COMMON(...)
#endif
#if LIBRARY == OF_DMA
#define STUB_DMA(...) __VA_ARGS__
#else
#define STUB_DMA(...)
#endif
#if LIBRARY == OF_COMCH
#define STUB_COMCH(...) __VA_ARGS__
#else
#define STUB_COMCH(...)
#endif
#define DOCA_FUNC(lib, need, ret, name, params, args, former) STUB_##lib(ret name params { __builtin_trap(); })
#define DOCA_PROC(lib, need, name, params, args, former) STUB_##lib(void name params { __builtin_trap(); })
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) STUB_##lib(ret name(void) { return "9.8.7"; })
#include "doca_functions.def"
`

var stubLibraries = []string{"libdoca_common", "libdoca_dma", "libdoca_comch"}

// renamed exports a function under another name, or under none that is looked up.
type renamed map[string]string

// makeLibraries creates the three in a new directory.
func makeLibraries(t *testing.T, r renamed) string {
	t.Helper()
	directory := t.TempDir()
	for i, name := range stubLibraries {
		makeLibrary(t, filepath.Join(directory, name+".so.2"), i+1, r)
	}
	return directory
}

func makeLibrary(t *testing.T, path string, number int, r renamed) {
	t.Helper()
	args := []string{"-shared", "-fPIC", "-w", "-o", path, "-DLIBRARY=" + string(rune('0'+number))}
	for name, other := range r {
		args = append(args, "-D"+name+"="+other)
	}
	compile(t, stubSource, args...)
}

// function is an entry of the list.
type function struct{ library, need, name, former string }

// functions reads the list with the C preprocessor.
func functions(t *testing.T) (list []function) {
	t.Helper()
	const source = `
#define DOCA_FUNC(lib, need, ret, name, params, args, former) @ lib need name former
#define DOCA_PROC(lib, need, name, params, args, former) @ lib need name former
#define DOCA_FUNC_NOARG(lib, need, ret, name, former) @ lib need name former
#include "doca_functions.def"
`
	for _, entry := range strings.Split(compile(t, source, "-E", "-P"), "@")[1:] {
		words := strings.Fields(entry)
		if len(words) != 4 {
			t.Fatalf("%q is not an entry", entry)
		}
		list = append(list, function{words[0], words[1], words[2], strings.Trim(words[3], `"`)})
	}
	if len(list) < 100 {
		t.Fatalf("the list has only %d functions", len(list))
	}
	return list
}

func mustLoad(t *testing.T, directory string) ABI {
	t.Helper()
	abi, from, err := OpenVendor(directory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(abi.Close)
	if from != directory {
		t.Errorf("loaded from %s, not from %s", from, directory)
	}
	return abi
}

func mustNotLoad(t *testing.T, directory string, words ...string) {
	t.Helper()
	abi, _, err := OpenVendor(directory)
	if err == nil {
		abi.Close()
		t.Fatal("it was loaded")
	}
	var load *LoadError
	if !errors.As(err, &load) {
		t.Fatalf("got %v, want a LoadError", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not mention %s", err, word)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is more than a sentence", err)
	}
}

func TestVendorComplete(t *testing.T) {
	abi := mustLoad(t, makeLibraries(t, nil))
	if version := abi.Version(); version != "9.8.7" {
		t.Errorf("version %q", version)
	}
}

func TestVendorOfAnyMajorVersion(t *testing.T) {
	for _, suffix := range []string{".so.3", ".so"} {
		directory := makeLibraries(t, nil)
		for _, name := range stubLibraries {
			path := filepath.Join(directory, name)
			if err := os.Rename(path+".so.2", path+suffix); err != nil {
				t.Fatal(err)
			}
		}
		if got := mustLoad(t, directory).Soname(); got != "libdoca_common"+suffix {
			t.Errorf("%s was loaded as %s", suffix, got)
		}
	}
}

// The newest of several versions in a directory is loaded, and only with its own libraries.
func TestVendorOfTheNewestVersion(t *testing.T) {
	directory := makeLibraries(t, nil)
	for _, suffix := range []string{".so.4", ".so.3", ".so"} {
		for _, name := range stubLibraries {
			path := filepath.Join(directory, name)
			if err := os.Link(path+".so.2", path+suffix); err != nil {
				t.Fatal(err)
			}
		}
	}
	abi, _, err := OpenVendor(directory)
	if err != nil {
		t.Fatal(err)
	}
	if got := abi.Soname(); got != "libdoca_common.so.4" {
		t.Errorf("%s was loaded", got)
	}
	abi.Close()
	if err := os.Remove(filepath.Join(directory, "libdoca_comch.so.4")); err != nil {
		t.Fatal(err)
	}
	mustNotLoad(t, directory, "libdoca_common.so.4", "libdoca_comch.so.4", "no such file")
}

// One function of each library, because each has its own handle.
func TestVendorWithoutRequired(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range functions(t) {
		if f.need != "REQUIRED" || seen[f.library] {
			continue
		}
		seen[f.library] = true
		t.Run(f.name, func(t *testing.T) {
			directory := makeLibraries(t, renamed{f.name: "something_else"})
			mustNotLoad(t, directory, f.name, "libdoca_"+strings.ToLower(f.library), directory, "9.8.7")
		})
	}
	if len(seen) != len(stubLibraries) {
		t.Errorf("only %v have required functions", seen)
	}
}

func TestVendorWithoutOptional(t *testing.T) {
	r := renamed{}
	for _, f := range functions(t) {
		if f.need == "OPTIONAL" {
			r[f.name] = "absent_" + f.name
		}
	}
	abi := mustLoad(t, makeLibraries(t, r))
	if version := abi.Version(); version != "unknown" {
		t.Errorf("version %q of a release that cannot tell", version)
	}
	if err := abi.LogTo(2, 50); err != nil {
		t.Errorf("a release that cannot log is not silent: %v", err)
	}
}

// What only the development kit has is not looked for in any installation: sync events, and what is for a DPA.
func TestFunctionsOfTheKitAreNotLoaded(t *testing.T) {
	kits := regexp.MustCompile(`_(sync_event|dpa|msgq|consumer_completion|consumer_set_completion|dev_max_num)(_|$)`)
	for _, f := range functions(t) {
		if kits.MatchString(f.name) {
			t.Errorf("%s is in the list of functions that the program has", f.name)
		}
	}
}

func TestVendorWithFormerNames(t *testing.T) {
	r := renamed{}
	for _, f := range functions(t) {
		if f.former != "NULL" {
			r[f.name] = f.former
		}
	}
	if len(r) == 0 {
		t.Fatal("no function was ever renamed")
	}
	mustLoad(t, makeLibraries(t, r))
}

func TestVendorWithoutItsOtherLibraries(t *testing.T) {
	for _, name := range stubLibraries[1:] {
		t.Run(name, func(t *testing.T) {
			directory := makeLibraries(t, nil)
			if err := os.Remove(filepath.Join(directory, name+".so.2")); err != nil {
				t.Fatal(err)
			}
			mustNotLoad(t, directory, name, directory)
		})
	}
}

func TestVendorThatIsNoLibrary(t *testing.T) {
	for name, content := range map[string]string{
		"text": "this is not a library", "empty": "", "cut": "\x7fELF\x02\x01\x01",
	} {
		t.Run(name, func(t *testing.T) {
			directory := makeLibraries(t, nil)
			path := filepath.Join(directory, "libdoca_common.so.2")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			mustNotLoad(t, directory, "cannot be loaded", path)
		})
	}
}

// A dependency of DOCA may be missing: then DOCA is installed, and "not found" would mislead.
func TestVendorThatLacksALibraryOfItsOwn(t *testing.T) {
	directory := makeLibraries(t, nil)
	needed := filepath.Join(t.TempDir(), "libneeded.so")
	compile(t, "void needed(void) {}", "-shared", "-fPIC", "-Wl,-soname,libneeded.so", "-o", needed)
	common := filepath.Join(directory, "libdoca_common.so.2")
	caller := "void needed(void); void needs(void) { needed(); }"
	compile(t, caller, "-shared", "-fPIC", "-o", common, "-x", "none", needed)
	mustNotLoad(t, directory, "cannot be loaded", "libneeded.so")
}

func TestVendorThatIsNotThere(t *testing.T) {
	empty := t.TempDir()
	mustNotLoad(t, empty, "not found", empty, "libdoca_common.so.9 to .so.2")
	mustNotLoad(t, filepath.Join(empty, "missing"), "not found", filepath.Join(empty, "missing"))
	mustNotLoad(t, filepath.Join(empty, strings.Repeat("long/", 2000)), "not found")
}
