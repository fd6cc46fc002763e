//go:build cgo

package service

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Who may only write learns that a file exists, and not its content.
func TestWriteOnlyShareHidesContent(t *testing.T) {
	for _, test := range []struct{ name, source, remote string }{
		{"a file of the same content", "same", "in/file"},
		{"a file of other content", "other", "in/file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, (*world).prepareExisting, func(w *world) {
				c := w.alice()
				defer c.Close()
				_, err := c.Push(w.Context(), w.copyOf(test.source, test.remote))
				if !errors.Is(err, wire.ErrBothHaveFile) || !strings.Contains(err.Error(), " exists: ") {
					w.Fatalf("got %v", err)
				}
				if strings.Contains(err.Error(), "differ") {
					w.Errorf("it tells too much: %v", err)
				}
			})
		})
	}
}

func (w *world) prepareExisting() {
	w.remote.Put("/srv/in/file", "1234")
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

// A directory that a copy has not finished is sent, with a warning to who pulls it.
func TestUnfinishedDirectoryIsSent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.prepareTree("/srv/out/t")
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		var warned []job.Event
		r := w.copyOf("got", "out/t")
		r.Options.Notify = func(e job.Event) {
			if _, is := e.(job.Warned); is {
				warned = append(warned, e)
			}
		}
		_, err := c.Pull(w.Context(), r)
		must(w.T, err)
		mustHave(w.T, w.local, "/home/got/a", "o")
		if len(warned) != 1 || !strings.Contains(warned[0].(job.Warned).Text, "out/t is incomplete: ") {
			w.Errorf("the warnings are %v", warned)
		}
	})
}

// Without overwrite what is missing in a directory is added, and what exists in it stays, also if an interrupted copy
// has left a marker beside it.
func TestDirectoryIsNotOverwritten(t *testing.T) {
	for name, change := range map[string]func(*dmaxfer.Options){
		"by size and time": func(*dmaxfer.Options) {},
		"by content":       func(o *dmaxfer.Options) { o.Checksum = true },
		"ignored":          func(o *dmaxfer.Options) { o.IgnoreExisting = true },
	} {
		for _, share := range []string{"keep", "box"} {
			t.Run(name+" in "+share, func(t *testing.T) {
				inWorld(t, func(w *world) { w.prepareTree("/srv/" + share + "/t") }, func(w *world) {
					c := w.alice()
					defer c.Close()
					r := w.copyOf("t", share+"/t")
					change(&r.Options)
					summary, err := c.Push(w.Context(), r)
					want := job.TreeSummary{Files: 1, Unchanged: 1, Existing: 3, Bytes: 1}
					if r.Options.IgnoreExisting {
						must(w.T, err)
					} else {
						mustBe(w.T, err, job.ErrSomeFailed)
						want = job.TreeSummary{Files: 1, Unchanged: 2, Failed: 2, Bytes: 1}
						want.Failures = summary.Tree.Failures
					}
					if !reflect.DeepEqual(*summary.Tree, want) {
						w.Errorf("the summary is %+v", *summary.Tree)
					}
					for file, text := range map[string]string{"a": "o", "b": "b", "l": "o", "same": "s"} {
						mustHave(w.T, w.remote, "/srv/"+share+"/t/"+file, text)
					}
				})
			})
		}
	}
}

// prepareTree makes a directory with files that the local one has, too, and a marker beside it.
func (w *world) prepareTree(remote string) {
	makeDirectories(w.T, w.remote, remote)
	tree, err := disk.OpenTree(w.remote, remote, disk.TreeOptions{})
	must(w.T, err)
	must(w.T, tree.Close(false))
	makeDirectories(w.T, w.local, "/home/t")
	for name, texts := range map[string][2]string{"a": {"n", "o"}, "b": {"b", ""}, "l": {"", "o"}, "same": {"s", "s"}} {
		if texts[0] != "" {
			w.local.Put("/home/t/"+name, texts[0])
		}
		if texts[1] != "" {
			w.remote.Put(remote+"/"+name, texts[1])
		}
	}
	w.local.Symlink("a", "/home/t/l", 0)
}
