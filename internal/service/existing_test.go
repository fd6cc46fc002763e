//go:build cgo

package service

import (
	"errors"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Who may only write learns that something exists, and neither its content nor the names in a directory.
func TestWriteOnlyShareHidesContent(t *testing.T) {
	for _, test := range []struct{ name, source, remote string }{
		{"a file of the same content", "same", "in/file"},
		{"a file of other content", "other", "in/file"},
		{"a directory", "dir", "in/dir"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, (*world).prepareExisting, func(w *world) {
				c := w.alice()
				defer c.Close()
				_, err := c.Push(w.Context(), w.copyOf(test.source, test.remote))
				if !errors.Is(err, negotiate.ErrBothHaveFile) || !strings.Contains(err.Error(), " exists: ") {
					w.Fatalf("got %v", err)
				}
				if strings.Contains(err.Error(), "differ") || strings.Contains(err.Error(), "hidden") {
					w.Errorf("it tells too much: %v", err)
				}
			})
		})
	}
}

// prepareExisting makes a file and a directory with equal names on both sides.
func (w *world) prepareExisting() {
	makeDirectories(w.T, w.remote, "/srv/in/dir")
	w.remote.Put("/srv/in/file", "1234")
	w.remote.Put("/srv/in/dir/hidden", "1234")
	makeDirectories(w.T, w.local, "/home/dir")
	w.local.Put("/home/same", "1234")
	w.local.Put("/home/other", "5678")
}

// A comparison by content would tell whether a guess is right, so what may only be written is sent again.
func TestWriteOnlyShareComparesNoContent(t *testing.T) {
	for share, moved := range map[string]bool{"in": true, "box": false} {
		t.Run(share, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.local.Put("/home/a", "1234")
				w.remote.Put("/srv/"+share+"/a", "1234")
			}, func(w *world) {
				c := w.alice()
				defer c.Close()
				r := w.copyOf("a", share+"/a")
				r.Options.Overwrite, r.Options.Checksum = true, true
				summary, err := c.Push(w.Context(), r)
				must(w.T, err)
				if summary.UpToDate == moved {
					w.Errorf("the summary is %+v", summary)
				}
			})
		})
	}
}

// What a copy has not finished is not sent: its content is not complete, and may be somebody else's.
func TestUnfinishedFilesAreNotSent(t *testing.T) {
	inWorld(t, func(w *world) {
		makeDirectories(w.T, w.remote, "/srv/out/t")
		w.remote.Put("/srv/out/t/a", "a")
		w.remote.Put("/srv/out/t/.b.dma-copy-part", "b")
		w.remote.Put("/srv/out/t/.b.dma-copy-journal", "b")
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		summary, err := c.Pull(w.Context(), w.copyOf("t", "out/t"))
		must(w.T, err)
		mustHave(w.T, w.local, "/home/t/a", "a")
		if summary.Tree.Files != 1 {
			w.Errorf("the summary is %+v", summary.Tree)
		}
	})
}

// With nooverwrite an interrupted copy of a directory is completed, and what is in the directory stays.
func TestUnfinishedDirectoryIsNotOverwritten(t *testing.T) {
	for name, checksum := range map[string]bool{"by size and time": false, "by content": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				makeDirectories(w.T, w.remote, "/srv/keep/t")
				w.remote.Put("/srv/keep/.t.dma-copy-part", "dma-copy tree\n")
				w.remote.Put("/srv/keep/t/a", "o")
				w.remote.Put("/srv/keep/t/l", "o")
				makeDirectories(w.T, w.local, "/home/t")
				w.local.Put("/home/t/a", "n")
				w.local.Put("/home/t/b", "b")
				w.local.Symlink("a", "/home/t/l", 0)
			}, func(w *world) {
				c := w.alice()
				defer c.Close()
				r := w.copyOf("t", "keep/t")
				r.Options.Checksum = checksum
				_, err := c.Push(w.Context(), r)
				mustBe(w.T, err, job.ErrSomeFailed)
				mustHave(w.T, w.remote, "/srv/keep/t/a", "o")
				mustHave(w.T, w.remote, "/srv/keep/t/b", "b")
				mustHave(w.T, w.remote, "/srv/keep/t/l", "o")
			})
		})
	}
}
