package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/report"
)

var halfway = job.Sample{
	Phase: job.Moving, Moved: 870 << 20, Total: 1400 << 20, Elapsed: time.Minute,
	Shares: pump.Shares{pump.Reading: 0.34, pump.Copying: 0.5, pump.Writing: 0.16},
}

// halfwayWith returns the sample halfway with a change.
func halfwayWith(change func(*job.Sample)) job.Sample {
	s := halfway
	change(&s)
	return s
}

// treeHalfway returns the sample of a tree whose entries have all been found, with a change.
func treeHalfway(change func(*job.Sample)) job.Sample {
	return halfwayWith(func(s *job.Sample) {
		s.Found, s.Total, s.Files, s.FilesFound, s.Walked = s.Total, job.Unknown, 120, 5600, true
		change(s)
	})
}

func TestProgressLine(t *testing.T) {
	const fast = 100 << 20
	cases := []struct {
		name   string
		sample job.Sample
		rate   float64
		width  int
		line   string
	}{
		{"in a pipe", halfway, fast, 0, "62%  870 MiB/1.4 GiB  100 MiB/s  ETA 6s  read 34% copy 50% write 16%"},
		{"wide", halfway, fast, 200,
			" 62% [========================>               ] 870 MiB/1.4 GiB  100 MiB/s  ETA 6s  read 34% copy 50% " +
				"write 16%"},
		{"of 80 columns", halfway, fast, 80,
			" 62% [=====>   ] 870 MiB/1.4 GiB  100 MiB/s  ETA 6s  read 34% copy 50% write 16%"},
		{"of 70 columns", halfway, fast, 70, " 62% [===========>      ] 870 MiB/1.4 GiB  100 MiB/s  ETA 6s  copy 50%"},
		{"of 50 columns", halfway, fast, 50, " 62% [====>   ] 870 MiB/1.4 GiB  100 MiB/s  ETA 6s"},
		{"of 37 columns", halfway, fast, 37, "62%  870 MiB/1.4 GiB  100 MiB/s"},
		{"of 20 columns", halfway, fast, 20, "62%  870 MiB/1.4 GiB"},
		{"of 19 columns", halfway, fast, 19, "62%"},
		{"of 2 columns", halfway, fast, 2, ""},
		{"of a slow copy", halfway, 1, 0, "62%  870 MiB/1.4 GiB  1 B/s  ETA days  read 34% copy 50% write 16%"},
		{"before anything is known", job.Sample{Phase: job.Moving, Total: 8}, 0, 0, "0%  0 B/8 B"},
		{"below a limit",
			halfwayWith(func(s *job.Sample) { s.Shares = pump.Shares{pump.Reading: 0.02, pump.RateLimit: 0.98} }),
			fast, 0,
			"62%  870 MiB/1.4 GiB  100 MiB/s  ETA 6s  read 2% rate limit 98%"},
		{"of a stream", halfwayWith(func(s *job.Sample) { s.Total = job.Unknown }), fast, 80,
			"870 MiB  100 MiB/s  read 34% copy 50% write 16%"},
		{"of a tree that is being read", treeHalfway(func(s *job.Sample) { s.Walked = false }), fast, 80,
			"120/5600+ entries  870 MiB/1.4 GiB+  100 MiB/s  read 34% copy 50% write 16%"},
		{"of a tree", treeHalfway(func(*job.Sample) {}), fast, 80,
			" 62% [======>   ] 120/5600 entries  870 MiB/1.4 GiB  100 MiB/s  ETA 6s  copy 50%"},
		{"of a tree of 40 columns", treeHalfway(func(*job.Sample) {}), fast, 40,
			"62%  120/5600 entries  870 MiB/1.4 GiB"},
		{"of empty files", treeHalfway(func(s *job.Sample) { s.Moved, s.Found, s.Files = 0, 0, 1400 }), 0, 0,
			"25%  1400/5600 entries  0 B/0 B  read 34% copy 50% write 16%"},
		{"while a tree is flushed", treeHalfway(func(s *job.Sample) { s.Phase, s.Work = job.Finishing, 1<<40 }), 0, 0,
			"62%  120/5600 entries  870 MiB/1.4 GiB  flushing"},
		{"of an empty file", job.Sample{Phase: job.Moving}, 0, 40, "100% [=========================] 0 B/0 B"},
		{"while space is allocated", halfwayWith(func(s *job.Sample) { s.Phase, s.Moved = job.Preparing, 0 }), 0, 0,
			"0%  0 B/1.4 GiB  preallocating"},
		{"while it is flushed", halfwayWith(func(s *job.Sample) { s.Phase = job.Finishing }), fast, 0,
			"62%  870 MiB/1.4 GiB  flushing"},
		{"while it is read back",
			halfwayWith(func(s *job.Sample) { s.Phase, s.Work = job.Finishing, s.Total+1 }), fast,
			0,
			"62%  870 MiB/1.4 GiB  reading back"},
		{"at the end", halfwayWith(func(s *job.Sample) { s.Phase = job.Concluding }), fast, 0,
			"62%  870 MiB/1.4 GiB  waiting for the peer"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := progressLine(tc.sample, tc.rate, tc.width)
			if got != tc.line {
				t.Errorf("got\n %q, want\n %q", got, tc.line)
			}
			if tc.width > 0 && len(got) > tc.width {
				t.Errorf("%d columns of %d", len(got), tc.width)
			}
		})
	}
}

// The line fits any width and has no control characters.
func TestProgressLineFits(t *testing.T) {
	for width := 1; width < 120; width++ {
		for _, total := range []int64{0, 1, 1000, 1 << 46, job.Unknown} {
			s := halfway
			s.Total = total
			if line := progressLine(s, 1<<30, width); len(line) > width || line != quote.Printable(line) {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
}

// The rate is the mean at first, and forgets the past later.
func TestSpeed(t *testing.T) {
	var v speed
	var moved int64
	at := func(second int) job.Sample {
		return job.Sample{Phase: job.Moving, Moved: moved, Elapsed: time.Duration(second) * time.Second}
	}
	if rate := v.update(job.Sample{}); rate != 0 {
		t.Errorf("before the start: %f", rate)
	}
	moved = 0
	v.update(at(1))
	moved = 200
	if rate := v.update(at(2)); rate < 99 || rate > 101 {
		t.Errorf("200 bytes in two seconds: %f a second", rate)
	}
	if rate := v.update(at(2)); rate < 99 || rate > 101 {
		t.Errorf("asked twice: %f", rate)
	}
	for second := 3; second < 30; second++ {
		moved += 1000
		v.update(at(second))
	}
	if rate := v.rate; rate < 990 || rate > 1000 {
		t.Errorf("after a long time of 1000 bytes a second: %f", rate)
	}
}

// Other output goes above the last line and leaves nothing of it.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{out: &out, width: func() int { return 80 }}
	fmt.Fprint(s, "before\n")
	s.show("10%")
	s.show("10%") // nothing has changed
	fmt.Fprint(s, "log\n")
	s.show("20%")
	fmt.Fprint(s, "half a line")
	fmt.Fprint(s, ", and the rest\n")
	s.show("30%")
	s.show("")
	want := "before\n" + eraseLine + "10%" + eraseLine + "log\n10%" + eraseLine + "20%" + eraseLine + "half a line" +
		", and the rest\n" +
		eraseLine + "30%" + eraseLine
	if out.String() != want {
		t.Errorf("wrote\n %q, want\n %q", out.String(), want)
	}
}

// Without a terminal the text reporter never moves the cursor.
func TestTextReporterWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	p := newText(io.Discard, &out, nil, Form{Progress: ProgressAuto}, zerolog.Nop())
	if p.Interval() != lineInterval {
		t.Errorf("a line each %s", p.Interval())
	}
	p.Progress(halfway)
	p.Fail(nil)
	if got := out.String(); strings.ContainsAny(got, "\r\x1b") || strings.Count(got, "\n") != 1 {
		t.Errorf("wrote %q", got)
	}
}

// A terminal shows at once what a side waits for, a log with its first line; there is no event in the first seconds.
func TestWaitingForThePeer(t *testing.T) {
	var out, log, events bytes.Buffer
	terminal := &Screen{out: &out, width: func() int { return 40 }}
	for _, f := range []report.Reporter{
		newText(io.Discard, &out, terminal, Form{}, zerolog.Nop()),
		newText(io.Discard, &log, nil, Form{}, zerolog.Nop()),
		newJSON(&events, Form{}, zerolog.Nop()),
	} {
		f.Begin(report.Path{Side: wire.Host})
		f.Progress(job.Sample{Phase: job.Meeting})
	}
	want := eraseLine + "waiting for the DPU"
	if out.String() != want || log.String() != "waiting for the DPU\n" || events.Len() > 0 {
		t.Errorf("terminal %q, want %q; log %q, events %q", out.String(), want, log.String(), events.String())
	}
}

// How often progress is shown, and to whom.
func TestProgressIntervals(t *testing.T) {
	terminal := &Screen{}
	for _, tc := range []struct {
		screen   *Screen
		progress ProgressChoice
		quiet    bool
		want     time.Duration
	}{
		{terminal, ProgressAuto, false, barInterval},
		{terminal, ProgressAuto, true, 0},
		{terminal, ProgressNever, false, 0},
		{terminal, ProgressAlways, true, barInterval},
		{nil, ProgressAuto, false, lineInterval},
		{nil, ProgressAuto, true, 0},
		{nil, ProgressAlways, true, alwaysInterval},
		{nil, ProgressNever, false, 0},
	} {
		s := Form{Progress: tc.progress, Quiet: tc.quiet}
		if got := newText(io.Discard, io.Discard, tc.screen, s, zerolog.Nop()).Interval(); got != tc.want {
			t.Errorf("--progress %s, quiet %t, terminal %t: %s, want %s", tc.progress, tc.quiet, tc.screen != nil, got,
				tc.want)
		}
	}
}
