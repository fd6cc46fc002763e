package disk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// namesOf returns the names of a list.
func namesOf(l *disk.NameList) []string {
	names := make([]string, l.Len())
	for i := range names {
		names[i] = l.Name(i)
	}
	return names
}

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
			names, err := dir.List("", 1<<30)
			must(t, err)
			if got := namesOf(names); !slices.Equal(got, want) {
				t.Errorf("%d names, want %d", len(got), len(want))
			}
		}
	})
}

func TestListOfAnEmptyDirectory(t *testing.T) {
	dir, err := disk.OS.OpenDir(t.TempDir())
	must(t, err)
	defer dir.Close()
	names, err := dir.List("", 1<<30)
	must(t, err)
	if names.Len() != 0 || names.More() {
		t.Errorf("there are %q", namesOf(names))
	}
}

func TestListOfARemovedDirectory(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "dir")
	must(t, os.Mkdir(folder, 0o700))
	dir, err := disk.OS.OpenDir(folder)
	must(t, err)
	defer dir.Close()
	must(t, os.Remove(folder))
	if names, err := dir.List("", 1<<30); err == nil && names.Len() > 0 {
		t.Errorf("there are %q", namesOf(names))
	}
}

// With any limit the lists that follow one another have all names, and none takes much more than the limit.
func TestNameList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringN(1, 60, 255), rapid.ID).Draw(t, "names")
		limit := rapid.IntRange(0, 500).Draw(t, "limit")
		var got []string
		for after, more := "", true; more; {
			l, err := disk.NewNameList(names, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			page := namesOf(l)
			taken := 0
			for _, name := range page {
				taken += len(name) + 5
			}
			if more = l.More(); len(page) > 1 && taken > limit || more && len(page) == 0 {
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

func TestNameThatIsTooLong(t *testing.T) {
	_, err := disk.NewNameList([]string{"a", strings.Repeat("n", 256)}, "", 1000)
	mustBe(t, err, unix.ENAMETOOLONG)
}

// Lists of an open directory follow one another, too.
func TestListIsContinued(t *testing.T) {
	conform(t, func(t *testing.T, at testDir, dir disk.Dir, _ disk.File) {
		for i := range 600 {
			at.put(fmt.Sprintf("%03d", (i*7)%600), "")
		}
		first, err := dir.List("", 100*(3+5))
		must(t, err)
		if n := first.Len(); n < 50 || n > 100 || !first.More() || first.Name(n-1) != fmt.Sprintf("%03d", n-1) {
			t.Errorf("there are %q", namesOf(first))
		}
		last, err := dir.List("597", 100*(3+5))
		must(t, err)
		if got := namesOf(last); !slices.Equal(got, []string{"598", "599", "file"}) || last.More() {
			t.Errorf("there are %q", got)
		}
	})
}

// TestListOfManyNamesIsCompact bounds all that is allocated for the list of a large directory, which includes the peak.
func TestListOfManyNamesIsCompact(t *testing.T) {
	const count, length = 200_000, len("file-000000")
	at := onDisk(t, shared(t))
	at.put("x", "")
	for i := 1; i < count; i++ {
		must(t, os.Link(at.path("x"), at.path(fmt.Sprintf("file-%06d", i))))
	}
	dir, err := disk.OS.OpenDir(at.folder)
	must(t, err)
	defer dir.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	names, err := dir.List("", 1<<30)
	runtime.ReadMemStats(&after)
	must(t, err)
	if names.Len() != count || names.Name(0) != "file-000001" || names.Name(count-1) != "x" {
		t.Errorf("%d names, from %s to %s", names.Len(), names.Name(0), names.Name(names.Len()-1))
	}
	const perName = length + 5
	if allocated := int(after.TotalAlloc - before.TotalAlloc); allocated > count*perName*5/4 {
		t.Errorf("%d bytes for each name, want about %d", allocated/count, perName)
	}
	if size := names.Size(); size < count*perName || size > count*perName*5/4 {
		t.Errorf("the size is %d bytes for each name, want about %d", size/count, perName)
	}
}
