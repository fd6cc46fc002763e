package receive

import (
	"sync"

	weighted "golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// staging has the files of packs that are staged. Lanes add to it, and one job at a time takes from it.
type staging struct {
	permits *weighted.Weighted // one for each file that may be staged

	mu       sync.Mutex
	files    []stagedFile
	flushing bool // a job commits staged files
}

// stagedFile is a file that gets its final name once its content has been flushed.
type stagedFile struct {
	entry *entry
	file  *disk.Staged
}

// add adds files, and reports whether the caller is to start the job.
func (s *staging) add(files []stagedFile) (start bool) {
	if len(files) == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, files...)
	start = !s.flushing
	s.flushing = true
	return start
}

// take returns what is staged. If that is nothing, and no more remains to be done, the job ends, and the next file that
// is staged starts another one.
func (s *staging) take(more bool) []stagedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	files := s.files
	s.files = nil
	s.flushing = more || len(files) > 0
	return files
}

func (s *staging) discard(files []stagedFile) {
	for _, f := range files {
		f.file.Discard()
		s.permits.Release(1)
	}
}

// isFlushing reports whether a job commits staged files.
func (s *staging) isFlushing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushing
}

// close discards what is left when the transfer has ended.
func (s *staging) close() { s.discard(s.take(false)) }
