package tree_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// outcome is what a walk found, and what it reported as failed.
type outcome struct {
	found, failed []string
}

// walkAll walks a tree, opens its files at the end, and describes what is below the root.
func walkAll(on disk.FS, root string, o tree.Options, limits tree.Limits) (result outcome, err error) {
	w, err := tree.Open(on, root, o)
	if err != nil {
		return outcome{}, err
	}
	defer w.Close()
	w.Restrict(limits)
	var entries []tree.Entry
	for {
		e, err := w.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return outcome{}, err
		}
		entries = append(entries, e)
	}
	for _, e := range entries {
		err := e.Err
		if err == nil && e.Kind == wire.EntryFile {
			_, err = contentOf(&e)
		}
		if err != nil {
			result.failed = append(result.failed, e.Path())
		} else {
			result.found = append(result.found, e.Path())
		}
		e.Release()
	}
	return result, nil
}

var faults = []disktest.Fault{{Err: unix.EIO}, {Err: unix.EACCES, Done: true}, {Err: unix.ENOENT}}

// Every file operation of a walk fails, one after the other.
func TestEveryOperationFails(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a/b/c", "a/b/d", "a/e", "dir/x", "dir/y/z", "end")
	must(t, unix.Symlink("a/b/c", root+"/link"))
	must(t, unix.Symlink("../a", root+"/dir/link"))
	for name, o := range map[string]tree.Options{
		"copy":   {Xattrs: true, HardLinks: true},
		"follow": {Links: tree.LinksFollow},
		"listed": {Links: tree.LinksFollow, Only: []string{"a/b/c", "dir/y/z", "end"}},
	} {
		for _, limits := range []tree.Limits{{}, {OpenFolders: 1, Names: 1}} {
			for _, fault := range faults {
				t.Run(fmt.Sprint(name, limits, fault), func(t *testing.T) { sweep(t, root, o, limits, fault) })
			}
		}
	}
}

func sweep(t *testing.T, root string, o tree.Options, limits tree.Limits, fault disktest.Fault) {
	all, err := walkAll(disk.OS, root, o, limits)
	must(t, err)
	if len(all.failed) > 0 {
		t.Fatalf("without a fault %q fail", all.failed)
	}
	before := openDescriptors(t)
	for n, fired := 0, true; fired; n++ {
		faulty := disktest.NewFaulty(disk.OS, disktest.FailAt(n, fault))
		got, err := walkAll(faulty, root, o, limits)
		if fired = faulty.Fired(); !fired {
			must(t, err)
			continue
		}
		operation := faulty.Trace()[n]
		if err != nil {
			mustBeSource(t, err, disk.ErrSource)
		}
		if err == nil && !strings.HasPrefix(operation, "close ") {
			mustReportFailure(t, got, all, operation)
		}
		if open := openDescriptors(t); open != before {
			t.Errorf("after a fault in %q %d descriptors are open, before it %d", operation, open, before)
		}
	}
}

// mustReportFailure checks that each entry is found, or is at or below one that is reported as failed.
func mustReportFailure(t *testing.T, got, all outcome, operation string) {
	t.Helper()
	if len(got.failed) == 0 {
		t.Errorf("nothing is reported about the fault in %q", operation)
	}
	for _, path := range all.found {
		reported := slices.ContainsFunc(got.failed, func(failed string) bool {
			return path == failed || failed == "" || strings.HasPrefix(path, failed+"/")
		})
		if !reported && !slices.Contains(got.found, path) {
			t.Errorf("after a fault in %q there is nothing about %s", operation, path)
		}
	}
}

// failFor returns a plan by which one operation on one name always fails.
func failFor(operation, name string, err error) disktest.Plan {
	return func(_ int, op, on string) *disktest.Fault {
		if op == operation && on == name {
			return &disktest.Fault{Err: err}
		}
		return nil
	}
}

func TestWhatCannotBeReadIsReportedAndTheWalkGoesOn(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a/x", "locked/x", "z")
	must(t, unix.Symlink("a", root+"/to"))
	const next = ": make it readable for this user, or exclude it"
	const again = ": copy again when no other process changes the tree"
	for operation, want := range map[string]struct {
		plan disktest.Plan
		o    tree.Options
		want []string
	}{
		"directory": {failFor("open", "locked", unix.EACCES), tree.Options{},
			[]string{"a/", "a/x", "! cannot read locked: permission denied" + next, "to -> a", "z"}},
		"list": {failFor("list", "locked", unix.EIO), tree.Options{},
			[]string{"a/", "a/x", "! cannot read locked: input/output error" + next, "to -> a", "z"}},
		"removed": {failFor("stat", "z", unix.ENOENT), tree.Options{},
			[]string{"a/", "a/x", "locked/", "locked/x", "to -> a", "! z was removed during the copy" + again}},
		"symlink": {failFor("readlink", "to", unix.EIO), tree.Options{},
			[]string{"a/", "a/x", "locked/", "locked/x", "! cannot read to: input/output error" + next, "z"}},
		"followed": {failFor("readlink", "to", unix.EACCES), follow,
			[]string{"a/", "a/x", "locked/", "locked/x", "! cannot read to: permission denied" + next, "z"}},
	} {
		t.Run(operation, func(t *testing.T) {
			w, err := tree.Open(disktest.NewFaulty(disk.OS, want.plan), root, want.o)
			must(t, err)
			defer w.Close()
			if got := describeAll(t, w); !slices.Equal(got, want.want) {
				t.Errorf("found %q, want %q", got, want.want)
			}
		})
	}
}

func TestRootThatCannotBeListed(t *testing.T) {
	w, err := tree.Open(disktest.NewFaulty(disk.OS, func(_ int, op, _ string) *disktest.Fault {
		if op == "list" {
			return &disktest.Fault{Err: unix.EIO}
		}
		return nil
	}), t.TempDir(), tree.Options{})
	must(t, err)
	defer w.Close()
	e, err := w.Next()
	must(t, err)
	mustBeSource(t, e.Err, disk.ErrSource, "input/output error")
	if _, err := w.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("then there is %v", err)
	}
}

// TestDirectoryThatCannotBeListedAgain fails the second list of a directory whose names were dropped.
func TestDirectoryThatCannotBeListedAgain(t *testing.T) {
	root := t.TempDir()
	build(t, root, "a/b/c/d", "a/b/z", "a/z", "z")
	lists := 0
	w, err := tree.Open(disktest.NewFaulty(disk.OS, func(_ int, op, name string) *disktest.Fault {
		if op == "list" && name == "b" {
			if lists++; lists > 1 {
				return &disktest.Fault{Err: unix.EIO}
			}
		}
		return nil
	}), root, tree.Options{})
	must(t, err)
	defer w.Close()
	w.Restrict(tree.Limits{Names: 1})
	want := []string{
		"a/", "a/b/", "a/b/c/", "a/b/c/d",
		"! cannot read a/b: input/output error: make it readable for this user, or exclude it", "a/z", "z",
	}
	if got := describeAll(t, w); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
