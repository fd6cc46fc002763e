package send

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// atLimit is how many entries may have the largest extended attributes.
const atLimit = role.MaxAttributes / native.MaxMetadata

// A sender announces no more directories than a receiver can hold the extended attributes of.
func TestSenderWaitsForDirectoriesWithAttributes(t *testing.T) {
	l := newLoneSenderOf(t, native.FlagTree|native.FlagXAttr, &job.LocalFile{
		FS: disktest.NewMemory("/", "/src"), Name: "/src", Path: "/src", Directory: true,
	})
	l.announces(wire.EntryDirectory, 0, "", 0)
	for i := range atLimit + 2 {
		e := &entry{
			kind: wire.EntryDirectory, path: fmt.Sprint(i), attributes: roletest.Blob(native.MaxMetadata),
		}
		l.announcer.waiting = append(l.announcer.waiting, newSourceEntry(e, wire.Entry{
			Kind: wire.EntryDirectory, Depth: 1, Name: fmt.Appendf(nil, "d%03d", i),
		}))
	}
	must(t, l.announcer.advance(t.Context()))
	for decided := range uint32(3) {
		if got := l.Sender.t.Session.Undecided() + int(decided); got != 1+atLimit+min(int(decided), 2) {
			t.Errorf("%d entries were announced when %d directories were created", got, decided)
		}
		l.receives(native.AppendResults(nil, []uint32{1 + decided}))
	}
}

// decideAll ends entries.
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

// setAttribute gives a file an extended attribute of that many bytes.
func setAttribute(t *testing.T, memory *disktest.Memory, path string, bytes int) {
	t.Helper()
	dir, err := memory.OpenDir(filepath.Dir(path))
	must(t, err)
	file, err := dir.Open(filepath.Base(path), false)
	must(t, err)
	err = file.SetXattr(disk.Xattr{Name: "user.path", Value: []byte(roletest.Repeated(path, bytes))})
	must(t, errors.Join(err, file.Close(), dir.Close()))
}

// A sender holds no more extended attributes of the entries that it has found than the limit. It goes on when some of
// them have been sent, or their entries are decided.
func TestSourceHoldsFewAttributes(t *testing.T) {
	const files, bytes = 100, 250 << 10
	from := disktest.NewMemory("/", "/src")
	for i := range files {
		path := fmt.Sprintf("/src/f%03d", i)
		from.Put(path, "content")
		setAttribute(t, from, path, bytes)
	}
	conn, _ := comchtest.NewPair(4096, comchtest.Faultless, comchtest.Faultless)
	synctest.Test(t, func(t *testing.T) {
		source, err := openSource(&role.Transfer{Params: &role.Params{
			Config: &role.Config{
				Options: role.Options{Progress: &job.Progress{}},
				File:    &job.LocalFile{FS: from, Name: "/src"}, Conn: conn,
			},
			Plan: native.Plan{Tree: true, XAttr: true, Chunk: 4096},
		}, Stats: &role.Stats{}})
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
			if held := attributeBytes(found); held > role.MaxAttributes {
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
