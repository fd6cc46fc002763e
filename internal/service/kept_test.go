//go:build cgo

package service

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/share"
)

const keptList = protocol.ListKept | protocol.ListRecursive

// mirrored is a copy of which both sides keep the directory, between /home/d, which has a and e/b, and box/d, which has
// c as well.
type mirrored struct {
	*world
	client *Client
	mirror *tree.Mirror
}

func withMirrored(t *testing.T, push bool, test func(*mirrored)) {
	inWorld(t, func(w *world) {
		from, to, source, target := w.local, w.remote, "/home/d", "/srv/box/d"
		if !push {
			from, to, source, target = w.remote, w.local, "/srv/box/d", "/home/d"
		}
		makeDirectories(t, from, source, source+"/e")
		makeDirectories(t, to, target)
		from.Put(source+"/a", "1")
		from.Put(source+"/e/b", "12")
		to.Put(target+"/c", "123")
	}, func(w *world) {
		m := &mirrored{w, w.alice(), &tree.Mirror{Entries: tree.NewRecord(1 << 20)}}
		r := w.copyOf("d", "box/d")
		r.Options.Overwrite, r.Options.Mirror = true, m.mirror
		copyIt := m.client.Pull
		if push {
			copyIt = m.client.Push
		}
		_, err := copyIt(w.Context(), r)
		must(w.T, err)
		test(m)
		must(w.T, m.mirror.Close())
		must(w.T, m.client.Close())
	})
}

// list lists what the daemon has kept.
func (m *mirrored) list(flags protocol.ListFlags) (paths []string, err error) {
	_, err = m.client.List(m.Context(), protocol.Place{Share: "box"}, flags, func(e share.Entry) error {
		paths = append(paths, e.Path)
		return nil
	})
	return paths, err
}

func (m *mirrored) remove(path string) (removed protocol.Removal, err error) {
	err = m.client.Remove(m.Context(), protocol.RemoveRequest{
		Place: protocol.Place{Share: "box"}, Kept: true, Paths: []string{path},
	}, func(_ string, r protocol.Removal) error {
		removed = r
		return nil
	})
	return removed, err
}

// move moves a directory, and puts another one with one file in its place.
func move(t *testing.T, on *disktest.Memory, path string) {
	t.Helper()
	parent, err := on.OpenDir(path + "/..")
	must(t, err)
	defer parent.Close()
	must(t, parent.RenameIfAbsent("d", "moved"))
	must(t, parent.MakeDir("d", 0o755))
	on.Put(path+"/precious", "1")
}

// Deletions are made in the directory that the copy has filled, as long as its path leads to it.
func TestRemoveFromKeptDirectory(t *testing.T) {
	withMirrored(t, true, func(m *mirrored) {
		var announced []string
		for e, err := range m.mirror.Entries.List() {
			must(m.T, err)
			announced = append(announced, e.Path)
		}
		if want := []string{"a", "e", "e/b"}; !slices.Equal(announced, want) {
			m.Errorf("%q were announced, want %q", announced, want)
		}
		got, err := m.list(keptList)
		must(m.T, err)
		if want := []string{"", "a", "c", "e", "e/b"}; !slices.Equal(got, want) {
			m.Errorf("%q are in the target, want %q", got, want)
		}
		removed, err := m.remove("c")
		must(m.T, err)
		mustLack(m.T, m.remote, "/srv/box/d/c")
		move(m.T, m.remote, "/srv/box/d")
		_, err = m.list(keptList)
		mustRefuse(m.T, err, wire.AbortSourceChanged, "d was moved or replaced during the copy")
		_, err = m.remove("precious")
		mustRefuse(m.T, err, wire.AbortSourceChanged, "nothing is deleted")
		mustHave(m.T, m.remote, "/srv/box/d/precious", "1")
		if removed.Code != 0 {
			m.Errorf("got %+v", removed)
		}
	})
}

func TestSourceOfAPullIsReplaced(t *testing.T) {
	withMirrored(t, false, func(m *mirrored) {
		_, err := m.list(protocol.ListKept | protocol.ListItself)
		must(m.T, err)
		must(m.T, m.mirror.Check(m.local, "/home/d"))
		move(m.T, m.remote, "/srv/box/d")
		_, err = m.list(protocol.ListKept | protocol.ListItself)
		mustRefuse(m.T, err, wire.AbortSourceChanged, "d was moved or replaced during the copy")
		move(m.T, m.local, "/home/d")
		if err := m.mirror.Check(m.local, "/home/d"); !errors.Is(err, job.ErrSourceChanged) {
			m.Errorf("got %v", err)
		}
	})
}

// The target stays locked until it is forgotten: no other copy fills it while entries are being deleted.
func TestKeptDirectoryIsLocked(t *testing.T) {
	for name, forget := range map[string]func(*mirrored){
		"next request": func(m *mirrored) {
			_, err := m.client.RoundTrip(m.Context(), nil)
			must(m.T, err)
		},
		"disconnect": func(m *mirrored) { must(m.T, m.client.Close()); m.happened("disconnected") },
	} {
		t.Run(name, func(t *testing.T) {
			withMirrored(t, true, func(m *mirrored) {
				other := m.alice()
				defer other.Close()
				r := m.copyOf("d", "box/d")
				r.Options.Overwrite = true
				_, err := other.Push(context.Background(), r)
				aborted, is := errors.AsType[*native.PeerAborted](err)
				if !is || aborted.Code != wire.AbortTarget {
					m.Errorf("got %v while the directory is kept", err)
				}
				forget(m)
				_, err = other.Push(context.Background(), r)
				must(m.T, err)
			})
		})
	}
}

// What is not kept is refused.
func TestNothingIsKept(t *testing.T) {
	inWorld(t, func(w *world) { w.remote.Put("/srv/box/a", "1") }, func(w *world) {
		m := &mirrored{world: w, client: w.alice()}
		defer m.client.Close()
		_, err := m.list(keptList)
		mustRefuse(w.T, err, wire.AbortRefused, "the last copy has kept no directory")
		_, err = m.remove("a")
		mustRefuse(w.T, err, wire.AbortRefused, "the last copy has kept no directory")
		mustHave(w.T, w.remote, "/srv/box/a", "1")
	})
}
