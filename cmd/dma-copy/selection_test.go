package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/exit"
)

// sent returns the paths of the files below the current directory that the settings select.
func sent(t *testing.T, s copying.Settings, stdin string) []string {
	t.Helper()
	var o dmaxfer.Options
	_, err := copying.Select(t.Context(), s, strings.NewReader(stdin), &o)
	must(t, err)
	walk, err := tree.Open(disk.OS, ".", tree.Options{Filter: o.Filter, Only: o.FilesFrom})
	must(t, err)
	defer walk.Close()
	var paths []string
	for {
		entry, err := walk.Next()
		if err == io.EOF {
			return paths
		}
		must(t, err)
		if !entry.Info.Mode.IsDir() {
			paths = append(paths, entry.Path())
		}
	}
}

// makeTree creates empty files below a new current directory.
func makeTree(t *testing.T, paths ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, path := range paths {
		if slash := strings.LastIndexByte(path, '/'); slash > 0 {
			must(t, os.MkdirAll(path[:slash], 0o755))
		}
		writeFile(t, path, "")
	}
}

// The first rule that matches decides, in the order of the command line, also across files of patterns.
func TestOrderOfPatterns(t *testing.T) {
	makeTree(t, "a.o", "keep.o", "sub/b.o", "sub/c.tmp", "z")
	ignore := t.TempDir() + "/ignore"
	writeFile(t, ignore, "# temporary files\n*.tmp\n!c.tmp\n")
	for line, want := range map[string][]string{
		"--exclude *.o":                    {"sub/c.tmp", "z"},
		"--include keep.o --exclude *.o":   {"keep.o", "sub/c.tmp", "z"},
		"--exclude *.o --include keep.o":   {"sub/c.tmp", "z"},
		"--exclude sub/":                   {"a.o", "keep.o", "z"},
		"--exclude *.tmp --exclude-from F": {"a.o", "keep.o", "sub/b.o", "z"},
		"--exclude-from F --exclude *.tmp": {"a.o", "keep.o", "sub/b.o", "sub/c.tmp", "z"},
	} {
		args := append([]string{"-f", "."}, words(strings.ReplaceAll(line, "F", ignore))...)
		if got := sent(t, mustRun(t, nil, args...), ""); !slices.Equal(got, want) {
			t.Errorf("%s: sent %q, want %q", line, got, want)
		}
	}
}

func TestListsOfPaths(t *testing.T) {
	makeTree(t, "a", "b\nc", "sub/d", "sub/e")
	writeFile(t, "list", "./a\nsub/e\n\n")
	for _, tc := range []struct {
		s     copying.Settings
		stdin string
		want  []string
	}{
		{copying.Settings{FilesFrom: "list"}, "", []string{"a", "sub/e"}},
		{copying.Settings{FilesFrom: "-"}, "sub/d", []string{"sub/d"}},
		{copying.Settings{FilesFrom: "-", Null: true}, "b\nc\x00a\x00", []string{"a", "b\nc"}},
	} {
		if got := sent(t, tc.s, tc.stdin); !slices.Equal(got, tc.want) {
			t.Errorf("%+v: sent %q, want %q", tc.s, got, tc.want)
		}
	}
}

func TestRefusedLists(t *testing.T) {
	inNewDir(t, "list", "a\n/etc/passwd\n")
	writeFile(t, "patterns", "*.o\n[a\n")
	must(t, os.Mkdir("directory", 0o755))
	excludeFrom := func(path string) copying.Settings {
		return copying.Settings{Filters: []copying.FilterRule{{Kind: copying.FilterExcludeFrom, Text: path}}}
	}
	for _, tc := range []struct {
		s        copying.Settings
		stdin    string
		sentence string
	}{
		{copying.Settings{FilesFrom: "no"}, "",
			`--files-from "no": no such file or directory; check the path and its permissions`},
		{copying.Settings{FilesFrom: "list"}, "",
			`--files-from "list": path 2: "/etc/passwd" is absolute: list paths relative to the source directory`},
		{copying.Settings{FilesFrom: "directory"}, "", `--files-from "directory": is a directory`},
		{copying.Settings{FilesFrom: "-"}, "\n",
			`--files-from "-": the list names no entry; leave --files-from out to send all`},
		{excludeFrom("-"), "*.o\n",
			`--exclude-from "-": no such file or directory; check the path and its permissions`},
		{excludeFrom("patterns"), "",
			`--exclude-from "patterns": line 2: malformed pattern "[a": it has "[" without "]"`},
	} {
		var o dmaxfer.Options
		_, err := copying.Select(t.Context(), tc.s, strings.NewReader(tc.stdin), &o)
		if err == nil || err.Error() != tc.sentence || exit.Code(err) != exit.Usage {
			t.Errorf("error\n %v\nwant\n %s", err, tc.sentence)
		}
	}
}

// A list from a pipe without a writer does not keep a signal from ending the program.
func TestWaitingForAListIsInterrupted(t *testing.T) {
	reader, writer := io.Pipe()
	defer writer.Close() // ends the reading, which is left behind
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exit.Interrupted{Signal: syscall.SIGINT})
	var o dmaxfer.Options
	_, err := copying.Select(ctx, copying.Settings{FilesFrom: "-"}, reader, &o)
	if exit.Code(err) != exit.Signal+int(syscall.SIGINT) {
		t.Errorf("error %v", err)
	}
}
