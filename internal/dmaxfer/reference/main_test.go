package reference

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
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

// mustFail wants an error of this package, with the kind, a cause and a next step.
func mustFail(t *testing.T, err, kind error) {
	t.Helper()
	var failed *job.Error
	if !errors.As(err, &failed) || !errors.Is(err, kind) {
		t.Fatalf("got %v, want a job.Error about the %v", err, kind)
	}
	if failed.Cause == "" || failed.Next == "" {
		t.Errorf("%+v says too little", failed)
	}
}
