//go:build !ucx || !cgo

package ucx

import (
	"errors"
	"strings"
	"testing"
)

func TestProgramWithoutUCX(t *testing.T) {
	_, err := Open(Settings{})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "libucx-dev") {
		t.Errorf("got %v, want one that says what to install", err)
	}
}
