package dmaxfer

import (
	"path/filepath"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// What a receiver had of the file and turns out to be damaged is copied in this run, and both sides count it so.
func TestDamagedPartCountsAsCopied(t *testing.T) {
	for name, sc := range sweepScenarios() {
		if !sc.Resumes {
			continue
		}
		t.Run(name, func(t *testing.T) {
			c := &checker{scenario: sc, t: t}
			disks := c.stage()
			target := disks[sc.Sender.Other()]
			found, err := disk.FindPartials(target, "/files")
			must(t, err)
			part := filepath.Join("/files", found[0].Name)
			text, _ := target.Get(part)
			target.Put(part, string([]byte{text[0] ^ 1})+text[1:])
			e := c.run(disks, fault{}, injection{})
			c.mustSucceed("over a damaged part", e)
			if e.resent != sc.Chunk {
				t.Errorf("%d bytes were sent again, not one chunk", e.resent)
			}
			c.toldOfResume(e)
		})
	}
}
