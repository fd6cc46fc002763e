package pump

import (
	"io"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
)

// kindsOf returns the kinds of all chunks of a reader with a buffer of 64 bytes.
func kindsOf(t *testing.T, r Reader) []native.Kind {
	t.Helper()
	var kinds []native.Kind
	for {
		chunk, err := r.Next(make([]byte, 64))
		if err == io.EOF {
			return kinds
		}
		must(t, err)
		kinds = append(kinds, chunk.Kind)
	}
}

// A hole is sent as one if it is to be kept. If holes are checked, one that has other bytes than zeros is sent as data.
func TestHolesOfASource(t *testing.T) {
	const data, hole = native.DataRecord, native.HoleRecord
	content := make([]byte, 256)
	content[0], content[200] = 1, 1
	source := newMemory(content)
	source.extents = []disk.Extent{{Offset: 0, Length: 64}, {Offset: 64, Length: 192, Hole: true}}
	for holes, want := range map[Holes][]native.Kind{
		KeepHoles: {data, hole}, CheckHoles: {data, hole, hole, data}, FillHoles: {data, data, data, data},
	} {
		if got := kindsOf(t, NewFileReader(source, 0, holes)); !slices.Equal(got, want) {
			t.Errorf("%d: got %v, want %v", holes, got, want)
		}
	}
}

// endingStream has so many bytes, and may be read once.
type endingStream struct {
	t     *testing.T
	bytes int
}

func (s *endingStream) Next([]byte) (int, error) {
	if s.bytes < 0 {
		s.t.Error("read after its end")
		return 0, io.EOF
	}
	n := s.bytes
	s.bytes = -1
	return n, io.EOF
}

// A stream is not read after its end, which may come with its last bytes: it could wait for more.
func TestStreamIsNotReadAfterItsEnd(t *testing.T) {
	for bytes, want := range map[int]int{0: 0, 10: 1} {
		r := NewStreamReader(&endingStream{t, bytes})
		if got := len(kindsOf(t, r)); got != want {
			t.Errorf("%d chunks of %d bytes", got, bytes)
		}
		if _, err := r.Next(make([]byte, 64)); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}
	}
}
