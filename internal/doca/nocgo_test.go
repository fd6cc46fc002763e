//go:build !cgo

package doca_test

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

func TestWithoutCgoNothingOpens(t *testing.T) {
	for _, choice := range []doca.Choice{"", doca.ChooseAuto, doca.ChooseDOCA, doca.ChooseSoft} {
		if _, err := doca.Open(doca.Options{Choice: choice}); !errors.Is(err, doca.ErrNoCgo) {
			t.Errorf("%q: got %v, want ErrNoCgo", choice, err)
		}
	}
}
