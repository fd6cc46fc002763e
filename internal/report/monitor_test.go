package report

import (
	"strings"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// With a daemon a list of paths has an effect on either side, unless the source is a file.
func TestListForADaemon(t *testing.T) {
	for planned, want := range map[job.Planned]string{
		{Tree: true}: "", {Sent: true, Tree: true}: "", {}: "the source is a file, where --files-from has no effect",
	} {
		reporter := &recorder{}
		m := NewMonitor(reporter, Asked{List: true})
		m.Begin(Path{Remote: "dpu:in/x"})
		m.Event(planned)
		if got := strings.Join(reporter.warnings, "; "); got != want {
			t.Errorf("%+v: warned %q, want %q", planned, got, want)
		}
	}
}

// A list of paths has no effect on a receiver, nor on a file. Patterns may be meant for other copies.
func TestListWithoutEffect(t *testing.T) {
	listed := Asked{List: true}
	for _, tc := range []struct {
		asked   Asked
		planned job.Planned
		want    string
	}{
		{listed, job.Planned{Sent: true, Tree: true}, ""},
		{listed, job.Planned{Tree: true, Compare: true}, ""},
		{listed, job.Planned{Tree: true}, "this side receives, where --files-from has no effect"},
		{listed, job.Planned{Sent: true}, "the source is a file, where --files-from has no effect"},
		{Asked{}, job.Planned{}, ""},
	} {
		reporter := &recorder{}
		NewMonitor(reporter, tc.asked).Event(tc.planned)
		if got := strings.Join(reporter.warnings, "; "); got != tc.want {
			t.Errorf("%+v: warned %q, want %q", tc.planned, got, tc.want)
		}
	}
}

// recorder is a Reporter that keeps warnings and results.
type recorder struct {
	warnings []string
	results  []job.Summary
}

func (r *recorder) Begin(Path) {}

func (r *recorder) SourceFailed(error) {}

func (r *recorder) Deleting(Deleting) {}

func (r *recorder) Deleted(Deletion) {}

func (r *recorder) Total(Total) error { return nil }

func (r *recorder) Event(e job.Event) {
	if warned, is := e.(job.Warned); is {
		r.warnings = append(r.warnings, warned.Text)
	}
}

func (r *recorder) Progress(job.Sample) {}

func (r *recorder) Asked(job.Sample, []job.Snapshot) {}

func (r *recorder) Interval() time.Duration { return 0 }

func (r *recorder) Fail(error) {}

func (r *recorder) Result(s job.Summary) error {
	r.results = append(r.results, s)
	return nil
}
