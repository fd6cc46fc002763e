package lines_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dma-copy/dma-copy/internal/lines"
)

func read(text string, separator byte, longest int) (got []string, number int, err error) {
	number, err = lines.Each(iotest.OneByteReader(strings.NewReader(text)), separator, longest,
		func(number int, line string) error {
			if got = append(got, line); line == "stop" {
				return errStop
			}
			return nil
		})
	return got, number, err
}

var errStop = errors.New("stop")

// Lists that were written on Windows are read as others are, and lists with zero bytes as they are.
func TestEach(t *testing.T) {
	for text, want := range map[string][]string{
		"":                      nil,
		"a\nb":                  {"a", "b"},
		"a\r\n\r\nb\r\n":        {"a", "", "b"},
		"\ufeffa\r\n\ufeffb\n":  {"a", "\ufeffb"},
		"\ufeff":                {""},
		"a\rb\n c \r":           {"a\rb", " c "},
		"\xff\r\r\n":            {"\xff\r"},
		"aaaa\r\n" + "aaaa\r\n": {"aaaa", "aaaa"},
	} {
		if got, _, err := read(text, '\n', 4); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	want := []string{"\ufeffa\r", "\nb"}
	if got, _, err := read("\ufeffa\r\x00\nb\x00", 0, 9); err != nil || !slices.Equal(got, want) {
		t.Errorf("with zero bytes: %q, %v", got, err)
	}
	for text, want := range map[string]error{
		"a\naaaaa\nb": lines.ErrTooLong, "a\n" + strings.Repeat("a", 1000): lines.ErrTooLong, "a\nstop\nb": errStop,
	} {
		if _, number, err := read(text, '\n', 4); !errors.Is(err, want) || number != 2 {
			t.Errorf("%.20q: line %d: %v", text, number, err)
		}
	}
	broken := errors.New("broken")
	if _, err := lines.Each(iotest.ErrReader(broken), '\n', 4, nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
