package dmaxfer

import (
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Many entries that take longer than the idle timeout together are no standstill.
func TestSlowTrees(t *testing.T) {
	for name, slow := range map[string]struct {
		sends bool
		op    string
	}{
		"looking":  {true, "stat"},
		"opening":  {true, "open"},
		"reading":  {true, "read"},
		"creating": {false, "create"},
		"making":   {false, "mkdir"},
		"writing":  {false, "write"},
		"naming":   {false, "rename"},
		"flushing": {false, "syncfs"},
	} {
		t.Run(name, func(t *testing.T) {
			bothSides(t, func(t *testing.T, sender wire.Side) {
				at := sender
				if !slow.sends {
					at = sender.Other()
				}
				sc := treeSweepScenarios()[fmt.Sprint("new tree of the ", sender)]
				sc.Idle = 200 * time.Millisecond
				for i := range 100 {
					sc.Tree[fmt.Sprint("b/", i)] = treeEntry{text: "small"}
					sc.Tree[fmt.Sprint("b/e/", i)] = treeEntry{mode: fs.ModeDir}
				}
				c := newTreeChecker(t, sc)
				var begun, was atomic.Bool
				e := c.run(sc.newDisks(), fault{}, injection{
					message: func(_ wire.Side, _ int, message []byte) dmaxfertest.Delivery {
						if isMessage(message, wire.TypeTransfer) {
							begun.Store(true)
						}
						return dmaxfertest.Delivery{Message: message}
					},
					file: func(side wire.Side, _ int, op, _ string) *disktest.Fault {
						if side != at || op != slow.op || !begun.Load() {
							return nil
						}
						was.Store(true)
						over := make(chan struct{})
						time.AfterFunc(25*time.Millisecond, func() { close(over) })
						return &disktest.Fault{Hang: over}
					},
				})
				c.mustSucceed("although it was slow", e)
				if !was.Load() {
					t.Error("nothing was slow")
				}
			})
		})
	}
}
