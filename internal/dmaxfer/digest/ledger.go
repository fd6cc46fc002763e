package digest

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"slices"
	"sort"

	"github.com/zeebo/blake3"
	"github.com/zeebo/xxh3"
)

// Why a Ledger refuses a chunk; errors.Is finds it. A refused chunk changes nothing.
var (
	ErrRange   = errors.New("not a valid range of a file")       // negative, empty, or beyond 2^63
	ErrOverlap = errors.New("overlaps a chunk already recorded") // in whole or in part
	ErrOrder   = errors.New("not the next chunk")                // where the algorithm needs the chunks in order
	ErrParked  = errors.New("too many chunks out of order")      // for one before them
	ErrCheck   = errors.New("not a checksum of this digest")     // no CRC-32C, say, or the bytes are needed
)

// Ledger holds what of a file has been covered so far by one side of a copy, and the digest of that. It is not safe for
// concurrent use. It allocates nothing once it is made, except in Sum.
type Ledger struct {
	algorithm Algorithm
	prefix    int64     // bytes from the start without a gap
	hash      hash.Hash // of the prefix, if the algorithm is Ordered
	crc       uint32    // of the prefix, if it is CRC32C
	operators operatorCache
	pending   []run // beyond a gap, by offset
}

// chunk is a part of the file that is not yet contiguous with its start.
type run struct {
	offset, length int64
	crc            uint32
}

func (p run) end() int64 { return p.offset + p.length }

// zeros is what holes are fed as; nobody writes to it.
var zeros [64 << 10]byte

// NewLedger makes an empty ledger that holds up to parked runs of chunks which come before those that belong before them; where
// the algorithm is Ordered it holds none. The algorithm must be Known.
func NewLedger(a Algorithm, parked int) *Ledger {
	if !a.Known() {
		panic(fmt.Sprintf("internal error: no ledger for %s", a))
	}
	l := &Ledger{algorithm: a}
	if a.Ordered() {
		l.hash = newHash(a)
		return l
	}
	l.pending = make([]run, 0, max(parked, 0))
	return l
}

// newHash starts the whole digest of an Ordered algorithm.
func newHash(a Algorithm) hash.Hash {
	switch a {
	case XXH3:
		return xxh3.New()
	case BLAKE3:
		return blake3.New()
	case SHA256:
		return sha256.New()
	default:
		panic(fmt.Sprintf("internal error: no ordered digest %s", a))
	}
}

// Algorithm is the one that the ledger was made for.
func (l *Ledger) Algorithm() Algorithm { return l.algorithm }

// Prefix is the number of bytes from the start of the file that are covered without a gap.
func (l *Ledger) Prefix() int64 { return l.prefix }

// Parked is the number of runs that are covered beyond a gap, each of one or more chunks.
func (l *Ledger) Parked() int { return len(l.pending) }

// Add covers a chunk by its Check, in any order, for algorithms that are not Ordered. It fails with ErrRange, ErrOverlap,
// ErrParked or ErrCheck.
func (l *Ledger) Add(offset, length int64, check uint64) error {
	if l.algorithm.Ordered() || check > math.MaxUint32 || l.algorithm == None && check != 0 {
		return refuse(offset, length, ErrCheck)
	}
	return l.addRun(run{offset: offset, length: length, crc: uint32(check)})
}

// AddHole covers a chunk of zeros. Where the algorithm is Ordered it must be the next one, else ErrOrder, and takes as long
// as to digest the zeros: cut holes into chunks no longer than you may be away for. Otherwise it is Add, at no cost.
func (l *Ledger) AddHole(offset, length int64) error {
	switch {
	case l.algorithm.Ordered():
		return l.writeZeros(offset, length)
	case l.algorithm == None || length <= 0:
		return l.addRun(run{offset: offset, length: length})
	default:
		return l.addRun(run{offset: offset, length: length, crc: crcOfZeros(l.operators.get(length))})
	}
}

// crcOfZeros returns the CRC of as many zeros as the operator is for: they only move the register, which starts inverted
// and ends so.
func crcOfZeros(operator uint32) uint32 { return ^multiply(operator, ^uint32(0)) }

// Write covers a chunk by its bytes. Where the algorithm is Ordered it must be the next one, else ErrOrder; otherwise it is
// Add of the chunk's Check. b is not kept.
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

// Sum is the digest of the prefix; more may be added afterwards.
func (l *Ledger) Sum() Sum {
	sum := Sum{algorithm: l.algorithm}
	switch {
	case l.algorithm.Ordered():
		l.hash.Sum(sum.bytes[:0])
	case l.algorithm == CRC32C:
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
	_, _ = l.hash.Write(b) // which never fails, says hash.Hash
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

// cover takes the chunk into the prefix, with those that were parked behind it, or parks it.
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

// overlaps looks at the neighbours of a chunk that would be parked at a place.
func (l *Ledger) overlaps(p run, place int) bool {
	before := l.prefix
	if place > 0 {
		before = l.pending[place-1].end()
	}
	return p.offset < before || place < len(l.pending) && l.pending[place].offset < p.end()
}

// park joins the chunk with its neighbours, so that what is parked is as many chunks as there are gaps before them.
func (l *Ledger) hold(p run, place int) error {
	follows := place > 0 && l.pending[place-1].end() == p.offset
	leads := place < len(l.pending) && p.end() == l.pending[place].offset
	switch {
	case follows && leads:
		l.pending[place-1] = l.join(l.join(l.pending[place-1], p), l.pending[place])
		l.pending = slices.Delete(l.pending, place, place+1)
	case follows:
		l.pending[place-1] = l.join(l.pending[place-1], p)
	case leads:
		l.pending[place] = l.join(p, l.pending[place])
	case len(l.pending) == cap(l.pending):
		return refuse(p.offset, p.length, ErrParked)
	default:
		l.pending = slices.Insert(l.pending, place, p)
	}
	return nil
}

// join makes one chunk of two that touch.
func (l *Ledger) join(first, second run) run {
	joined := run{offset: first.offset, length: first.length + second.length}
	if l.algorithm == CRC32C {
		joined.crc = combine(first.crc, second.crc, l.operators.get(second.length))
	}
	return joined
}

func (l *Ledger) extend(p run) {
	l.prefix = p.end()
	if l.algorithm == CRC32C {
		l.crc = combine(l.crc, p.crc, l.operators.get(p.length))
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
