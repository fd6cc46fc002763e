//go:build cgo

package service

import (
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

func TestPushAndPull(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		content := strings.Repeat("0123456789", 5000)
		w.local.Put("/home/a", content)
		c := w.alice()
		defer c.Close()
		for range 2 { // the second one finds it up to date
			summary, err := c.Push(w.Context(), w.copyOf("a", "box/a"))
			must(w.T, err)
			if !summary.Sent || summary.Size != int64(len(content)) {
				w.Errorf("the summary is %+v", summary)
			}
		}
		mustHave(w.T, w.remote, "/srv/box/a", content)
		_, err := c.Pull(w.Context(), w.copyOf("b", "box/a"))
		must(w.T, err)
		mustHave(w.T, w.local, "/home/b", content)
		if got := c.Peer(); got.Name != "dpu7" || !got.Authenticates || got.Key != w.config.Key.Public() {
			w.Errorf("the peer is %+v", got)
		}
	})
}

func TestPushKeepsAnExistingTarget(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.local.Put("/home/a", "new")
		w.remote.Put("/srv/box/a", "old")
		c := w.alice()
		defer c.Close()
		_, err := c.Push(w.Context(), w.copyOf("a", "box/a"))
		if err == nil {
			w.Fatal("it was replaced")
		}
		mustHave(w.T, w.remote, "/srv/box/a", "old")
		again := w.copyOf("a", "box/a")
		again.Options.Overwrite = true
		_, err = c.Push(w.Context(), again) // over the same connection
		must(w.T, err)
		mustHave(w.T, w.remote, "/srv/box/a", "new")
	})
}

func TestPullOfNothing(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.alice()
		defer c.Close()
		_, err := c.Pull(w.Context(), w.copyOf("a", "box/none"))
		mustRefuse(w.T, err, 4, "none does not exist in share box")
		_, err = c.Push(w.Context(), w.copyOf("none", "box/none"))
		mustBe(w.T, err, job.ErrSource)
	})
}
