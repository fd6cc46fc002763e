package disk_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

func TestListHasAllNames(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, _ disk.File) {
		want := []string{"file"}
		for i := range 600 { // more than one call returns
			name := fmt.Sprintf("%d-%s", i, strings.Repeat("n", i%250))
			at.put(name, "")
			want = append(want, name)
		}
		for _, name := range []string{"...", "\xff\xfe", "line\nbreak", " ", strings.Repeat("l", 255)} {
			at.put(name, "")
			want = append(want, name)
		}
		at.link("nowhere", "symlink")
		want = append(want, "symlink")
		slices.Sort(want)
		for range 2 { // starts at the beginning again
			got, more, err := dir.List("", 1<<30)
			must(t, err)
			if more || !slices.Equal(got, want) {
				t.Errorf("%d names, want %d", len(got), len(want))
			}
		}
	})
}

func TestListOfAnEmptyDirectory(t *testing.T) {
	dir, err := disk.OS.OpenDir(t.TempDir())
	must(t, err)
	defer dir.Close()
	names, more, err := dir.List("", 1<<30)
	must(t, err)
	if len(names) != 0 || more {
		t.Errorf("there are %q", names)
	}
}

func TestListOfARemovedDirectory(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "dir")
	must(t, os.Mkdir(folder, 0o700))
	dir, err := disk.OS.OpenDir(folder)
	must(t, err)
	defer dir.Close()
	must(t, os.Remove(folder))
	if names, err := disk.Names(dir); len(names) > 0 {
		t.Errorf("there are %q, and %v", names, err)
	}
}

// With any limit the lists that follow one another have all names, and none takes more than the limit.
func TestListsFollowOneAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringN(1, 60, 255), rapid.ID).Draw(t, "names")
		limit := rapid.IntRange(0, 2000).Draw(t, "limit")
		batch := rapid.IntRange(1, 10).Draw(t, "batch")
		var got []string
		for after, more := "", true; more; {
			batches := slices.Collect(slices.Chunk(names, batch))
			next := func() ([]string, error) {
				if len(batches) == 0 {
					return nil, io.EOF
				}
				defer func() { batches = batches[1:] }()
				return batches[0], nil
			}
			var page []string
			var err error
			page, more, err = disk.ListNames(next, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) > 1 && disk.NamesSize(page) > limit || more && len(page) == 0 {
				t.Fatalf("there are %q after %q with a limit of %d", page, after, limit)
			}
			got = append(got, page...)
			if more {
				after = page[len(page)-1]
			}
		}
		slices.Sort(names)
		if !slices.Equal(got, names) {
			t.Fatalf("got %q, want %q", got, names)
		}
	})
}

// Lists of an open directory follow one another, too.
func TestListIsContinued(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, _ disk.File) {
		for i := range 600 {
			at.put(fmt.Sprintf("%03d", (i*7)%600), "")
		}
		limit := 100 * disk.NamesSize([]string{"000"})
		first, more, err := dir.List("", limit)
		must(t, err)
		if n := len(first); n < 50 || n > 100 || !more || first[n-1] != fmt.Sprintf("%03d", n-1) {
			t.Errorf("there are %q", first)
		}
		last, more, err := dir.List("597", limit)
		must(t, err)
		if !slices.Equal(last, []string{"598", "599", "file"}) || more {
			t.Errorf("there are %q", last)
		}
	})
}
