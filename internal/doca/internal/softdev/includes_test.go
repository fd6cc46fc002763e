package softdev

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
	"abi": nil, "softdev": {"abi"}, "softdev/dpa": {"softdev", "abi"}, "cabi": {"abi"},
}

// leaves are the modules that every other may use, with all that they may include.
var leaves = map[string][]string{
	"softdev/sizes.h":  nil,
	"softdev/now.h":    nil,
	"softdev/config.h": {"softdev/sizes.h"},
	"softdev/config.c": {"softdev/config.h", "softdev/sizes.h"},
}

// configurers are the only files that may include configure.h, because configure.c includes the modules it configures.
var configurers = []string{"softdev/configure.c", "softdev/dev.c"}

func TestIncludes(t *testing.T) {
	for _, violation := range violations(t, os.DirFS("..")) {
		t.Error(violation)
	}
}

func TestIncludesFindsViolations(t *testing.T) {
	files := map[string]string{
		"abi/doca_abi.h":      "",
		"softdev/sizes.h":     "",
		"softdev/now.h":       "",
		"softdev/config.h":    `#include "sizes.h"`,
		"softdev/config.c":    `#include "config.h"`,
		"softdev/pe.h":        `#include "doca_abi.h"`,
		"softdev/ctx.h":       `#include "pe.h"`,
		"softdev/dev.c":       `#include "configure.h"`,
		"softdev/configure.h": "",
		"softdev/dpa/dpa.h":   `#include "pe.h"`,
		"cabi/port.h":         `#include "doca_abi.h"`,
	}
	if got := violations(t, tree(files)); len(got) != 0 {
		t.Fatalf("without a violation: %q", got)
	}
	for _, test := range []struct{ file, text, want string }{
		{"softdev/pe.h", `#include "ctx.h"`, "includes itself"},
		{"softdev/config.h", `#include "pe.h"`, "softdev/config.h includes softdev/pe.h"},
		{"softdev/config.c", `#include "ctx.h"`, "softdev/config.c includes softdev/ctx.h"},
		{"softdev/sizes.h", `#include "pe.h"`, "softdev/sizes.h includes softdev/pe.h"},
		{"softdev/pe.h", `#include "configure.h"`, "softdev/pe.h includes softdev/configure.h"},
		{"softdev/dev.c", `#include "port.h"`, "includes port.h, which is not"},
		{"softdev/dev.c", `#include "../cabi/port.h"`, "includes ../cabi/port.h, which is not"},
		{"cabi/port.h", `#include "ctx.h"`, "includes ctx.h, which is not"},
		{"softdev/pe.h", `#include "dpa.h"`, "includes dpa.h, which is not"},
		{"softdev/pe.h", `#include "dpa/dpa.h"`, "includes dpa/dpa.h, which is not"},
		{"abi/doca_abi.h", `#include "ctx.h"`, "includes ctx.h, which is not"},
	} {
		changed := maps.Clone(files)
		changed[test.file] = test.text
		if got := violations(t, tree(changed)); !strings.Contains(strings.Join(got, "\n"), test.want) {
			t.Errorf("%s with %s: got %q, want %q", test.file, test.text, got, test.want)
		}
	}
}

func tree(files map[string]string) fs.FS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return fsys
}

// violations returns a sentence for each include that the rules above forbid.
func violations(t *testing.T, fsys fs.FS) []string {
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
		if slices.Contains(graph[file], "softdev/configure.h") && !slices.Contains(configurers, file) {
			found = append(found, file+" includes softdev/configure.h, which includes what it configures")
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
