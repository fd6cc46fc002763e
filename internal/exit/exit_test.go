package exit

import (
	"errors"
	"os"
	"testing"
)

func TestUsageErrorStaysOnOneLineAndKeepsItsCause(t *testing.T) {
	err := Usagef("file %s: %w", "a\nb\x1b\u2028\u00e9", os.ErrNotExist)
	if want := `file a\nb\x1b\u2028é: file does not exist`; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.Error("the cause is lost")
	}
}
