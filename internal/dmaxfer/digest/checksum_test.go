package digest

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Of any length, from any address, after any beginning.
func TestFoldedCRC(t *testing.T) {
	if !canFold {
		t.Skip("this processor does not multiply polynomials on whole cache lines")
	}
	random := rand.New(rand.NewPCG(1, 2))
	content := make([]byte, 1<<16)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	for range 20000 {
		start := random.IntN(100)
		length := random.IntN(4 * minFold)
		if random.IntN(10) == 0 {
			length = random.IntN(len(content) - start)
		}
		chunk, before := content[start:start+length], random.Uint32()
		if got, want := updateCastagnoli(before, chunk), crc32.Update(before, castagnoli, chunk); got != want {
			t.Fatalf("%d bytes from %d after %08x: %08x, want %08x", length, start, before, got, want)
		}
	}
}

// It copies all of them, and nothing else.
func TestCRCOfACopy(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	content := make([]byte, 1<<14)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(content)
	for range 5000 {
		start, to := random.IntN(100), random.IntN(100)
		length := random.IntN(8 * minFold)
		want := append(append(make([]byte, to), content[start:start+length]...), make([]byte, 50)...)
		got := make([]byte, len(want))
		crc := copyCastagnoli(got[to:to+length], content[start:start+length])
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes from %d to %d arrived changed", length, start, to)
		}
		if want := crc32.Checksum(want[to:to+length], castagnoli); crc != want {
			t.Fatalf("%d bytes from %d: %08x, want %08x", length, start, crc, want)
		}
	}
}

func TestCheckedCopy(t *testing.T) {
	chunk := make([]byte, 10_000)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(chunk)
	for _, a := range wire.Digests() {
		target := make([]byte, len(chunk))
		got, want := CheckedCopy(a, target, chunk), Check(a, chunk)
		if got != want || !bytes.Equal(target, chunk) {
			t.Errorf("%s: the copy has the checksum %x, the original %x", a, got, want)
		}
	}
}

func FuzzFoldedCRC(f *testing.F) {
	f.Add(uint32(0), []byte("x"), uint16(5000))
	f.Fuzz(func(t *testing.T, before uint32, chunk []byte, times uint16) {
		var long []byte
		for len(long) < int(times) && len(chunk) > 0 {
			long = append(long, chunk...)
		}
		if got, want := updateCastagnoli(before, long), crc32.Update(before, castagnoli, long); got != want {
			t.Fatalf("%08x, want %08x", got, want)
		}
	})
}

func BenchmarkCRC(b *testing.B) {
	content, target := make([]byte, 256<<10), make([]byte, 256<<10)
	for name, update := range map[string]func() uint32{
		"folded": func() uint32 { return updateCastagnoli(0, content) },
		"copied": func() uint32 { return copyCastagnoli(target, content) },
		"copied and folded": func() uint32 {
			copy(target, content)
			return updateCastagnoli(0, target)
		},
		"table": func() uint32 { return crc32.Update(0, castagnoli, content) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				update()
			}
		})
	}
}
