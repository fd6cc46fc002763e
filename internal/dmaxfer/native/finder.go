package native

import (
	"context"
	"io"
	"sync"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// finder finds the entries of a sender in one job, and passes them to the owner of the transfer.
type finder struct {
	*common
	source entrySource   // opened by the job, closed after all jobs have ended
	more   chan struct{} // delivers a token when the source may go on

	mu     sync.Mutex
	unseen []sourceEntry // that the source has found, and the owner has not seen yet
}

// entrySource supplies the entries of a transfer, in their order.
type entrySource interface {
	// next returns some entries, or io.EOF after the last. It may take long, and is called by one job.
	next(ctx context.Context) ([]sourceEntry, error)

	// close releases what the source holds.
	close()
}

// sourceEntry is an entry of the transfer, or one that cannot be sent.
type sourceEntry struct {
	*outgoing
	described negotiate.Entry
	err       error // not nil: why it cannot be sent
}

// find opens the source and passes on its entries. The owner calls found when there are some. It waits while enough of
// them wait to be announced.
func (f *finder) find(ctx context.Context, found func() error) error {
	source, err := openSource(ctx, f.terms, f.account)
	if err != nil {
		return err
	}
	f.source = source
	for {
		entries, err := source.next(ctx)
		if len(entries) > 0 {
			f.mu.Lock()
			f.unseen = append(f.unseen, entries...)
			f.mu.Unlock()
			f.link.post(found)
			select {
			case <-f.more:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take returns the entries that the owner has not seen yet.
func (f *finder) take() []sourceEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	entries := f.unseen
	f.unseen = nil
	return entries
}

// resume has the source go on, now or when it has passed on some entries.
func (f *finder) resume() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// close releases what the source holds.
func (f *finder) close() {
	if f.source != nil {
		f.source.close()
	}
}
