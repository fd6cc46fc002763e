package job_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// elsewhere is a panic that another package has recovered.
type elsewhere struct{}

func (elsewhere) Error() string                    { return "internal error: a defect" }
func (elsewhere) Panic() (value any, stack []byte) { return "a defect", []byte("stack") }

// passedOn is a panic that another goroutine has recovered and that became one of its own.
type passedOn struct{ error }

func (p passedOn) Panic() (value any, stack []byte) {
	return p.error, []byte("stack of the waiting goroutine")
}

// A panic that passed several goroutines is the first one.
func TestDefectOfAnotherGoroutine(t *testing.T) {
	err := func() (err error) {
		defer job.Recover(&err)
		panic(passedOn{elsewhere{}})
	}()
	for _, err := range []error{err, passedOn{elsewhere{}}} {
		if d := job.DefectIn(err); d == nil || d.Value != "a defect" || string(d.Stack) != "stack" {
			t.Errorf("%v has the defect %+v", err, d)
		}
	}
}

func TestDefectIn(t *testing.T) {
	recovered := func() (err error) {
		defer job.Recover(&err)
		panic("a defect")
	}()
	for _, err := range []error{
		recovered, elsewhere{}, fmt.Errorf("read: %w", elsewhere{}), errors.Join(io.EOF, recovered),
	} {
		if d := job.DefectIn(err); d == nil || d.Value != "a defect" || len(d.Stack) == 0 {
			t.Errorf("%v has the defect %+v", err, d)
		}
	}
	for _, err := range []error{nil, io.EOF, job.NewError(job.ErrTarget, io.EOF, "", "no")} {
		if d := job.DefectIn(err); d != nil {
			t.Errorf("%v is a defect: %v", err, d)
		}
	}
}
