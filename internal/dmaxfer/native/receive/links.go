package receive

import (
	"sync"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// links knows what has become of the files that hard links may be other names of. Without hard links it knows nothing.
// Any goroutine of the transfer uses it.
type links struct {
	mu     sync.Mutex
	files  map[string]*entry // planned and not decided, by path; nil: no hard links are announced
	failed tree.PathSet      // what hard links cannot be made to
	needed tree.PathSet      // in a dry run: what hard links would be made to again
}

// fate is what becomes of a file for hard links to it.
type fate int

const (
	made fate = iota // or there already
	wouldBeMade
	notMade
)

func newLinks(announced bool) *links {
	if !announced {
		return &links{}
	}
	return &links{files: make(map[string]*entry), failed: tree.NewPathSet(), needed: tree.NewPathSet()}
}

// plan notes a file that hard links may wait for.
func (k *links) plan(e *entry) {
	if k.files == nil || e.kind != wire.EntryFile {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !e.isDecided() {
		k.files[e.path] = e
	}
}

// claim makes the caller the one that decides an entry. The caller then adds the reply for the peer, which may announce
// another entry in its place as soon as that has been sent, and calls results.decided.
func (k *links) claim(e *entry, as fate) (first bool) {
	if k.files == nil || e.kind != wire.EntryFile {
		return e.decide()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !e.decide() {
		return false
	}
	delete(k.files, e.path)
	switch as {
	case wouldBeMade:
		k.needed.Add(e.path)
	case notMade:
		k.failed.Add(e.path)
	}
	return true
}

// awaitFile has a hard link wait for its file if that is undecided, and otherwise reports whether the file has failed.
func (k *links) awaitFile(l *entry) (waits, failed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.files[l.link]; e != nil {
		e.waiting = append(e.waiting, l)
		return true, false
	}
	return false, k.failed.Has(l.link)
}

// hasFailed reports whether hard links cannot be made to a file.
func (k *links) hasFailed(path string) bool { return k.has(k.failed, path) }

// wouldMake reports whether a dry run has found that the file at a path is needed.
func (k *links) wouldMake(path string) bool { return k.has(k.needed, path) }

func (k *links) has(set tree.PathSet, path string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return set.Has(path)
}
