package pump

import (
	"sync"
	"sync/atomic"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

// Target is the file that a receiver writes.
type Target interface {
	// WriteAt writes all of chunk. Several lanes may call it concurrently for different ranges.
	WriteAt(chunk []byte, offset int64) error

	// ReadAt fills chunk with what the target has at offset.
	ReadAt(chunk []byte, offset int64) error

	// Punch makes a range of zeros, as a hole where the file system supports it.
	Punch(offset, length int64) error
}

// Incoming is a file that a receiver's lanes write chunk by chunk. Several lanes may use it concurrently.
type Incoming struct {
	Target       Target
	Size         int64 // bytes that a chunk of it may reach; more is a violation of the protocol
	SerialWrites bool  // the target allows one writer at a time, for which others would spin

	// Moved is called, by one lane at a time, for each chunk that the target has, and for each step of a hole, with
	// the length of the prefix without a gap. A chunk is acknowledged before. An error ends the transfer.
	Moved func(chunk Chunk, prefix int64) error

	// Failed is called by a lane for which the target has failed. If it returns nil, the rest of the file is ignored;
	// otherwise the error ends the transfer. It may be nil.
	Failed func(err error) error

	failed  atomic.Bool
	waiting atomic.Pointer[receiverLane] // has chunks of it that wait for earlier ones

	using struct {
		mu    sync.Mutex
		lanes int    // that use the target
		then  func() // to be called when none does any more; nil: nothing
	}

	mu     sync.Mutex
	ledger *digest.Ledger
}

// NewIncoming returns the file of a transfer by that digest with so many slots. The caller sets the other fields.
func NewIncoming(target Target, a digest.Algorithm, slots int) *Incoming {
	return &Incoming{Target: target, ledger: digest.NewLedger(a, slots)}
}

// Prefix returns the number of bytes without a gap from the beginning of the file.
func (in *Incoming) Prefix() int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ledger.Prefix()
}

// Sum returns the digest of the prefix.
func (in *Incoming) Sum() digest.Sum {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ledger.Sum()
}

// Ignore has all further chunks acknowledged and not stored, as well as those that wait for earlier ones. then is
// called when no lane uses the target any more, which may be closed from then on: before Ignore returns, or by the last
// lane.
func (in *Incoming) Ignore(then func()) {
	in.fails()
	in.using.mu.Lock()
	in.using.then = then
	then = in.due()
	in.using.mu.Unlock()
	then()
}

// fails has no more chunks stored, and wakes the lane that has chunks which wait for earlier ones.
func (in *Incoming) fails() {
	in.using.mu.Lock()
	in.failed.Store(true)
	in.using.mu.Unlock()
	if l := in.waiting.Load(); l != nil {
		select {
		case l.ignored <- struct{}{}:
		default:
		}
	}
}

// acquire is called by a lane before it uses the target, and reports whether it may. It then calls release.
func (in *Incoming) acquire() bool {
	in.using.mu.Lock()
	defer in.using.mu.Unlock()
	if in.failed.Load() {
		return false
	}
	in.using.lanes++
	return true
}

// release ends the use that began with acquire.
func (in *Incoming) release() {
	in.using.mu.Lock()
	in.using.lanes--
	then := in.due()
	in.using.mu.Unlock()
	then()
}

// due returns what is to be done now, which happens once: no lane acquires the target after Ignore. The caller has
// locked using.mu.
func (in *Incoming) due() (then func()) {
	if in.using.lanes > 0 || in.using.then == nil {
		return func() {}
	}
	return in.using.then
}

// fail returns the error that ends the transfer because of err, or nil.
func (in *Incoming) fail(err error) error {
	if err == nil || in.Failed == nil {
		return err
	}
	in.fails()
	return in.Failed(err)
}
