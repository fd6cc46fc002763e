package repolint

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// mayInclude are the directories whose headers the C files of a directory may include, beside their own.
var mayInclude = map[string][]string{
	"softdoca/abi":    nil,
	"softdoca/device": {"softdoca/abi"},
	"softdoca/dpa":    {"softdoca/device", "softdoca/abi"},
	"softdoca/sync":   {"softdoca/device", "softdoca/abi"},
	cabiPackage:       {"softdoca/abi"},
}

// leaves are the modules that every other may use, with all that they may include.
var leaves = map[string][]string{
	"softdoca/device/sizes.h":  nil,
	"softdoca/device/now.h":    nil,
	"softdoca/device/config.h": {"softdoca/device/sizes.h"},
	"softdoca/device/config.c": {"softdoca/device/config.h", "softdoca/device/sizes.h"},
}

// configurers are the only files that may include configure.h, because configure.c includes the modules it configures.
var configurers = []string{"softdoca/device/configure.c", "softdoca/device/dev.c"}

func TestIncludes(t *testing.T) {
	for _, violation := range forbiddenIncludes(t, os.DirFS(repositoryRoot)) {
		t.Error(violation)
	}
}

func TestIncludesFindsViolations(t *testing.T) {
	files := map[string]string{
		"softdoca/abi/doca_abi.h":     "",
		"softdoca/device/sizes.h":     "",
		"softdoca/device/now.h":       "",
		"softdoca/device/config.h":    `#include "sizes.h"`,
		"softdoca/device/config.c":    `#include "config.h"`,
		"softdoca/device/pe.h":        `#include "doca_abi.h"`,
		"softdoca/device/ctx.h":       `#include "pe.h"`,
		"softdoca/device/dev.c":       `#include "configure.h"`,
		"softdoca/device/configure.h": "",
		"softdoca/dpa/dpa.h":          `#include "pe.h"`,
		"softdoca/sync/sync_event.h":  `#include "pe.h"`,
		cabiPackage + "/port.h":       `#include "doca_abi.h"`,
	}
	if got := forbiddenIncludes(t, treeOf(files)); len(got) != 0 {
		t.Fatalf("without a violation: %q", got)
	}
	for _, test := range []struct{ file, text, want string }{
		{"softdoca/device/pe.h", `#include "ctx.h"`, "includes itself"},
		{"softdoca/device/config.h", `#include "pe.h"`, "softdoca/device/config.h includes softdoca/device/pe.h"},
		{"softdoca/device/config.c", `#include "ctx.h"`, "softdoca/device/config.c includes softdoca/device/ctx.h"},
		{"softdoca/device/sizes.h", `#include "pe.h"`, "softdoca/device/sizes.h includes softdoca/device/pe.h"},
		{"softdoca/device/pe.h", `#include "configure.h"`, "softdoca/device/pe.h includes softdoca/device/configure.h"},
		{"softdoca/device/dev.c", `#include "port.h"`, "includes port.h, which is not"},
		{"softdoca/device/dev.c", `#include "../cabi/port.h"`, "includes ../cabi/port.h, which is not"},
		{cabiPackage + "/port.h", `#include "ctx.h"`, "includes ctx.h, which is not"},
		{"softdoca/device/pe.h", `#include "dpa.h"`, "includes dpa.h, which is not"},
		{"softdoca/device/pe.h", `#include "sync_event.h"`, "includes sync_event.h, which is not"},
		{"softdoca/device/pe.h", `#include "dpa/dpa.h"`, "includes dpa/dpa.h, which is not"},
		{"softdoca/abi/doca_abi.h", `#include "ctx.h"`, "includes ctx.h, which is not"},
	} {
		changed := maps.Clone(files)
		changed[test.file] = test.text
		if got := forbiddenIncludes(t, treeOf(changed)); !strings.Contains(strings.Join(got, "\n"), test.want) {
			t.Errorf("%s with %s: got %q, want %q", test.file, test.text, got, test.want)
		}
	}
}

func treeOf(files map[string]string) fs.FS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return fsys
}

// forbiddenIncludes returns a sentence for each include that the rules above forbid.
func forbiddenIncludes(t *testing.T, fsys fs.FS) []string {
	t.Helper()
	graph, found := readIncludes(t, fsys)
	for _, file := range slices.Sorted(maps.Keys(graph)) {
		reached := reachable(graph, file)
		if slices.Contains(reached, file) {
			found = append(found, file+" includes itself, by way of others")
		}
		if allowed, leaf := leaves[file]; leaf {
			for _, header := range reached {
				if !slices.Contains(allowed, header) {
					found = append(found, file+" includes "+header+", but every module may include it")
				}
			}
		}
		if slices.Contains(graph[file], "softdoca/device/configure.h") && !slices.Contains(configurers, file) {
			found = append(found, file+" includes softdoca/device/configure.h, which includes what it configures")
		}
	}
	return found
}

// Forms such as <stdio.h> are not ours.
var includeLine = regexp.MustCompile(`(?m)^\s*#\s*include\s+"([^"]+)"`)

// readIncludes returns which of our headers each C file includes directly, and a sentence for each that it may not.
func readIncludes(t *testing.T, fsys fs.FS) (graph map[string][]string, found []string) {
	t.Helper()
	graph = map[string][]string{}
	for directory := range mayInclude {
		files, err := fs.Glob(fsys, directory+"/*.[ch]")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no C files (%v)", directory, err)
		}
		for _, file := range files {
			text, err := fs.ReadFile(fsys, file)
			if err != nil {
				t.Fatal(err)
			}
			graph[file] = nil
			for _, match := range includeLine.FindAllStringSubmatch(string(text), -1) {
				header := resolve(fsys, directory, match[1])
				if header == "" {
					found = append(found, file+" includes "+match[1]+", which is not in a directory that it may use")
					continue
				}
				graph[file] = append(graph[file], header)
			}
		}
	}
	return graph, found
}

// resolve returns the path of a header that a file in directory includes by name; "": it may not.
func resolve(fsys fs.FS, directory, name string) string {
	for _, candidate := range append([]string{directory}, mayInclude[directory]...) {
		header := path.Join(candidate, name)
		if _, err := fs.Stat(fsys, header); err == nil && path.Dir(header) == candidate {
			return header
		}
	}
	return ""
}

// reachable returns what file includes, directly or by way of others; file itself only in a cycle.
func reachable(graph map[string][]string, file string) []string {
	var reached []string
	for queue := graph[file]; len(queue) > 0; queue = queue[1:] {
		if !slices.Contains(reached, queue[0]) {
			reached = append(reached, queue[0])
			queue = append(queue, graph[queue[0]]...)
		}
	}
	return reached
}
