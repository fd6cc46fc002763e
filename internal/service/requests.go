package service

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// perform makes the request that record describes, and reports it. do returns why the request failed, which the peer
// knows then, and what ends the connection.
func (c *connection) perform(record Record, do func(*Record) (failed, fatal error)) error {
	c.mu.Lock()
	c.requests++
	record.Session, record.Request, record.Began = c.info, c.requests, time.Now()
	running := record
	c.request = &running
	c.mu.Unlock()
	c.server.config.Observer.Began(record)
	failed, fatal := guarded(func() (error, error) { return do(&record) })
	c.performed(record, cmp.Or(failed, fatal))
	return fatal
}

// guarded returns a panic of a request as what ends the connection.
func guarded(do func() (failed, fatal error)) (failed, fatal error) {
	defer job.Recover(&fatal)
	return do()
}

// performed reports the end of a request.
func (c *connection) performed(record Record, err error) {
	c.mu.Lock()
	c.request, c.progress = nil, nil
	c.mu.Unlock()
	record.Duration, record.Err = time.Since(record.Began), err
	if said, is := errors.AsType[*native.PeerAborted](err); is {
		record.Err = said // without the state in which it came
	}
	if err != nil {
		record.Code = exit.Code(err)
	}
	c.server.count(func(t *Totals) {
		t.Requests++
		if err != nil {
			t.Failed++
		}
		if record.Transfers() {
			t.Bytes += record.Bytes
		}
	})
	c.server.config.Observer.Ended(record)
}

// refuse refuses the running request. After a call that hangs the connection ends: the call still uses what belongs to
// it.
func (c *connection) refuse(reason error) (failed, fatal error) {
	if errors.Is(reason, job.ErrHung) {
		return reason, reason
	}
	refusal := protocol.Refusal{Code: codeOf(reason), Text: reason.Error()}
	return reason, c.send(func(s *protocol.Session, dst []byte) ([]byte, error) { return s.Refuse(dst, refusal) })
}

func (c *connection) send(encode encoding) error { return c.exchange.send(c.running, encode) }

// workingInterval is the time between two signs of life.
const workingInterval = time.Second

// whileWorking makes a call during which the peer is told once a second that this side is at work, with the number of
// requests that ahead returns. The context of the call ends with ctx and with the connection.
func (c *connection) whileWorking(ctx context.Context, ahead func() int, call func(context.Context) error) error {
	ctx, stop := whileConnected(ctx, c.in.Conn)
	defer stop(nil)
	signs := make(chan error, 1)
	go func() {
		err := c.say(ctx, ahead)
		stop(err)
		signs <- err
	}()
	err := call(ctx)
	stop(nil)
	if said := <-signs; errors.Is(said, job.ErrHung) {
		return said
	}
	return err
}

// say sends a WORKING once a second until ctx ends. It returns why it could not, which may be a panic.
func (c *connection) say(ctx context.Context, ahead func() int) (err error) {
	defer job.Recover(&err)
	ticker := time.NewTicker(workingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		err := c.send(func(s *protocol.Session, dst []byte) ([]byte, error) {
			return s.Working(dst, uint32(ahead()))
		})
		if err != nil {
			return err
		}
	}
}

// work makes a call into a share, which may take long or hang. Without progress for the idle timeout it is given up;
// the error is then a job.ErrHung if the call has not returned, and what it uses must not be touched any more.
func (c *connection) work(call func(context.Context, *job.Progress) error) error {
	calls, progress := &job.Calls{}, &job.Progress{}
	calls.Slow = func(grace time.Duration) error {
		c.logStall(calls)
		return stalledShare(grace)
	}
	alone := func() int { return 0 }
	err := c.whileWorking(c.running, alone, func(ctx context.Context) error {
		return calls.Do(ctx, c.server.config.Limits.IdleTimeout, progress.Beat, func(ctx context.Context) error {
			return call(ctx, progress)
		})
	})
	if calls.Hung() {
		err = job.Hung(err)
	}
	return err
}

func stalledShare(grace time.Duration) error {
	return job.NewError(job.ErrIdle, nil, "check the file system of the share",
		"timeout: the share did not answer for %s", grace)
}

// list answers a LIST.
func (c *connection) list(r protocol.ListRequest) error {
	record := Record{Operation: List, Lookup: r.Flags.Has(protocol.ListItself)}
	c.recordPlace(&record, r.Place, r.Flags.Has(protocol.ListKept))
	return c.perform(record, func(record *Record) (failed, fatal error) {
		l := &lister{connection: c, kept: c.kept, identify: r.Flags.Has(protocol.ListIdentify)}
		err := c.work(func(ctx context.Context, progress *job.Progress) error {
			l.progress = progress
			return l.list(ctx, r)
		})
		if errors.Is(err, job.ErrHung) {
			return c.refuse(err)
		}
		record.Entries = int64(l.sent)
		if l.broken != nil {
			return nil, l.broken
		}
		if err = cmp.Or(err, l.left); err != nil && l.sent == 0 {
			failed, fatal = c.refuse(err)
			if l.absent {
				failed = nil
			}
			return failed, fatal
		}
		code, text := wire.AbortCode(0), ""
		if err != nil {
			code, text = codeOf(err), err.Error()
		}
		return err, c.send(func(s *protocol.Session, dst []byte) ([]byte, error) { return s.ListEnd(dst, code, text) })
	})
}

// lister sends the entries of one list.
type lister struct {
	*connection
	progress *job.Progress
	kept     *keptDirectory
	identify bool
	batch    []protocol.Listed
	sent     uint32
	absent   bool  // a lookup has found that there is no entry
	left     error // why the first entry that was left out was
	broken   error // why nothing more can be sent
}

// listBatch is how many entries are collected before they are sent.
const listBatch = 64

func (l *lister) list(ctx context.Context, r protocol.ListRequest) error {
	add := func(e share.Entry) error { return l.add(ctx, e) }
	if r.Place.Share == "" {
		return l.finish(ctx, l.listShares(add))
	}
	in, at, err := l.openPlace(r.Place, share.Read)
	if err != nil {
		return err
	}
	defer in.Close()
	opened := in
	if r.Flags.Has(protocol.ListKept) {
		if opened, at, err = l.kept.use(in, at); err != nil {
			return err
		}
		defer l.kept.using.RUnlock()
	}
	options := share.ListOptions{
		Recursive: r.Flags.Has(protocol.ListRecursive), All: r.Flags.Has(protocol.ListAll),
	}
	if !r.Flags.Has(protocol.ListItself) {
		return l.finish(ctx, opened.List(ctx, at, options, add))
	}
	entry, err := opened.Stat(at, options)
	if err != nil {
		l.absent = errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
		return err
	}
	return l.finish(ctx, add(entry))
}

// listShares lists the shares that the key may use, as entries of a directory.
func (l *lister) listShares(add func(share.Entry) error) error {
	shares, err := l.server.visibleShares(l.key)
	if err != nil {
		return err
	}
	slices.SortFunc(shares, func(a, b share.Share) int { return cmp.Compare(a.Name, b.Name) })
	err = add(share.Entry{Kind: wire.EntryDirectory})
	for _, each := range shares {
		if err == nil {
			err = add(share.Entry{
				Kind: wire.EntryDirectory, Depth: 1, Path: each.Name, Mode: modeOf(each.Access),
			})
		}
	}
	return err
}

// modeOf returns how a list shows access to a share.
func modeOf(a share.Access) (mode uint32) {
	if a.Allows(share.Read) {
		mode |= 0o400
	}
	if a.Allows(share.Write) {
		mode |= 0o200
	}
	return mode
}

// add sends an entry when there are enough for a message.
func (l *lister) add(ctx context.Context, e share.Entry) error {
	l.progress.Touch()
	listed := protocol.Listed{
		Kind: e.Kind, Depth: e.Depth, Mode: e.Mode, MTime: wire.Timestamp(e.Modified),
		Size: uint64(max(0, e.Size)), Name: e.Name(), Link: e.Link, Mounted: e.Mounted,
	}
	if l.identify {
		listed.File = uint32(e.File)
	}
	l.batch = append(l.batch, listed)
	if len(l.batch) < listBatch {
		return nil
	}
	return l.flush(ctx)
}

// finish sends the rest. err is why the list ends before its end.
func (l *lister) finish(ctx context.Context, err error) error {
	if l.broken != nil || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, l.flush(ctx))
}

// flush sends all entries but for those that no message can carry.
func (l *lister) flush(ctx context.Context) error {
	for len(l.batch) > 0 {
		used := 0
		err := l.exchange.send(ctx, func(s *protocol.Session, dst []byte) (message []byte, err error) {
			message, used, err = s.Listed(dst, l.batch)
			return message, err
		})
		l.progress.Touch()
		switch {
		case err == nil:
			l.sent += uint32(used)
		case errors.Is(err, wire.ErrTooLarge) && used == 0:
			used, l.left = 1, cmp.Or(l.left, cannotSend(l.batch[0], err))
		default:
			l.broken = err
			return err
		}
		l.batch = l.batch[used:]
	}
	l.batch = l.batch[:0]
	return nil
}

// cannotSend returns the error for an entry that no message can carry.
func cannotSend(e protocol.Listed, err error) error {
	what := "the symlink"
	if e.Name != "" {
		what = "symlink " + quote.Text(e.Name)
	}
	return job.NewError(job.ErrLimit, err, "shorten the link",
		"cannot list %s: its text has %d bytes, more than a message can carry", what, len(e.Link))
}

// openPlace opens the share of a place if the key may use it like that, and returns it with the path in it. The caller
// closes the share.
func (c *connection) openPlace(p protocol.Place, needed share.Access) (in *share.Opened, at string, err error) {
	rights, err := c.authorize(p.Share, needed)
	if err != nil {
		return nil, "", err
	}
	if at, err = cleanPath(p.Path); err != nil {
		return nil, "", err
	}
	in, err = c.server.open(rights)
	return in, at, err
}

// cleanPath returns a path of the peer as package share takes it.
func cleanPath(path string) (string, error) {
	cleaned, err := share.CleanPath(path)
	if err != nil {
		return "", job.NewError(ErrRefused, err, err.Error(), "cannot use the path %s", quote.Text(path))
	}
	return cleaned, nil
}

// remove answers a REMOVE.
func (c *connection) remove(r protocol.RemoveRequest) error {
	record := Record{Operation: Remove}
	c.recordPlace(&record, r.Place, r.Kept)
	return c.perform(record, func(record *Record) (failed, fatal error) {
		var done removals
		kept := c.kept
		err := c.work(func(ctx context.Context, progress *job.Progress) error {
			return c.removeAll(ctx, r, kept, progress, &done)
		})
		record.Removed = done.paths() // also of a request that failed
		record.Entries = int64(len(record.Removed))
		if err != nil {
			return c.refuse(err)
		}
		return done.failed, c.send(func(s *protocol.Session, dst []byte) ([]byte, error) {
			return s.Removed(dst, done.results)
		})
	})
}

// removals are what a REMOVE has come to.
type removals struct {
	results []protocol.Removal
	failed  error // the first failure

	mu      sync.Mutex // guards removed, which is also read while a removal hangs
	removed []string   // what was there before
}

func (d *removals) paths() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.removed)
}

// add appends the result for a path, which is a success if nothing was there.
func (d *removals) add(path string, err error) {
	switch {
	case err == nil:
		d.mu.Lock()
		d.removed = append(d.removed, path)
		d.mu.Unlock()
	case !errors.Is(err, fs.ErrNotExist):
		d.failed = cmp.Or(d.failed, err)
		d.results = append(d.results, protocol.Removal{Code: codeOf(err), Text: err.Error()})
		return
	}
	d.results = append(d.results, protocol.Removal{})
}

// removeAll removes everything that the key may remove.
func (c *connection) removeAll(
	ctx context.Context, r protocol.RemoveRequest, kept *keptDirectory, progress *job.Progress, done *removals,
) error {
	in, below, err := c.openPlace(r.Place, share.Write)
	if err != nil {
		return err
	}
	defer in.Close()
	opened := in
	if r.Kept {
		if opened, below, err = kept.use(in, below); err != nil {
			return err
		}
		defer kept.using.RUnlock()
	}
	remover, err := opened.Remover(below)
	if err != nil {
		return err
	}
	defer remover.Close()
	for _, each := range r.Paths {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		at, err := cleanPath(each)
		switch {
		case err != nil:
		case r.Files:
			err = removeFile(remover, at)
		case r.Aside:
			err = remover.SetAside(at)
		default:
			err = remover.Remove(at)
		}
		done.add(each, err)
		progress.Touch()
	}
	return nil
}

// removeFile removes what must exist, and must not be a directory.
func removeFile(r *share.Remover, at string) error {
	err := r.RemoveFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return job.NewError(job.ErrSource, nil, "check the path", "%s does not exist", at)
	}
	return err
}

// makeDir answers a MKDIR.
func (c *connection) makeDir(r protocol.MakeDirRequest) error {
	record := Record{Operation: Mkdir, Share: r.Place.Share, Path: r.Place.Path}
	return c.perform(record, func(record *Record) (failed, fatal error) {
		err := c.work(func(context.Context, *job.Progress) error { return c.makeIn(r) })
		if err != nil {
			return c.refuse(err)
		}
		record.Entries = 1
		return nil, c.send(func(s *protocol.Session, dst []byte) ([]byte, error) { return s.Made(dst) })
	})
}

// makeIn creates the directory if the key may do that.
func (c *connection) makeIn(r protocol.MakeDirRequest) error {
	in, at, err := c.openPlace(r.Place, share.Write)
	if err != nil {
		return err
	}
	defer in.Close()
	return in.MakeDir(at, r.Parents)
}

// errOnlyControl is the answer to a PING that offers a consumer.
var errOnlyControl = job.NewError(job.ErrCapability, wire.ErrNoPath, "leave out --path",
	"a daemon answers pings over the control channel only")

// pong answers a PING.
func (c *connection) pong(p protocol.Ping) error {
	switch p.Kind {
	case protocol.PingBytes:
		c.server.count(func(t *Totals) { t.Requests++ })
		return c.send(func(s *protocol.Session, dst []byte) ([]byte, error) { return s.Pong(dst, p.Payload) })
	case protocol.PingConsumer:
		_, fatal := c.refuse(errOnlyControl)
		return fatal
	}
	record := Record{Operation: Ping, Text: string(p.Payload)}
	return c.perform(record, func(record *Record) (failed, fatal error) {
		record.Bytes = int64(len(record.Text))
		answer := []byte(c.server.config.Text)
		return nil, c.send(func(s *protocol.Session, dst []byte) ([]byte, error) { return s.Pong(dst, answer) })
	})
}
