package service

import (
	"context"
	"errors"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/share"
)

// CopyRequest is one copy between this machine and a share.
type CopyRequest struct {
	// Options are the options of the copy, as the user gave them for both sides. File is the source of a push or the
	// target of a pull, "-" for standard input or output. Overwrite, IgnoreExisting, MakePath, Backup, NoResume,
	// AllowChanging, Links, Filter, Scope and FilesFrom are about one of the sides, which may be the daemon's.
	Options dmaxfer.Options

	Place     protocol.Place // of the target of a push, or of the source of a pull
	Directory bool           // the source of a pull has to be a directory
	Local     string         // absolute path of Options.File, for the daemon's user; empty: it is not told
	Daemon    share.Remote   // its Peer or Address, as the user gave it, for messages; the rest is not used

	// Rules are for a pull those that Options.Filter was made of, in their order.
	Rules []tree.Rule
}

// nameOf returns what the user calls a path in the share.
func (r CopyRequest) nameOf(path string) string {
	return share.Remote{
		Peer: r.Daemon.Peer, Address: r.Daemon.Address, Share: r.Place.Share, Path: path,
	}.String()
}

// Push copies from this machine to a share. It returns the errors of dmaxfer.RunLinked, a *protocol.Refusal if the
// daemon refuses the copy, and the errors of a lost connection.
func (c *Client) Push(ctx context.Context, r CopyRequest) (job.Summary, error) {
	request := protocol.CopyRequest{
		Direction: protocol.CopyPush, Place: r.Place, Flags: pushFlags(r.Options) | commonFlags(r.Options),
	}
	var err error
	if request.Kind, request.Size, err = source(ctx, r.Options); err != nil {
		return job.Summary{}, err
	}
	return c.copy(ctx, request, nil, r, job.SourceUse)
}

// source returns what is to be sent. The size of a stream is 0.
func source(ctx context.Context, o dmaxfer.Options) (protocol.CopyKind, uint64, error) {
	if o.File == job.StreamName {
		return protocol.CopyStream, 0, nil
	}
	fs := o.FS
	if fs == nil {
		fs = disk.OS
	}
	info, err := fs.Stat(o.File)
	switch {
	case err == nil && info.Mode.IsDir():
		return protocol.CopyTree, 0, nil
	case err == nil && info.Mode.IsRegular():
		return protocol.CopyFile, min(uint64(max(0, info.Size)), wire.MaxSize), nil
	}
	file, err := job.Find(ctx, job.Search{FS: fs, Path: o.File, Use: job.SourceUse, IdleTimeout: o.IdleTimeout})
	if err != nil {
		return 0, 0, err // in the words of a copy
	}
	file.Close()
	return protocol.CopyStream, 0, nil
}

// pushFlags returns the flags that only the COPY of a push has.
func pushFlags(o dmaxfer.Options) protocol.CopyFlags {
	return flag(o.Overwrite, protocol.CopyOverwrite) | flag(o.Backup, protocol.CopyBackup) |
		flag(o.NoResume, protocol.CopyNoResume) | flag(o.MakePath, protocol.CopyMakePath) |
		flag(o.IgnoreExisting, protocol.CopyIgnoreExisting)
}

func commonFlags(o dmaxfer.Options) protocol.CopyFlags {
	return flag(o.Owner, protocol.CopyOwner) | flag(o.Xattrs, protocol.CopyXAttr) |
		flag(o.Xattrs && o.Privileged, protocol.CopyPrivileged) |
		flag(o.HardLinks, protocol.CopyHardLinks) | flag(o.DryRun, protocol.CopyDryRun) |
		flag(o.Mirror != nil, protocol.CopyKeep)
}

func flag(set bool, f protocol.CopyFlags) protocol.CopyFlags {
	if set {
		return f
	}
	return 0
}

// Pull copies from a share to this machine. It returns the errors of Push.
func (c *Client) Pull(ctx context.Context, r CopyRequest) (job.Summary, error) {
	request := protocol.CopyRequest{
		Direction: protocol.CopyPull, Place: r.Place, Links: linkChoices[r.Options.Links],
		Flags: commonFlags(r.Options) | flag(r.Options.AllowChanging, protocol.CopyAllowChanging) |
			flag(r.Options.FilesFrom != nil, protocol.CopyOnly) | flag(r.Directory, protocol.CopyDirectory),
	}
	if r.Options.File == job.StreamName {
		request.Kind = protocol.CopyStream
	}
	return c.copy(ctx, request, itemsOf(r), r, job.TargetUse)
}

var linkChoices = map[tree.LinkMode]protocol.CopyLinks{
	tree.LinksCopy: protocol.CopyLinksAsLinks, tree.LinksFollow: protocol.CopyLinksFollow,
	tree.LinksSkip: protocol.CopyLinksSkip,
}

// itemsOf returns the patterns, paths and bounds that select what the daemon sends.
func itemsOf(r CopyRequest) (items []protocol.Item) {
	for _, rule := range r.Rules {
		kind := protocol.ItemExclude
		if rule.Include {
			kind = protocol.ItemInclude
		}
		items = append(items, protocol.Item{Kind: kind, Text: rule.Pattern})
	}
	for _, path := range r.Options.FilesFrom {
		items = append(items, protocol.Item{Kind: protocol.ItemPath, Text: path})
	}
	scope := r.Options.Scope
	bound := func(set bool, kind protocol.ItemKind, value int64) {
		if set {
			items = append(items, protocol.Item{Kind: kind, Bound: value})
		}
	}
	bound(scope.OneFileSystem, protocol.ItemOneFileSystem, 0)
	bound(scope.MinSize > 0, protocol.ItemMinSize, scope.MinSize)
	bound(scope.MaxSize > 0, protocol.ItemMaxSize, scope.MaxSize)
	bound(!scope.Newer.IsZero(), protocol.ItemNewer, scope.Newer.UnixNano())
	bound(!scope.Older.IsZero(), protocol.ItemOlder, scope.Older.UnixNano())
	return items
}

// copy makes a copy in which the file of the options is on this side.
func (c *Client) copy(
	ctx context.Context, request protocol.CopyRequest, items []protocol.Item, r CopyRequest, use job.Use,
) (job.Summary, error) {
	bounds := len(items) > 0 && items[len(items)-1].Kind > protocol.ItemPath
	if (bounds || request.Flags.Has(protocol.CopyPrivileged)) && !c.exchange.session.Bounds() {
		return job.Summary{}, job.NewError(job.ErrCapability, nil,
			"update dma-copy on the other side, or leave them out",
			"the other side (%s) is too old for --preserve all, and to select files by size, time or file system",
			c.peer.Software)
	}
	request.Local = r.Local
	accepted, err := c.request(ctx, request, items)
	if err != nil {
		return job.Summary{}, err
	}
	if accepted.Unfinished && r.Options.Notify != nil {
		r.Options.Notify(job.Incomplete(r.nameOf(accepted.Path)))
	}
	r.Options.Log.Debug().Str("share", r.Place.Share).Str("path", accepted.Path).Msg("copy accepted")
	return c.transfer(ctx, r.Options, use, r.nameOf(accepted.Path))
}

// transfer makes a transfer that the daemon has accepted.
func (c *Client) transfer(ctx context.Context, o dmaxfer.Options, use job.Use, peerName string) (job.Summary, error) {
	messages := newStream(ctx, c.exchange)
	summary, err := dmaxfer.RunLinked(ctx, o, dmaxfer.Link{
		Conn: messages, Memory: c.memory, Use: use, PeerName: peerName,
	})
	if errors.Is(err, job.ErrHung) {
		return summary, c.fail(err)
	}
	if o.Progress != nil {
		o.Progress.Enter(job.Concluding)
	}
	if endErr := messages.finish(err); endErr != nil {
		o.Log.Debug().Err(endErr).Msg("the connection cannot be used for another copy")
		_ = c.fail(endErr) // of the next request
	}
	return summary, err
}

// request asks for a copy.
func (c *Client) request(
	ctx context.Context, r protocol.CopyRequest, items []protocol.Item,
) (protocol.Accepted, error) {
	if err := protocol.CheckItems(items); err != nil {
		return protocol.Accepted{}, job.NewError(job.ErrSettings, err, "give fewer or shorter ones",
			"the patterns and paths of the copy cannot be sent to the daemon (%v)", err)
	}
	operation := Pull
	if r.Direction == protocol.CopyPush {
		operation = Push
	}
	defer c.awaited.begin(operation, r.Place)()
	err := c.sendItems(ctx, items)
	if err == nil {
		err = c.send(ctx, func(s *protocol.Session, dst []byte) ([]byte, error) { return s.Copy(dst, r) })
	}
	if err != nil {
		if c.exchange.preparing() { // and the daemon would count the items as items of the next copy
			_ = c.fail(err)
		}
		return protocol.Accepted{}, err
	}
	step, err := c.answer(ctx)
	return step.Accepted, err
}

func (c *Client) sendItems(ctx context.Context, items []protocol.Item) error {
	for len(items) > 0 {
		used := 0
		err := c.send(ctx, func(s *protocol.Session, dst []byte) (message []byte, err error) {
			message, used, err = s.Items(dst, items)
			return message, err
		})
		if err != nil {
			return err
		}
		items = items[used:]
	}
	return nil
}
