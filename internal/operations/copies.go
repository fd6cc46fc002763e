// Package operations copies between this side and the shares of a daemon, and makes directories the same.
package operations

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/share"
)

// errDurationLimit is the cause of a context that --max-duration has ended.
var errDurationLimit = exit.Errorf(exit.Limit, "raise --max-duration", "stopped by --max-duration")

// Copies are copies between this side and the shares of one daemon, one after another.
type Copies struct {
	*connect.Conn
	Sends    bool            // this side has the sources
	Options  dmaxfer.Options // of every copy, without what differs
	Rules    []tree.Rule     // that Options.Filter was made of
	Reporter report.Reporter
	Asked    report.Asked     // what the copies were asked for
	Requests <-chan os.Signal // each has the reporter say how far a copy is; nil: none
	Log      zerolog.Logger
	Guards

	Total report.Total // of the copies so far

	mirror  *tree.Mirror // of the last copy, if what the source lacks is to be deleted
	before  int64        // entries that its target had before the copy; 0: not counted
	summary job.Summary  // of the last copy
}

// Guards keep Mirror from deleting what nobody has meant.
type Guards struct {
	Force     bool // delete everything there is to delete, without a question
	MaxDelete int  // entries; 0 is no limit

	// Confirm asks the user, and calls keepAlive until the answer is there; nil: nobody is asked.
	Confirm func(ctx context.Context, question string, keepAlive func() error) (bool, error)
}

// Ends are both ends of one copy.
type Ends struct {
	Local     string
	Remote    share.Remote
	Directory bool // the source is meant by its content, so it has to be a directory
}

// CopyAll makes the copies. It goes on after a source that failed, unless --fail-fast was given or nothing else could
// succeed.
func (t *Copies) CopyAll(ctx context.Context, all []Ends) error {
	var failures []error
	for _, each := range all {
		err := t.copy(ctx, each)
		switch {
		case err == nil:
		case len(all) == 1:
			return err
		case t.Options.FailFast || report.Unfinished(err):
			return err
		default:
			failures = append(failures, err)
			t.Reporter.SourceFailed(err)
		}
	}
	return report.SomeSources(len(all), failures)
}

// copy makes one copy and reports its result.
func (t *Copies) copy(ctx context.Context, e Ends) error {
	monitor := report.NewMonitor(t.Reporter, t.Asked)
	at := t.Path
	at.File, at.Remote = e.Local, e.Remote.String()
	monitor.Begin(at)
	options := t.Options
	options.File, options.Mirror = e.Local, t.mirror
	request := func(ctx context.Context, o dmaxfer.Options) (job.Summary, error) {
		return t.request(ctx, e, o, connect.PathForPeers(e.Local))
	}
	summary, err := Transfer(ctx, monitor, t.Requests, options, request)
	t.summary = summary
	t.Total.Add(summary, err)
	return monitor.Conclude(summary, err)
}

// request pushes or pulls. local is what the daemon is told of this side.
func (t *Copies) request(
	ctx context.Context, e Ends, o dmaxfer.Options, local string,
) (job.Summary, error) {
	r := service.CopyRequest{Options: o, Place: connect.PlaceOf(e.Remote), Local: local, Daemon: e.Remote}
	if t.Sends {
		return t.Client.Push(ctx, r)
	}
	r.Directory, r.Rules = e.Directory, t.Rules
	return t.Client.Pull(ctx, r)
}

// Transfer makes the copy, within --max-duration, and lets the monitor sample its progress, which
// each signal of asked has it report.
func Transfer(
	ctx context.Context, r *report.Monitor, asked <-chan os.Signal, o dmaxfer.Options,
	run func(context.Context, dmaxfer.Options) (job.Summary, error),
) (job.Summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.Progress = &r.Progress
	o.Notify = func(e job.Event) {
		if _, met := e.(job.PeerKnown); met {
			startLimit(ctx, cancel, o.MaxDuration)
		}
		r.Event(e)
	}
	stop := r.Watch(asked)
	defer stop()
	return run(ctx, o)
}

// startLimit cancels the copy after limit; 0 is no limit.
func startLimit(ctx context.Context, cancel context.CancelCauseFunc, limit time.Duration) {
	if limit == 0 {
		return
	}
	timer := time.AfterFunc(limit, func() { cancel(fmt.Errorf("%w after %s", errDurationLimit, limit)) })
	context.AfterFunc(ctx, func() { timer.Stop() })
}
