package digest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Reasons why a Ledger refuses a chunk, found by errors.Is. A refused chunk changes nothing.
var (
	ErrRange   = errors.New("not a valid range of a file")       // negative, empty, or beyond 2^63 bytes
	ErrOverlap = errors.New("overlaps a chunk already recorded") // entirely or partly
	ErrOrder   = errors.New("not the next chunk")                // the algorithm needs the chunks in order
	ErrParked  = errors.New("too many chunks out of order")      // no capacity for one more gap
	ErrCheck   = errors.New("not a checksum of this digest")     // not a CRC-32C, or the algorithm needs the bytes
)

// IsRefused reports whether an error says that a Ledger has refused a chunk.
func IsRefused(err error) bool {
	return slices.ContainsFunc([]error{ErrRange, ErrOverlap, ErrOrder, ErrParked, ErrCheck}, func(why error) bool {
		return errors.Is(err, why)
	})
}

// Ledger records which ranges of a file one side of a transfer has processed, and computes the digest of the
// contiguous prefix. It is not safe for concurrent use. Only NewLedger allocates memory.
type Ledger struct {
	algorithm Algorithm
	prefix    int64   // bytes from the start of the file without a gap
	hash      *hasher // of the prefix, if the algorithm is Ordered
	crc       uint32  // of the prefix, if the algorithm is CRC32C
	pending   []run   // runs beyond a gap, sorted by offset
}

// run is a range of the file, one or more chunks, that is not yet contiguous with the start of the file.
type run struct {
	offset, length int64
	crc            uint32
}

func (p run) end() int64 { return p.offset + p.length }

// zeros is the content of holes; read-only.
var zeros [zerosSize]byte

// NewLedger returns an empty ledger for a Known algorithm. It holds at most parked runs that lie beyond a gap; for an
// Ordered algorithm it holds none.
func NewLedger(a Algorithm, parked int) *Ledger {
	if !a.Known() {
		panic(fmt.Sprintf("internal error: no ledger for %s", a))
	}
	l := &Ledger{algorithm: a}
	if a.Ordered() {
		l.hash = newHasher(a)
		return l
	}
	l.pending = make([]run, 0, max(parked, 0))
	return l
}

// Algorithm returns the algorithm that the ledger was created for.
func (l *Ledger) Algorithm() Algorithm { return l.algorithm }

// Prefix returns the number of bytes from the start of the file that are covered without a gap.
func (l *Ledger) Prefix() int64 { return l.prefix }

// Add covers a chunk by its Check, in any order, for algorithms that are not Ordered. It fails with ErrRange,
// ErrOverlap, ErrParked or ErrCheck.
func (l *Ledger) Add(offset, length int64, check uint64) error {
	if l.algorithm.Ordered() || check > math.MaxUint32 || l.algorithm == None && check != 0 {
		return refuse(offset, length, ErrCheck)
	}
	return l.addRun(run{offset: offset, length: length, crc: uint32(check)})
}

// AddHole covers a chunk of zeros. For an Ordered algorithm it must be the next chunk (else ErrOrder) and takes as
// long as hashing the zeros, so callers should split long holes. Otherwise it takes constant time.
func (l *Ledger) AddHole(offset, length int64) error {
	switch {
	case l.algorithm.Ordered():
		return l.writeZeros(offset, length)
	case l.algorithm == None || length <= 0:
		return l.addRun(run{offset: offset, length: length})
	default:
		return l.addRun(run{offset: offset, length: length, crc: crcOfZeros(length)})
	}
}

// crcOfZeros returns the CRC of a run of zeros.
func crcOfZeros(length int64) uint32 { return ^multiply(operatorOf(length), ^uint32(0)) }

// Write covers a chunk by its bytes. For an Ordered algorithm it must be the next chunk, else ErrOrder; otherwise
// Write is Add with the chunk's Check. b is not retained.
func (l *Ledger) Write(offset int64, b []byte) error {
	if !l.algorithm.Ordered() {
		return l.Add(offset, int64(len(b)), Check(l.algorithm, b))
	}
	if err := l.refuseUnlessNext(offset, int64(len(b))); err != nil {
		return err
	}
	l.hashBytes(b)
	return nil
}

// Sum returns the digest of the prefix. More chunks may be added afterwards.
func (l *Ledger) Sum() Sum {
	if l.algorithm.Ordered() {
		return l.hash.digest()
	}
	sum := Sum{algorithm: l.algorithm}
	if l.algorithm == CRC32C {
		binary.BigEndian.PutUint32(sum.bytes[:], l.crc)
	}
	return sum
}

func (l *Ledger) writeZeros(offset, length int64) error {
	if err := l.refuseUnlessNext(offset, length); err != nil {
		return err
	}
	for length > 0 {
		n := min(length, int64(len(zeros)))
		l.hashBytes(zeros[:n])
		length -= n
	}
	return nil
}

func (l *Ledger) hashBytes(b []byte) {
	_, _ = l.hash.Write(b) // hash.Hash documents that Write never fails
	l.prefix += int64(len(b))
}

func (l *Ledger) refuseUnlessNext(offset, length int64) error {
	switch {
	case !isRange(offset, length):
		return refuse(offset, length, ErrRange)
	case offset < l.prefix:
		return refuse(offset, length, ErrOverlap)
	case offset > l.prefix:
		return refuse(offset, length, ErrOrder)
	}
	return nil
}

// addRun extends the prefix by p and by the pending runs that follow it, or keeps p as pending.
func (l *Ledger) addRun(p run) error {
	if !isRange(p.offset, p.length) {
		return refuse(p.offset, p.length, ErrRange)
	}
	next := sort.Search(len(l.pending), func(i int) bool { return l.pending[i].offset >= p.offset })
	if l.overlaps(p, next) {
		return refuse(p.offset, p.length, ErrOverlap)
	}
	if p.offset > l.prefix {
		return l.hold(p, next)
	}
	l.extend(p)
	l.extendByPending()
	return nil
}

// overlaps reports whether p overlaps the prefix or one of its neighbours if it were inserted in pending at index i.
func (l *Ledger) overlaps(p run, i int) bool {
	before := l.prefix
	if i > 0 {
		before = l.pending[i-1].end()
	}
	return p.offset < before || i < len(l.pending) && l.pending[i].offset < p.end()
}

// hold inserts p into pending at index i and joins it with adjacent runs, so that there are as many runs as gaps.
func (l *Ledger) hold(p run, i int) error {
	follows := i > 0 && l.pending[i-1].end() == p.offset
	leads := i < len(l.pending) && p.end() == l.pending[i].offset
	switch {
	case follows && leads:
		l.pending[i-1] = l.join(l.join(l.pending[i-1], p), l.pending[i])
		l.pending = slices.Delete(l.pending, i, i+1)
	case follows:
		l.pending[i-1] = l.join(l.pending[i-1], p)
	case leads:
		l.pending[i] = l.join(p, l.pending[i])
	case len(l.pending) == cap(l.pending):
		return refuse(p.offset, p.length, ErrParked)
	default:
		l.pending = slices.Insert(l.pending, i, p)
	}
	return nil
}

// join returns the run that consists of two adjacent ones.
func (l *Ledger) join(first, second run) run {
	joined := run{offset: first.offset, length: first.length + second.length}
	if l.algorithm == CRC32C {
		joined.crc = combine(first.crc, second.crc, second.length)
	}
	return joined
}

func (l *Ledger) extend(p run) {
	l.prefix = p.end()
	if l.algorithm == CRC32C {
		l.crc = combine(l.crc, p.crc, p.length)
	}
}

func (l *Ledger) extendByPending() {
	taken := 0
	for taken < len(l.pending) && l.pending[taken].offset == l.prefix {
		l.extend(l.pending[taken])
		taken++
	}
	l.pending = slices.Delete(l.pending, 0, taken)
}

func isRange(offset, length int64) bool {
	return offset >= 0 && length > 0 && offset <= math.MaxInt64-length
}

func refuse(offset, length int64, why error) error {
	return fmt.Errorf("chunk of %d bytes at offset %d: %w", length, offset, why)
}
