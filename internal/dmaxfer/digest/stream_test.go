package digest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestStreamsAtTheSeams(t *testing.T) {
	data := counting(2*readSize + 1)
	for _, size := range []int{0, 1, readSize - 1, readSize, readSize + 1, 2 * readSize, len(data)} {
		l := NewLedger(BLAKE3, 0)
		if size > 0 {
			if err := l.Write(0, data[:size]); err != nil {
				t.Fatal(err)
			}
		}
		for _, reader := range []io.Reader{
			bytes.NewReader(data[:size]),
			iotest.HalfReader(bytes.NewReader(data[:size])),
			iotest.DataErrReader(bytes.NewReader(data[:size])),
		} {
			got, length, err := Of(t.Context(), BLAKE3, reader)
			if got != l.Sum() || length != int64(size) || err != nil {
				t.Errorf("%d bytes: %s of %d, error %v, want %s", size, got, length, err, l.Sum())
			}
		}
	}
}

func TestReadErrorsAreNotTheEnd(t *testing.T) {
	for _, failure := range []error{errors.New("the disk is gone"), io.ErrUnexpectedEOF} {
		failing := func() io.Reader { return io.MultiReader(bytes.NewReader(counting(10)), iotest.ErrReader(failure)) }
		if _, size, err := Of(t.Context(), XXH3, failing()); !errors.Is(err, failure) || size != 0 {
			t.Errorf("%d bytes, error %v", size, err)
		}
		for i, pair := range [][2]io.Reader{{failing(), bytes.NewReader(nil)}, {bytes.NewReader(nil), failing()}} {
			if _, err := Compare(t.Context(), XXH3, pair[0], pair[1]); !errors.Is(err, failure) {
				t.Errorf("stream %d: error %v", i, err)
			}
		}
	}
}

func TestContextEndsStreams(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	reads := 0
	endless := readerFunc(func(b []byte) (int, error) {
		if reads++; reads == 3 {
			cancel(enough)
		}
		return len(b), nil
	})
	if _, size, err := Of(ctx, CRC32C, endless); err != enough || size != 3*readSize {
		t.Errorf("%d bytes, error %v", size, err)
	}
	if _, err := Compare(ctx, CRC32C, endless, endless); err != enough {
		t.Errorf("error %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestCompareFindsTheFirstDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := counting(rapid.IntRange(0, 2*readSize+2).Draw(t, "size"))
		second := bytes.Clone(first[:rapid.IntRange(0, len(first)).Draw(t, "cut")])
		want := int64(-1)
		if len(second) < len(first) {
			want = int64(len(second))
		}
		for range rapid.IntRange(0, min(3, len(second))).Draw(t, "changes") {
			at := rapid.IntRange(0, len(second)-1).Draw(t, "at")
			second[at] = first[at] + 1
			if want < 0 || int64(at) < want {
				want = int64(at)
			}
		}
		checkComparison(t, first, second, want)
		checkComparison(t, second, first, want)
	})
}

func checkComparison(t *rapid.T, first, second []byte, want int64) {
	got, err := Compare(t.Context(), XXH3, bytes.NewReader(first), bytes.NewReader(second))
	if err != nil {
		t.Fatal(err)
	}
	expected := Comparison{
		Sums:   [2]Sum{sumOf(t, XXH3, first), sumOf(t, XXH3, second)},
		Sizes:  [2]int64{int64(len(first)), int64(len(second))},
		Differ: want,
	}
	if got != expected || got.Same() != bytes.Equal(first, second) || (got.Sums[0] == got.Sums[1]) != got.Same() {
		t.Fatalf("got %+v, want %+v", got, expected)
	}
}
