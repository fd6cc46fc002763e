package tree

// Limits are bounds for tests; those that are 0 stay as they are.
type Limits struct{ OpenFolders, Names, LinkedFiles int }

// Restrict changes the limits of a walk that has not started.
func (w *Walk) Restrict(to Limits) {
	if to.OpenFolders > 0 {
		w.root.open.limit = to.OpenFolders
	}
	if to.Names > 0 {
		w.maxNames = to.Names
	}
	if to.LinkedFiles > 0 {
		w.linked.maxFiles = to.LinkedFiles
	}
}

// OpenFolders returns the number of open directories.
func (f *Folder) OpenFolders() int {
	f.open.mu.Lock()
	defer f.open.mu.Unlock()
	return len(f.open.list)
}
