package main

import (
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// follower tells somebody of a run: a person by text, or a program by JSON lines. It is called by one goroutine at a time.
type follower interface {
	// begins says by what means the copy is about to be made.
	begins(by means)

	// hears takes what happens in the copy.
	hears(e dmaxfer.Event)

	// looks takes how far the copy is, each interval; an interval of 0 is for who does not want to know.
	looks(s dmaxfer.Sample)
	interval() time.Duration

	// succeeds and fails end it. What succeeds returns is that the news could not be delivered.
	succeeds(s dmaxfer.Summary) error
	fails(err error)
}

// newFollower returns the follower that the settings ask for. Events go to stdout, unless that may be where the file's
// bytes go; text goes to stderr, whose screen is nil if it is no terminal that can move its cursor.
func newFollower(stdout, stderr io.Writer, screen *screen, s config.Copy, log zerolog.Logger) follower {
	switch {
	case s.Output != config.OutputJSON:
		return newPerson(stderr, screen, s, log)
	case s.IsStream():
		return newProgram(stderr, s, log)
	default:
		return newProgram(stdout, s, log)
	}
}

// means are what a copy is made with on this side.
type means struct {
	software string // this program, as other programs are told
	side     negotiate.Side
	device   string // PCI address
	driver   string // as people call it
	hardware bool
	why      string // this driver; empty if the user has chosen it
}

// reporter keeps one follower informed and remembers what a failure needs to be explained.
type reporter struct {
	settings config.Copy
	progress dmaxfer.Progress

	mu       sync.Mutex
	follower follower
	native   bool
	planned  dmaxfer.Planned
	kept     dmaxfer.Kept // what this side's failed copy has left
}

func newReporter(to follower, s config.Copy) *reporter { return &reporter{follower: to, settings: s} }

// hear is for dmaxfer.Options.Notify.
func (r *reporter) hear(e dmaxfer.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := e.(type) {
	case dmaxfer.PeerKnown:
		r.native = e.Protocol == negotiate.Native
		r.follower.hears(e)
		r.warnOfReference()
		return
	case dmaxfer.Planned:
		r.planned = e
		r.follower.hears(e)
		r.warnOfReadback()
		return
	case dmaxfer.Kept:
		r.kept = e
		return
	}
	r.follower.hears(e)
}

// warnOfReference says what the user will not get from a peer that is not asked for it.
func (r *reporter) warnOfReference() {
	if missed := r.settings.BeyondReference(); !r.native && len(missed) > 0 {
		verb := "have"
		if len(missed) == 1 {
			verb = "has"
		}
		text := "the copy uses the reference protocol, where " + phrase.And(missed) + " " + verb + " no effect"
		r.follower.hears(dmaxfer.Warned{Text: text})
	}
}

// warnOfReadback says that there is nothing to compare what would be read back with. It takes both sides to ask for that.
func (r *reporter) warnOfReadback() {
	if r.native && r.settings.Verify == config.VerifyReadback && r.planned.Digest == digest.None {
		r.follower.hears(dmaxfer.Warned{Text: "--verify readback compares nothing, because both sides use --digest none"})
	}
}

// watch lets the follower look at the progress until the returned function is called.
func (r *reporter) watch() (stop func()) {
	interval := r.follower.interval()
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
				r.look()
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

func (r *reporter) look() {
	sample := r.progress.Sample()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follower.looks(sample)
}

// resumable tells whether a copy that this side has sent something of may be gone on with, as far as this side knows.
func (r *reporter) resumable() bool {
	return r.native && r.planned.Sent && r.planned.Digest != digest.None && r.planned.Size != dmaxfer.Unknown &&
		r.progress.Sample().Moved > 0
}
