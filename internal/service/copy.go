package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// keptItems are the items of a copy, from their ITEMS to the end of the copy.
type keptItems struct {
	list    []protocol.Item
	bytes   int64 // that they have of the memory budget
	refused error // why they are not kept, so that the copy cannot be made
}

// itemMemory is about what an item takes besides its text: here, and as a path or pattern of the copy.
const itemMemory = 128

func (k *keptItems) add(items []protocol.Item, budget *memoryBudget) {
	if k.refused != nil {
		return
	}
	var bytes int64
	for _, each := range items {
		bytes += itemMemory + int64(len(each.Text))
	}
	if err := budget.reserve(bytes); err != nil {
		k.release(budget)
		k.refused = err
		return
	}
	k.list, k.bytes = append(k.list, items...), k.bytes+bytes
}

// release lets go of the items.
func (k *keptItems) release(budget *memoryBudget) {
	budget.release(k.bytes)
	*k = keptItems{}
}

// copy answers a COPY: it waits for its permit, and makes the copy.
func (c *connection) copy(r protocol.CopyRequest) error {
	defer c.items.release(c.server.memory)
	record := Record{
		Operation: Push, Share: r.Place.Share, Path: r.Place.Path, Local: r.Local,
		DryRun: r.Flags.Has(protocol.CopyDryRun),
	}
	if r.Direction == protocol.CopyPull {
		record.Operation = Pull
	}
	return c.perform(record, func(record *Record) (failed, fatal error) {
		_, err := c.authorizeCopy(r) // a copy that is refused now need not wait for that
		if err = cmp.Or(c.items.refused, err); err != nil {
			return c.refuse(err)
		}
		return c.whenPermitted(record, func(releasePermit func()) (failed, fatal error) {
			side, err := c.prepare(r, c.items.list)
			if err != nil {
				return c.refuse(err)
			}
			defer side.close()
			defer func() { c.closeMirror(side.options.Mirror) }()
			failed, fatal = c.transfer(record, side, releasePermit)
			if fatal == nil && record.Summary.Tree != nil {
				c.keep(side)
			}
			return failed, fatal
		})
	})
}

// whenPermitted waits for a permit to transfer, and makes the transfer with it. The permit may be released before the
// end.
func (c *connection) whenPermitted(
	record *Record, transfer func(releasePermit func()) (failed, fatal error),
) (failed, fatal error) {
	permit, err := c.awaitPermit()
	if err != nil {
		return c.refuse(err)
	}
	release := sync.OnceFunc(permit.release)
	defer release()
	record.Waited = time.Since(record.Began)
	return transfer(release)
}

// neededFor returns the access to a share that a transfer in a direction needs.
func neededFor(d protocol.CopyDirection) share.Access {
	if d == protocol.CopyPull {
		return share.Read
	}
	return share.Write
}

// authorizeCopy returns the rights to a share for a copy.
func (c *connection) authorizeCopy(r protocol.CopyRequest) (rights, error) {
	given, err := c.authorize(r.Place.Share, neededFor(r.Direction))
	if err != nil {
		return rights{}, err
	}
	return given, given.permit(r)
}

// permit checks the options of a copy.
func (r rights) permit(c protocol.CopyRequest) error {
	name := quote.Text(r.Name)
	switch {
	case c.Flags.Has(protocol.CopyOverwrite) && !r.overwrite:
		return job.NewError(ErrRefused, nil, "leave out --overwrite; sync always replaces, so use push",
			"nothing may be replaced in share %s", name)
	case c.Flags.Has(protocol.CopyOwner) && !r.owner && c.Direction == protocol.CopyPush:
		return job.NewError(ErrRefused, nil, "leave out --preserve owner",
			"this key may not set the owner of files in share %s", name)
	case c.Flags.Has(protocol.CopyPrivileged) && !r.Privileged && c.Direction == protocol.CopyPush:
		return job.NewError(ErrRefused, nil,
			"use --preserve owner,xattr,links, or add the option privileged to the share",
			"nobody may set ACLs, capabilities or trusted attributes in share %s", name)
	case r.maxBytes > 0 && c.Size > uint64(r.maxBytes):
		return job.NewError(job.ErrLimit, nil, "have max-bytes raised on the daemon's side",
			"the file is too large for share %s: %s exceeds the limit of %s", name, quantity.Bytes(c.Size),
			quantity.Bytes(uint64(r.maxBytes)))
	}
	return nil
}

// awaitPermit waits for a permit to transfer. The wait ends when the server ends or the key loses its rights.
func (c *connection) awaitPermit() (*permit, error) {
	permit := c.server.permits.join(c.tenant())
	if permit.isGranted() {
		return permit, nil
	}
	c.setPermit(permit)
	defer c.setPermit(nil)
	return permit, c.whileWorking(c.between, permit.ahead, permit.wait)
}

func (c *connection) setPermit(t *permit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.permit = t
}

// tenant returns with whom this connection shares the permits to transfer: the other connections of its key or, as
// anybody can have any number of keys with --auth none, of its function.
func (c *connection) tenant() string {
	if c.server.config.AuthNone {
		return c.in.Function
	}
	return c.key.String()
}

// copySide is the daemon's side of a copy.
type copySide struct {
	rights
	in          *share.Opened // nil: not opened yet
	options     dmaxfer.Options
	use         job.Use
	accepted    protocol.Accepted
	listCommand string // lists the share
}

// close closes the share, which stays open for as long as a call that hangs uses it.
func (s *copySide) close() { _ = s.in.Close() } // it was only opened

// setCommon sets the options that every transfer of the connection has.
func (c *connection) setCommon(o *dmaxfer.Options) {
	if o.Side = c.in.Side; o.Side == wire.Server {
		o.Path = job.AnyPath // the settings of the network connection say what is permitted
	}
	o.Log = c.log.With().Uint64("request", c.requests).Logger()
	o.IdleTimeout = c.server.config.Limits.IdleTimeout
}

// prepare finds out what the daemon's side of a copy has to do. The caller closes the result.
func (c *connection) prepare(r protocol.CopyRequest, items []protocol.Item) (*copySide, error) {
	rights, err := c.authorizeCopy(r)
	if err != nil {
		return nil, err
	}
	side := &copySide{
		rights: rights, options: c.server.config.Copy, use: job.TargetUse, listCommand: c.listCommand(r.Place.Share),
	}
	o := &side.options
	c.setCommon(o)
	o.Limiters, o.MaxBytes, o.MaxEntries = rights.limiters, rights.maxBytes, rights.maxEntries
	o.Owner, o.Xattrs = r.Flags.Has(protocol.CopyOwner), r.Flags.Has(protocol.CopyXAttr)
	o.Privileged = r.Flags.Has(protocol.CopyPrivileged)
	o.HardLinks, o.DryRun = r.Flags.Has(protocol.CopyHardLinks), r.Flags.Has(protocol.CopyDryRun)
	o.SkipLeftovers = true // other copies into the share are at work
	if r.Flags.Has(protocol.CopyKeep) {
		o.Mirror = &tree.Mirror{}
	}
	return side, c.work(func(ctx context.Context, _ *job.Progress) (err error) {
		if side.in, err = c.server.open(rights); err != nil {
			return err
		}
		o.FS = side.in.FS()
		if r.Direction == protocol.CopyPull {
			err = side.source(r, items)
		} else {
			err = side.target(r)
		}
		if err = cmp.Or(err, context.Cause(ctx)); err != nil { // nobody may wait for it any more
			side.close()
		}
		return err
	})
}

// source prepares the daemon to send.
func (s *copySide) source(r protocol.CopyRequest, items []protocol.Item) error {
	at, err := cleanPath(r.Place.Path)
	if err != nil {
		return err
	}
	o := &s.options
	o.File, s.use = localName(at), job.SourceUse
	o.AllowChanging, o.Links = r.Flags.Has(protocol.CopyAllowChanging), linkModes[r.Links]
	s.accepted = protocol.Accepted{Path: at, Kind: protocol.CopyFile}
	if err := s.selectItems(items, r.Flags.Has(protocol.CopyOnly)); err != nil {
		return err
	}
	info, err := o.FS.Stat(o.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return job.NewError(job.ErrSource, err, fmt.Sprintf("run %q to see what there is", s.listCommand),
			"%s does not exist in share %s", at, s.Name)
	case err != nil:
		return disk.CannotStat(o.File, err)
	case info.Mode.IsDir():
		s.accepted.Kind = protocol.CopyTree
		state, err := disk.FindTree(o.FS, o.File)
		s.accepted.Unfinished = state == disk.TreeUnfinished
		return err
	case r.Flags.Has(protocol.CopyDirectory):
		return job.NewError(job.ErrSource, nil, "leave out /. at its end",
			"%s in share %s is not a directory", at, s.Name)
	case info.Mode.IsRegular():
		s.accepted.Size = uint64(max(0, info.Size))
		if o.MaxBytes > 0 && info.Size > o.MaxBytes {
			return job.OverLimit(o.File, info.Size, o.MaxBytes)
		}
	}
	return nil
}

var linkModes = map[protocol.CopyLinks]tree.LinkMode{
	protocol.CopyLinksAsLinks: tree.LinksCopy, protocol.CopyLinksFollow: tree.LinksFollow,
	protocol.CopyLinksSkip: tree.LinksSkip,
}

// selectItems sets which entries of a tree are sent.
func (s *copySide) selectItems(items []protocol.Item, only bool) error {
	var rules []tree.Rule
	if only {
		s.options.FilesFrom = []string{}
	}
	for _, each := range items {
		switch scope := &s.options.Scope; each.Kind {
		case protocol.ItemPath:
			s.options.FilesFrom = append(s.options.FilesFrom, each.Text)
		case protocol.ItemOneFileSystem:
			scope.OneFileSystem = true
		case protocol.ItemMinSize:
			scope.MinSize = each.Bound
		case protocol.ItemMaxSize:
			scope.MaxSize = each.Bound
		case protocol.ItemNewer:
			scope.Newer = time.Unix(0, each.Bound)
		case protocol.ItemOlder:
			scope.Older = time.Unix(0, each.Bound)
		default:
			rules = append(rules, tree.Rule{Include: each.Kind == protocol.ItemInclude, Pattern: each.Text})
		}
	}
	if rules == nil {
		return nil
	}
	filter, err := tree.NewFilter(rules)
	if err != nil {
		return job.NewError(job.ErrSettings, err, "correct the pattern", "%v", err)
	}
	s.options.Filter = filter
	return nil
}

// target prepares the daemon to receive.
func (s *copySide) target(r protocol.CopyRequest) error {
	at, err := cleanPath(r.Place.Path)
	if err != nil {
		return err
	}
	o := &s.options
	o.File, s.accepted.Path = localName(at), at
	o.Overwrite, o.Backup = r.Flags.Has(protocol.CopyOverwrite), r.Flags.Has(protocol.CopyBackup)
	o.IgnoreExisting, o.NoResume = r.Flags.Has(protocol.CopyIgnoreExisting), r.Flags.Has(protocol.CopyNoResume)
	o.MakePath = r.Flags.Has(protocol.CopyMakePath)
	o.HideContent = !s.Access.Allows(share.Read)
	return nil
}

// localName returns a clean path below a share as one of its file system.
func localName(at string) string {
	switch at {
	case "":
		return "."
	case job.StreamName:
		return "./" + at
	}
	return at
}

// transfer makes a copy to which nothing is to be objected. releasePermit lets another copy begin: it is called as soon
// as this side has ended, regardless of what the peer does.
func (c *connection) transfer(record *Record, side *copySide, releasePermit func()) (failed, fatal error) {
	progress := &job.Progress{}
	record.Path = side.accepted.Path
	c.mu.Lock()
	c.progress, c.request.Path = progress, record.Path
	c.mu.Unlock()
	side.options.Progress = progress
	err := c.send(func(s *protocol.Session, dst []byte) ([]byte, error) { return s.Accept(dst, side.accepted) })
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.running, func() {}
	if side.options.Measure > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, longestMeasurement, errLongMeasurement)
	}
	defer cancel()
	messages := newStream(ctx, c.exchange)
	record.Summary, failed = dmaxfer.RunLinked(ctx, side.options, dmaxfer.Link{
		Conn: messages, Memory: c.memory, Use: side.use,
	})
	releasePermit()
	record.keepPath()
	record.DryRun = record.DryRun || record.Summary.DryRun // the sides of a copy agree on it by themselves, too
	if failed != nil && !errors.Is(failed, job.ErrSomeFailed) {
		record.Summary = job.Summary{} // of what was planned
	}
	record.count(progress)
	if errors.Is(failed, job.ErrHung) {
		return failed, failed
	}
	return failed, messages.finish(failed)
}

// keepPath takes the data path from the summary, which does not stay if the copy has failed.
func (r *Record) keepPath() {
	if r.Summary.Protocol != 0 {
		r.DataPath, r.Encrypted = r.Summary.DataPath.String(), r.Summary.DataPath.Encrypts()
	}
}

// count sets how much was copied.
func (r *Record) count(progress *job.Progress) {
	switch {
	case r.DryRun:
	case r.Summary.Tree != nil:
		r.Bytes, r.Entries = r.Summary.Tree.Bytes, r.Summary.Tree.CopiedEntries()
	case r.Summary.Protocol != 0 && !r.Summary.UpToDate && !r.Summary.Existing:
		r.Bytes, r.Entries = r.Summary.Size-r.Summary.Resumed, 1
	default:
		sample := progress.Sample()
		r.Bytes, r.Entries = sample.Moved, sample.Files
	}
}
