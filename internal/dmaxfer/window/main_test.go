package window

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

func TestMain(m *testing.M) { docatest.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustBe(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}
