package native

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// setLargeAttribute gives a file or directory an extended attribute of that many bytes that depends on its path.
func setLargeAttribute(t *testing.T, memory *disktest.Memory, path string, bytes int) {
	t.Helper()
	change(t, memory, path, func(f attributed) error {
		return f.SetXattr(disk.Xattr{Name: "user.path", Value: []byte(repeated(path, bytes))})
	})
}

// mustHaveLargeAttribute fails the test unless the target has the attribute of that path.
func (m *meeting) mustHaveLargeAttribute(path string, bytes int) {
	m.t.Helper()
	found, err := xattrsOf(m.to, "/dst/t"+strings.TrimPrefix(path, "/src"))
	must(m.t, err)
	if len(found) != 1 || string(found[0].Value) != repeated(path, bytes) {
		m.t.Errorf("%s has %.100q", path, found)
	}
}

// xattrsOf returns the extended attributes of a file or directory.
func xattrsOf(memory *disktest.Memory, path string) ([]disk.Xattr, error) {
	if dir, err := memory.OpenDir(path); err == nil {
		defer dir.Close()
		return dir.Xattrs()
	}
	file, err := memory.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.Xattrs()
}

// Trees with much more extended attributes than either side holds arrive whole: in many files of either kind, in
// directories beside each other, and in directories in each other.
func TestManyLargeAttributesArrive(t *testing.T) {
	const bytes = 64 << 10
	large := map[string]int{}
	var directories, files []string
	path := "/src"
	for i := range 100 {
		path += "/d"
		beside := fmt.Sprintf("/src/e%03d", i)
		directories = append(directories, path, beside)
		large[path], large[beside] = 3*bytes, 3*bytes
	}
	for i := range 300 {
		file := fmt.Sprintf("/src/f%03d", i)
		files = append(files, file)
		large[file] = bytes
	}
	for _, dpuSends := range []bool{false, true} {
		from := disktest.NewMemory(append([]string{"/", "/src"}, directories...)...)
		for i, path := range files {
			from.Put(path, repeated(path, []int{10, 3 * 4096}[i%2]))
		}
		for path, bytes := range large {
			setLargeAttribute(t, from, path, bytes)
		}
		m := newMeeting(t, from, newTarget())
		m.dpuSends = dpuSends
		m.sender.config.Xattrs, m.receiver.config.Xattrs = true, true
		m.mustSucceed()
		m.mustHaveSameContent()
		for path, bytes := range large {
			m.mustHaveLargeAttribute(path, bytes)
		}
	}
}

// A sender announces no more directories than a receiver can hold the extended attributes of.
func TestSenderWaitsForDirectoriesWithAttributes(t *testing.T) {
	l := newLoneSenderOf(t, negotiate.FlagTree|negotiate.FlagXAttr, &job.LocalFile{
		FS: disktest.NewMemory("/", "/src"), Name: "/src", Path: "/src", Directory: true,
	})
	l.announces(negotiate.EntryDirectory, 0, "", 0)
	for i := range atLimit + 2 {
		o := &outgoing{
			kind: negotiate.EntryDirectory, path: fmt.Sprint(i), attributes: blobOf(negotiate.MaxMetadata),
		}
		l.announcer.waiting = append(l.announcer.waiting, newSourceEntry(o, negotiate.Entry{
			Kind: negotiate.EntryDirectory, Depth: 1, Name: fmt.Appendf(nil, "d%03d", i),
		}))
	}
	must(t, l.announcer.advance(t.Context()))
	for decided := range uint32(3) {
		if got := l.entries.announced; got != 1+atLimit+min(decided, 2) {
			t.Errorf("%d entries were announced when %d directories were created", got, decided)
		}
		l.receives(negotiate.AppendResults(nil, []uint32{1 + decided}))
	}
}

func decideAll(entries []sourceEntry) {
	for _, e := range entries {
		e.decide()
	}
}

// attributeBytes returns how many bytes of extended attributes entries hold.
func attributeBytes(entries []sourceEntry) (bytes int) {
	for _, e := range entries {
		bytes += len(e.attributes)
	}
	return bytes
}

// A sender holds no more extended attributes of the entries that it has found than the limit. It goes on when some of
// them have been sent, or their entries are decided.
func TestSourceHoldsFewAttributes(t *testing.T) {
	const files, bytes = 100, 250 << 10
	from := disktest.NewMemory("/", "/src")
	for i := range files {
		path := fmt.Sprintf("/src/f%03d", i)
		from.Put(path, "content")
		setLargeAttribute(t, from, path, bytes)
	}
	conn, _ := comchtest.NewPair(4096, comchtest.Faultless, comchtest.Faultless)
	synctest.Test(t, func(t *testing.T) {
		source, err := openSource(t.Context(), &terms{
			config: &Config{
				File: &job.LocalFile{FS: from, Name: "/src"}, Progress: &job.Progress{}, Conn: conn,
			},
			plan: negotiate.Plan{Tree: true, XAttr: true, Chunk: 4096},
		}, &account{})
		must(t, err)
		var found []sourceEntry
		waited := 0
		for err == nil {
			type result struct {
				entries []sourceEntry
				err     error
			}
			results := make(chan result, 1)
			go func() {
				entries, err := source.next(t.Context())
				results <- result{entries, err}
			}()
			synctest.Wait()
			if len(results) == 0 {
				waited++
				decideAll(found)
			}
			next := <-results
			found, err = append(found, next.entries...), next.err
			if held := attributeBytes(found); held > maxAttributes {
				t.Fatalf("%d entries were found, %d bytes are held", len(found), held)
			}
		}
		mustBe(t, err, io.EOF)
		if len(found) != 1+files || waited != 1 {
			t.Errorf("%d entries were found, the source has waited %d times", len(found), waited)
		}
		decideAll(found)
		source.close()
	})
	if got := from.Handles(); got != 0 {
		t.Errorf("%d files and directories are open", got)
	}
}
