package digest

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// part is a chunk of a test file.
type part struct {
	offset int64
	bytes  []byte
	hole   bool
}

// drawParts draws a file and its parts in the order of their offsets; some are holes.
func drawParts(t *rapid.T) (file []byte, parts []part) {
	for range rapid.IntRange(0, 40).Draw(t, "parts") {
		p := part{offset: int64(len(file)), hole: rapid.Bool().Draw(t, "hole")}
		p.bytes = make([]byte, rapid.IntRange(1, 5000).Draw(t, "length"))
		if !p.hole {
			fillFrom(p.bytes, rapid.Uint64().Draw(t, "seed"))
		}
		file, parts = append(file, p.bytes...), append(parts, p)
	}
	return file, parts
}

// fillFrom fills b with pseudo-random bytes (xorshift).
func fillFrom(b []byte, seed uint64) {
	for i := range b {
		seed ^= seed<<13 ^ 1
		seed ^= seed >> 7
		seed ^= seed << 17
		b[i] = byte(seed)
	}
}

func (p part) enter(l *Ledger) error {
	if p.hole {
		return l.AddHole(p.offset, int64(len(p.bytes)))
	}
	if l.Algorithm().Ordered() {
		return l.Write(p.offset, p.bytes)
	}
	return l.Add(p.offset, int64(len(p.bytes)), Check(l.Algorithm(), p.bytes))
}

func sumOf(t *rapid.T, a Algorithm, b []byte) Sum {
	sum, _, err := Of(t.Context(), a, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestChunksInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom([]Algorithm{None, CRC32C}).Draw(t, "algorithm")
		file, parts := drawParts(t)
		ledger := NewLedger(a, len(parts))
		covered := make([]bool, len(file)+1) // the last stays false
		for _, p := range rapid.Permutation(parts).Draw(t, "order") {
			if err := p.enter(ledger); err != nil {
				t.Fatal(err)
			}
			for i := range p.bytes {
				covered[p.offset+int64(i)] = true
			}
			prefix := slices.Index(covered, false)
			if ledger.Prefix() != int64(prefix) || ledger.Sum() != sumOf(t, a, file[:prefix]) {
				t.Fatalf("%s of %d bytes, want %s of %d",
					ledger.Sum(), ledger.Prefix(), sumOf(t, a, file[:prefix]), prefix)
			}
		}
		if len(ledger.pending) != 0 {
			t.Fatalf("%d runs are still parked after the last chunk", len(ledger.pending))
		}
	})
}

func TestChunksInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom([]Algorithm{None, CRC32C, XXH3, BLAKE3, SHA256}).Draw(t, "algorithm")
		file, parts := drawParts(t)
		ledger := NewLedger(a, 0)
		for _, p := range parts {
			if err := p.enter(ledger); err != nil {
				t.Fatal(err)
			}
			end := p.offset + int64(len(p.bytes))
			if ledger.Prefix() != end || ledger.Sum() != sumOf(t, a, file[:end]) {
				t.Fatalf("%s of %d bytes, want %s of %d", ledger.Sum(), ledger.Prefix(), sumOf(t, a, file[:end]), end)
			}
		}
	})
}

// Arbitrary ranges, most of which are refused, compared with a model that tracks every byte.
func TestRefusedChunksChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size, capacity = 64, 3
		file := counting(size)
		ledger := NewLedger(CRC32C, capacity)
		var covered [size + 1]bool
		for range rapid.IntRange(1, 60).Draw(t, "chunks") {
			offset := rapid.IntRange(0, size-1).Draw(t, "offset")
			end := rapid.IntRange(offset+1, size).Draw(t, "end")
			prefix, parked := ledger.Prefix(), len(ledger.pending)
			touches := covered[end] || offset > 0 && covered[offset-1]
			err := ledger.Add(int64(offset), int64(end-offset), Check(CRC32C, file[offset:end]))
			var want error
			switch {
			case slices.Contains(covered[offset:end], true):
				want = ErrOverlap
			case int64(offset) > prefix && parked == capacity && !touches:
				want = ErrParked
			}
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Fatalf("chunk %d to %d: error %v, want %v", offset, end, err, want)
			}
			for i := offset; err == nil && i < end; i++ {
				covered[i] = true
			}
			first := slices.Index(covered[:], false)
			if ledger.Prefix() != int64(first) || ledger.Sum() != sumOf(t, CRC32C, file[:first]) {
				t.Fatalf("%s of %d bytes, want %d", ledger.Sum(), ledger.Prefix(), first)
			}
		}
	})
}

func TestInvalidRanges(t *testing.T) {
	for _, a := range wire.Digests() {
		for _, r := range [][2]int64{
			{0, 0}, {-1, 2}, {0, -1}, {math.MinInt64, math.MinInt64}, {1, math.MaxInt64}, {math.MaxInt64, 1},
		} {
			l := NewLedger(a, 4)
			if err := l.AddHole(r[0], r[1]); !errors.Is(err, ErrRange) {
				t.Errorf("%s: hole %d: error %v", a, r, err)
			}
			if err := l.Add(r[0], r[1], 0); !a.Ordered() && !errors.Is(err, ErrRange) {
				t.Errorf("%s: chunk %d: error %v", a, r, err)
			}
		}
		if err := NewLedger(a, 4).Write(-1, []byte{1}); !errors.Is(err, ErrRange) {
			t.Errorf("%s: error %v", a, err)
		}
	}
}

func TestChecksOfAnotherDigest(t *testing.T) {
	for _, tc := range []struct {
		algorithm Algorithm
		check     uint64
	}{{None, 1}, {CRC32C, 1 << 32}, {XXH3, 0}, {SHA256, 0}} {
		if err := NewLedger(tc.algorithm, 1).Add(0, 1, tc.check); !errors.Is(err, ErrCheck) {
			t.Errorf("%s, check %x: error %v", tc.algorithm, tc.check, err)
		}
	}
}

func TestOrderedChunksOutOfOrder(t *testing.T) {
	for _, a := range []Algorithm{XXH3, BLAKE3, SHA256} {
		l := NewLedger(a, 4)
		if err := l.Write(0, []byte("ab")); err != nil {
			t.Fatal(err)
		}
		was := l.Sum()
		for _, err := range []error{l.Write(3, []byte("d")), l.AddHole(3, 1)} {
			if !errors.Is(err, ErrOrder) {
				t.Errorf("%s ahead: error %v", a, err)
			}
		}
		for _, err := range []error{l.Write(1, []byte("bc")), l.AddHole(0, 1)} {
			if !errors.Is(err, ErrOverlap) {
				t.Errorf("%s behind: error %v", a, err)
			}
		}
		if l.Prefix() != 2 || l.Sum() != was {
			t.Errorf("%s: a refused chunk changed the ledger: %s of %d bytes", a, l.Sum(), l.Prefix())
		}
	}
}

// The number of parked runs is the number of gaps, independent of the number of chunks.
func TestChunksBeyondAGapAreJoined(t *testing.T) {
	file := counting(100)
	ledger := NewLedger(CRC32C, 1)
	order := []int{50, 51, 49, 52, 48, 70, 69} // the last two start a second run, for which there is no capacity
	for i, at := range order {
		err := ledger.Add(int64(at), 1, Check(CRC32C, file[at:at+1]))
		if want := error(nil); i < 5 && err != want {
			t.Fatalf("byte %d: %v", at, err)
		} else if i >= 5 && !errors.Is(err, ErrParked) {
			t.Fatalf("byte %d, behind a second gap: error %v", at, err)
		}
	}
	if err := ledger.Write(0, file[:48]); err != nil {
		t.Fatal(err)
	}
	whole, _, err := Of(t.Context(), CRC32C, bytes.NewReader(file[:53]))
	if err != nil {
		t.Fatal(err)
	}
	if ledger.Prefix() != 53 || ledger.Sum() != whole {
		t.Errorf("%s of %d bytes", ledger.Sum(), ledger.Prefix())
	}
}

// A hole of 2^46 bytes, in one chunk and in many, before data and after it.
func TestHugeHole(t *testing.T) {
	const huge = int64(1) << 46
	whole, cut := NewLedger(CRC32C, 8), NewLedger(CRC32C, 8)
	data := []byte("behind it")
	add := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	add(whole.Write(huge, data))
	add(whole.AddHole(0, huge))
	for at, n := int64(0), int64(1); at < huge; at, n = at+n, min(n*3, huge-at-n) {
		add(cut.AddHole(at, n))
	}
	add(cut.Write(huge, data))
	if whole.Sum() != cut.Sum() || whole.Prefix() != huge+int64(len(data)) || cut.Prefix() != whole.Prefix() {
		t.Errorf("%s of %d bytes and %s of %d", whole.Sum(), whole.Prefix(), cut.Sum(), cut.Prefix())
	}
}

func TestLedgerAllocatesNothing(t *testing.T) {
	const length, together = 1 << 10, 16
	chunk := counting(length)
	for _, a := range wire.Digests() {
		l := NewLedger(a, together)
		enter := func(offset int64, hole bool) error {
			if hole {
				return l.AddHole(offset, length)
			}
			return l.Write(offset, chunk)
		}
		allocated := testing.AllocsPerRun(100, func() {
			start := l.Prefix()
			for i := range int64(together) {
				at := i
				if !a.Ordered() {
					at = together - 1 - i
				}
				if err := enter(start+at*length, i%4 == 3); err != nil {
					t.Fatal(err)
				}
			}
		})
		if allocated != 0 || l.Prefix() != 101*together*length {
			t.Errorf("%s: %v allocations, prefix %d", a, allocated, l.Prefix())
		}
	}
}

func BenchmarkAddBackwards(b *testing.B) {
	const length, together = 1 << 20, 64
	l := NewLedger(CRC32C, together)
	for b.Loop() {
		start := l.Prefix()
		for i := range int64(together) {
			_ = l.Add(start+(together-1-i)*length, length, 1)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	chunk := counting(1 << 20)
	for _, a := range []Algorithm{CRC32C, XXH3} {
		b.Run(a.String(), func(b *testing.B) {
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				Check(a, chunk)
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	chunk := counting(1 << 20)
	for _, a := range wire.Digests() {
		b.Run(a.String(), func(b *testing.B) {
			l := NewLedger(a, 0)
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				_ = l.Write(l.Prefix(), chunk)
			}
		})
	}
}
