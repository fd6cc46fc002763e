// Package probe tries what this program assumes of hardware and driver, and that only documents say so far.
//
//	Run ── each assumption of the register (register.go) ── its probe ──► Result
//	  └── exchange.Conversation: the DPU makes the probes that need both sides (peer.go), the host serves it (serve.go)
//
// A probe writes nothing but its own memory. A refusal or a fault of the device is the finding of a probe, and memory
// that the device may still use is never freed. The package must not decide what a finding means for an exit code.
package probe

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exchange"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// The times of the probes: of all together, once the peer is there; of one of them; of what is expected to happen in
// one, such as that the end of a peer shows; and the time that a call into the device has to return after its probe.
const (
	allTime    = 40 * time.Second
	probeTime  = 8 * time.Second
	noticeTime = 4 * time.Second
	returnTime = 4 * time.Second
)

// Options describe one side.
type Options struct {
	Side        negotiate.Side
	Device      *doca.Device
	Representor string        // on the DPU: the host function to serve
	Peer        bool          // also make the probes that need both sides
	Wait        time.Duration // for the peer
	Met         func()        // called when it is there; nil: not wanted
	Log         zerolog.Logger

	// Victim returns a process that calls Victim, to be killed, and ends with its standard input; nil: deaths are not
	// tried.
	Victim func() *exec.Cmd
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

func (a *assumption) result(found string, err error) Result {
	r := Result{a.name, AsAssumed, found, "", a.claim, a.where, a.source}
	if differs, is := errors.AsType[*difference](err); is {
		r.Verdict, r.Found, r.Means = Differs, differs.text, a.means
	} else if err != nil {
		r.Verdict, r.Found = NotTried, err.Error()
	}
	r.Found = quote.Printable(r.Found)
	return r
}

// difference is the error of a probe that has found something else than was assumed. Any other error is why it could
// not be tried.
type difference struct{ text string }

func (d *difference) Error() string { return d.text }

func differs(format string, args ...any) error { return &difference{fmt.Sprintf(format, args...)} }

// at says where a difference was found; other errors stay.
func at(err error, format string, args ...any) error {
	if found, is := errors.AsType[*difference](err); is {
		return differs("%s: %s", fmt.Sprintf(format, args...), found)
	}
	return err
}

// errSkipped is why a probe is not tried although its side and its peer are there.
var errSkipped = errors.New("a call of an earlier probe has not returned")

// run is one run of the probes of a side.
type run struct {
	Options
	peer    *exchange.Conversation // nil: not there
	results []Result
	hung    error
}

// Run makes the probes of this side, and with Peer those that need both, of which each side has the results. The error,
// with which results are complete, too, is that of the meeting with the peer; with job.ErrHung a call into the device
// did not return, and the device must not be closed.
func Run(ctx context.Context, o Options) ([]Result, error) {
	r := &run{Options: o}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.probe(ctx, func(a *assumption) bool { return !a.together && a.runsOn(o.Side) })
	if !o.Peer || r.hung != nil {
		return r.results, r.hung
	}
	err := r.meet(ctx)
	missing := err
	if r.peer == nil {
		missing = errors.New("the other side did not run this command")
	}
	for i := range register { // those that meet has no results of
		if register[i].together && !r.has(register[i].name) {
			r.results = append(r.results, register[i].result("", missing))
		}
	}
	if r.hung != nil {
		err = job.Hung(err)
	}
	return r.results, err
}

func (r *run) has(name string) bool {
	for i := range r.results {
		if r.results[i].Name == name {
			return true
		}
	}
	return false
}

// probe makes the chosen probes.
func (r *run) probe(ctx context.Context, chosen func(*assumption) bool) {
	limit := time.Now().Add(allTime)
	for i := range register {
		a := &register[i]
		if !chosen(a) {
			continue
		}
		found, err := "", fmt.Errorf("the probes before took %s", allTime)
		if time.Now().Before(limit) {
			found, err = r.try(ctx, a)
		}
		result := a.result(found, err)
		r.Log.Info().Str("probe", a.name).Str("verdict", string(result.Verdict)).Str("found", result.Found).Msg("probe")
		r.results = append(r.results, result)
	}
}

// try makes one probe.
func (r *run) try(ctx context.Context, a *assumption) (string, error) {
	patience := probeTime + returnTime
	if a.together {
		patience += probeTime + returnTime // of the answer of the host, which the conversation has to have
	}
	return r.guarded(ctx, patience, func(limited context.Context) (string, error) {
		t := &trial{run: r, base: ctx, ctx: limited}
		found, err := a.probe(t)
		failed := t.close()
		if a.together && failed == nil {
			_, failed = r.peer.Ask(ctx, "end")
		}
		if failed != nil {
			err = differs("%s; then not all that was in use was released: %s", a.result(found, err).Found, failed)
		}
		return found, err
	})
}

// guarded makes a call, for probeTime, in a goroutine of its own, which a device that hangs for the patience may keep.
func (r *run) guarded(
	ctx context.Context, patience time.Duration, call func(context.Context) (string, error),
) (string, error) {
	if r.hung != nil {
		return "", errSkipped
	}
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, fmt.Errorf("it took more than %s", probeTime))
	defer cancel()
	type outcome struct {
		text string
		err  error
	}
	ended := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() { ended <- o }()
		defer job.Recover(&o.err)
		o.text, o.err = call(ctx)
	}()
	select {
	case o := <-ended:
		if defect := job.DefectIn(o.err); defect != nil {
			r.hung, o.err = o.err, differs("%s", defect)
		}
		return o.text, o.err
	case <-time.After(patience):
		r.hung = job.ErrHung
		return "", differs("a call into the device did not return")
	}
}

// trial is one probe while it runs.
type trial struct {
	*run
	base context.Context // of the run
	ctx  context.Context // of this probe
	used []func() error  // to be closed, the last first
}

// use has something closed when the probe ends.
func (t *trial) use(end func() error) { t.used = append(t.used, end) }

// close ends with the first failure: what is below may still be in use by the device, and stays.
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
