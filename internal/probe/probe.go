// Package probe tries what this program assumes of hardware and driver, and that only documents say so far.
//
//	Run ── each assumption of the register (register.go) ── its probe ──► Result
//	  └── ping.Conversation: the DPU makes the probes of both sides (peer.go), the host serves it (serve.go)
//
// A probe writes nothing but its own memory. A refusal or a fault of the device is the finding of a probe, and memory
// that the device may still use is never freed. The package must not decide what a finding means for an exit code.
package probe

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/ping"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// The times of the probes. A call that takes twice as long has hung, which must not be said of a slow host.
const (
	allTime    = 30 * time.Second           // after which no probe begins, on one side or on both
	probeTime  = 14 * time.Second           // one probe
	answerTime = 6 * time.Second            // the host's work for a question
	askTime    = 2*answerTime + time.Second // a question and its whole answer
	noticeTime = 4 * time.Second            // until an event shows, such as the end of a peer
)

// Options describe one side.
type Options struct {
	Side        wire.Side
	Device      *doca.Device
	Representor string        // on the DPU: the host function to serve
	Peer        bool          // also make the probes that need both sides
	Wait        time.Duration // for the peer
	Met         func()        // called when it is there; nil: not wanted
	Log         zerolog.Logger

	// Child returns a process that calls Child, to be killed, and ends with its standard input. Not nil with Peer.
	Child func() *exec.Cmd
}

// Verdict is the outcome of a probe.
type Verdict string

// The verdicts.
const (
	AsAssumed Verdict = "as assumed"
	Differs   Verdict = "differs"
	NotTried  Verdict = "could not be tried"
)

// Result is what a probe has found about one assumption.
type Result struct {
	Name       string  `json:"name"`
	Verdict    Verdict `json:"verdict"`
	Found      string  `json:"found"`           // what happened, or why it could not be tried
	Means      string  `json:"means,omitempty"` // for copies, if it differs
	Assumption string  `json:"assumption"`
	Where      string  `json:"where"`  // packages that assume it
	Source     string  `json:"source"` // the document
}

func (a *assumption) result(verdict Verdict, found string) Result {
	r := Result{a.name, verdict, quote.Printable(found), "", a.claim, a.where, a.source}
	if verdict == Differs {
		r.Means = a.means
	}
	return r
}

// run is one run of the probes of a side.
type run struct {
	Options
	peer    *ping.Conversation // nil: not there
	asking  sync.Mutex         // while a probe uses the conversation
	lost    error              // the end of the conversation
	results []Result
	hung    error
}

// Run makes the probes of this side, and with Peer the probes that need both; each side has their results. An error is
// about the meeting with the peer, and the results are complete all the same. With job.ErrHung a call into the device
// did not return, and the device must not be closed.
func Run(ctx context.Context, o Options) ([]Result, error) {
	r := &run{Options: o}
	r.probe(ctx, func(a *assumption) bool { return a.runsOn(o.Side) })
	if !o.Peer || r.hung != nil {
		return r.results, r.hung
	}
	err := r.meet(ctx)
	r.complete(err)
	if r.hung != nil {
		err = job.Hung(err)
	}
	return r.results, err
}

// complete adds the probes of both sides that meet has no results of. err is the error of meet.
func (r *run) complete(err error) {
	missing := "the DPU sent no result for this"
	if r.peer == nil {
		missing = "the other side did not run this command"
	} else if err != nil {
		missing = err.Error()
	}
	for i := range register {
		a := &register[i]
		if a.needsBoth() && !slices.ContainsFunc(r.results, func(r Result) bool { return r.Name == a.name }) {
			r.results = append(r.results, a.result(NotTried, missing))
		}
	}
}

// probe makes the chosen probes.
func (r *run) probe(ctx context.Context, chosen func(*assumption) bool) {
	limit := time.Now().Add(allTime)
	for i := range register {
		a := &register[i]
		if !chosen(a) {
			continue
		}
		result := a.result(NotTried, fmt.Sprintf("the probes before took %s", allTime))
		if time.Now().Before(limit) {
			result = a.result(r.try(ctx, a))
		}
		r.Log.Info().Str("probe", a.name).Str("verdict", string(result.Verdict)).Str("found", result.Found).Msg("probe")
		r.results = append(r.results, result)
	}
}

// try makes one probe, and then releases its resources on both sides.
func (r *run) try(ctx context.Context, a *assumption) (Verdict, string) {
	t := &trial{run: r, base: ctx}
	found, err := t.guarded(ctx, probeTime, func() string { return a.probe(t) })
	_, failed := t.guarded(ctx, probeTime, func() string {
		t.need(t.close())
		if a.needsBoth() {
			t.ask("end")
		}
		return ""
	})
	switch different, is := errors.AsType[*difference](err); {
	case ctx.Err() != nil: // which may be the only reason for a difference
		return NotTried, context.Cause(ctx).Error()
	case is:
		return Differs, different.text
	case err == nil && failed != nil:
		return Differs, found + "; then not all that was in use was released: " + failed.Error()
	case err != nil:
		return NotTried, err.Error()
	}
	return AsAssumed, found
}

// trial is one probe while it runs. Its methods need and check, and those that use them, end the goroutine's call.
type trial struct {
	*run
	base context.Context // of the run
	ctx  context.Context // of this probe
	used []func() error  // to be closed, the last first
}

// stop is the panic by which a probe ends. A *difference is a finding, any other error why it could not be tried.
type stop struct{ err error }

type difference struct{ text string }

func (d *difference) Error() string { return d.text }

// differs ends the probe with a finding.
func (t *trial) differs(format string, args ...any) {
	panic(stop{&difference{fmt.Sprintf(format, args...)}})
}

// check ends the probe with a finding if there is an error: its first line.
func (t *trial) check(err error) {
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		t.differs("%s", line)
	}
}

// need ends the probe as one that could not be tried if there is an error.
func (t *trial) need(err error) {
	if err != nil {
		panic(stop{err})
	}
}

// guarded makes a call in a goroutine of its own, which a device that hangs may keep.
func (t *trial) guarded(ctx context.Context, limit time.Duration, call func() string) (string, error) {
	if t.hung != nil {
		return "", errors.New("a call of an earlier probe has not returned")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %s", limit))
	defer cancel()
	t.ctx = ctx
	var text string
	ended := make(chan error, 1)
	go func() {
		var err error
		defer func() { ended <- err }()
		defer job.Recover(&err)
		text = call()
	}()
	var err error
	select {
	case err = <-ended:
	case <-time.After(2 * limit):
		t.hung = job.ErrHung
		return "", &difference{"a call into the device did not return"}
	}
	defect := job.DefectIn(err)
	if defect == nil {
		return text, err
	}
	if stopped, is := defect.Value.(stop); is {
		return "", stopped.err
	}
	t.hung = err
	return "", &difference{err.Error()}
}

// use has something closed when the probe ends.
func (t *trial) use(end func() error) { t.used = append(t.used, end) }

// close ends with the first failure: the device may still use memory that was opened before, which stays.
func (t *trial) close() error {
	for len(t.used) > 0 {
		last := len(t.used) - 1
		if err := t.used[last](); err != nil {
			return err
		}
		t.used = t.used[:last]
	}
	return nil
}
