package tree

import "github.com/dma-copy/dma-copy/internal/dmaxfer/disk"

// Limits are bounds for tests; those that are 0 stay as they are.
type Limits struct{ OpenFolders, Names, LinkedFiles int }

// Restrict changes the limits of a walk that has not started.
func (w *Walk) Restrict(to Limits) {
	if to.OpenFolders > 0 {
		dir, _ := w.root.Use() // it is open
		w.root = disk.NewFolder(dir, w.root.Identity(), to.OpenFolders)
	}
	if to.Names > 0 {
		w.maxNames = to.Names
	}
	if to.LinkedFiles > 0 {
		w.linked.maxFiles = to.LinkedFiles
	}
}
