package report

import (
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Monitor feeds one reporter and remembers what explains a failure. Event may be called while it samples.
type Monitor struct {
	settings config.Copy
	Progress dmaxfer.Progress

	mu       sync.Mutex
	Reporter Reporter
	native   bool
	planned  dmaxfer.Planned
	kept     dmaxfer.Kept // what a failed copy has left on this side
}

func NewMonitor(to Reporter, s config.Copy) *Monitor { return &Monitor{Reporter: to, settings: s} }

// Event is for dmaxfer.Options.Notify.
func (r *Monitor) Event(e dmaxfer.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := e.(type) {
	case dmaxfer.PeerKnown:
		r.native = e.Protocol == negotiate.Native
		r.Reporter.Event(e)
		r.warnOfReference()
		return
	case dmaxfer.Planned:
		r.planned = e
		r.Reporter.Event(e)
		r.warnOfReadback()
		return
	case dmaxfer.Kept:
		r.kept = e
		return
	}
	r.Reporter.Event(e)
}

// warnOfReference warns of settings that have no effect with a peer of the reference protocol.
func (r *Monitor) warnOfReference() {
	if missed := r.settings.BeyondReference(); !r.native && len(missed) > 0 {
		verb := "have"
		if len(missed) == 1 {
			verb = "has"
		}
		text := "the copy uses the reference protocol, where " + phrase.And(missed) + " " + verb + " no effect"
		r.Reporter.Event(dmaxfer.Warned{Text: text})
	}
}

// warnOfReadback warns that a readback compares nothing without a digest. It takes both sides to disable the digest.
func (r *Monitor) warnOfReadback() {
	if r.native && r.settings.Verify == config.VerifyReadback && r.planned.Digest == digest.None {
		r.Reporter.Event(dmaxfer.Warned{
			Text: "--verify readback compares nothing, because both sides use --digest none",
		})
	}
}

// Watch passes samples of the progress to the reporter until stop is called.
func (r *Monitor) Watch() (stop func()) {
	interval := r.Reporter.Interval()
	if interval == 0 {
		return func() {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.sample()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

func (r *Monitor) sample() {
	sample := r.Progress.Sample()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Reporter.Progress(sample)
}

// Failure returns the error of a copy that failed on this side, with what it has left behind.
func (r *Monitor) Failure(side negotiate.Side, err error) error {
	return &SideError{Side: side, Err: err, Kept: r.kept.Bytes, Lost: r.kept.Lost, Resumable: r.resumable()}
}

// resumable reports whether a copy of which this side has sent something may be resumed, as far as this side knows.
func (r *Monitor) resumable() bool {
	return r.native && r.planned.Sent && r.planned.Digest != digest.None && r.planned.Size != dmaxfer.Unknown &&
		r.Progress.Sample().Moved > 0
}
