package native

import (
	"bytes"
	"cmp"
	"context"
	"sync"

	weighted "golang.org/x/sync/semaphore"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// packStore stores the files of a receiver that come in packs. With a durability they are staged, and a job flushes
// many of them at once before they get their final names:
//
//	pack ─┬─► put
//	      └─► staged ─► flushed ─► named ─► flushed
//
// Lanes call storePack, and one job at a time commitStaged. While no more files may be staged, others are flushed and
// named one by one.
type packStore struct {
	*outcomes
	gate      *commitGate
	working   context.Context    // of the transfer; set before the first entry is announced
	flushTree func() error       // makes durable what is staged and named
	stageable *weighted.Weighted // has a permit for each file that may be staged

	mu       sync.Mutex
	staged   []stagedFile
	flushing bool // a job commits staged files
}

func newPackStore(o *outcomes, gate *commitGate, limit int64, flushTree func() error) *packStore {
	return &packStore{outcomes: o, gate: gate, flushTree: flushTree, stageable: weighted.NewWeighted(limit)}
}

// stagedFile is a file of a pack that gets its final name once its content has been flushed.
type stagedFile struct {
	entry *arriving
	file  *disk.Staged
}

// storePack implements pump.ReceiverConfig.StorePack: it writes whole files. What ends the transfer does so after what
// was committed before it is reported.
func (s *packStore) storePack(ctx context.Context, pack *negotiate.Pack, content []byte) (after func(), err error) {
	if !s.gate.begin() {
		return nil, errHalted
	}
	stored, staged, failed := s.storeFiles(ctx, pack, content)
	if len(stored) > 0 && s.terms.plan.Durability == negotiate.DurabilityFull {
		if err := s.flushTree(); err != nil { // of their names
			stored, failed = nil, cmp.Or(failed, err)
		}
	}
	return func() {
		s.commit(stored...)
		if failed == nil {
			s.stage(staged)
		} else {
			s.discard(staged)
			s.link.post(failWith(failed))
		}
		s.gate.end()
	}, nil
}

// storeFiles writes the files of a pack, until one of them ends the transfer. It returns those that have their final
// names, and those that are only staged.
func (s *packStore) storeFiles(
	ctx context.Context, pack *negotiate.Pack, content []byte,
) (stored []*arriving, staged []stagedFile, failed error) {
	for i := range pack.Files {
		if ctx.Err() != nil {
			break // the results of those before are still sent
		}
		e := s.open.entry(pack.Files[i].Entry)
		switch {
		case e == nil:
			continue // it has been decided
		case e.in != nil:
			return stored, staged, misuse(negotiate.TypePack, e.number)
		}
		s.terms.config.Progress.Touch()
		file, err := s.storeWhole(e, &pack.Files[i], pump.ContentOf(&pack.Files[i], content))
		if err == nil {
			s.debug(e).Msg("entry stored")
		}
		switch {
		case err != nil:
			if err := s.fail(e, err); err != nil {
				return stored, staged, err
			}
		case file != nil:
			staged = append(staged, stagedFile{entry: e, file: file})
		default:
			stored = append(stored, e)
		}
	}
	return stored, staged, nil
}

// storeWhole writes a file of a pack. With a durability it is only staged if it may be: so many are flushed at once.
func (s *packStore) storeWhole(e *arriving, f *negotiate.PackedFile, content []byte) (*disk.Staged, error) {
	size := s.terms.plan.Digest.Size()
	sum := digest.SumOf(s.terms.plan.Digest, content, f.Check)
	if !bytes.Equal(sum.Bytes(), f.Digest[:size]) {
		next := "copy again; if it recurs, check the memory" + s.terms.bothSides("of")
		return nil, job.NewError(job.ErrDigest, nil, next, "digest mismatch of %s: the target has %s", e.path, sum)
	}
	s.account.bytesMoved(int64(len(content)))
	e.directory.of.RemoveLeftovers(e.name) // of an interrupted transfer for which the file was large
	if s.terms.plan.Durability == negotiate.DurabilityNone || !s.stageable.TryAcquire(1) {
		return nil, e.directory.of.Put(e.name, content, e.meta)
	}
	file, err := e.directory.of.Stage(e.name, content, e.meta)
	if err != nil {
		s.stageable.Release(1)
	}
	return file, err
}

// stage has files flushed and renamed in a job, together with those that are staged while it flushes others.
func (s *packStore) stage(files []stagedFile) {
	if len(files) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.staged = append(s.staged, files...)
	if s.flushing {
		return
	}
	s.flushing = true
	s.link.run(func() func() error {
		if err := s.commitStaged(); err != nil {
			return failWith(err)
		}
		s.changed() // the tree may be closed from now on
		return nothing
	})
}

// commitStaged renames staged files whose content has been flushed, until there are none. With full durability they
// are reported when the names have been flushed as well, together with the content of the next ones.
func (s *packStore) commitStaged() error {
	var renamed []*arriving // whose names may not be durable yet
	committing := false
	for {
		batch := s.takeStaged(committing)
		if len(batch) == 0 && !committing {
			return nil
		}
		err := s.flushTree()
		if committing {
			s.reportRenamed(renamed, err)
			committing = false
		}
		if err == nil && len(batch) > 0 && !s.gate.begin() {
			err = errHalted
		}
		if err != nil {
			s.discard(batch)
			return err
		}
		if len(batch) == 0 {
			continue
		}
		full := s.terms.plan.Durability == negotiate.DurabilityFull
		renamed, err = s.renameStaged(batch)
		if committing = err == nil && full; committing {
			continue
		}
		flushed := error(nil)
		if full {
			flushed = s.flushTree()
		}
		s.reportRenamed(renamed, flushed)
		if err != nil {
			return err
		}
	}
}

// reportRenamed reports files that have their final names, unless flushing them has failed, and ends their commit.
func (s *packStore) reportRenamed(renamed []*arriving, failed error) {
	if failed == nil {
		s.commit(renamed...)
		s.replies.hurry()
	}
	s.gate.end()
}

// takeStaged returns what is staged. If that is nothing, and no more remains to be done, the next file that is staged
// starts another job.
func (s *packStore) takeStaged(more bool) []stagedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := s.staged
	s.staged = nil
	s.flushing = more || len(batch) > 0
	return batch
}

// renameStaged gives files their final names, until one of them ends the transfer. It returns the entries of those that
// have them.
func (s *packStore) renameStaged(batch []stagedFile) (renamed []*arriving, err error) {
	for i, f := range batch {
		if s.working.Err() != nil {
			s.discard(batch[i:])
			return renamed, context.Cause(s.working)
		}
		err := f.file.Commit()
		s.stageable.Release(1)
		if err == nil {
			renamed = append(renamed, f.entry)
		} else if err := s.fail(f.entry, err); err != nil {
			s.discard(batch[i+1:])
			return renamed, err
		}
		s.terms.config.Progress.Touch()
	}
	return renamed, nil
}

func (s *packStore) discard(batch []stagedFile) {
	for _, f := range batch {
		f.file.Discard()
		s.stageable.Release(1)
	}
}

// isFlushing reports whether a job commits staged files.
func (s *packStore) isFlushing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushing
}

// settle discards what is left when the transfer has ended.
func (s *packStore) settle() {
	s.mu.Lock()
	staged := s.staged
	s.mu.Unlock()
	s.discard(staged)
}
