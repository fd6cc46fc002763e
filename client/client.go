// Package client copies files and directories to and from the shares of a daemon (dma-copy serve), over a device or the
// network, as the commands push, pull, sync, ls, rm and mkdir do.
package client

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/operations"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Options say how a daemon is reached and how files are copied. The zero value reaches the daemon behind the only
// device, with the user's keys.
type Options struct {
	Address     string        // HOST:PORT of a daemon on another machine; empty: over a device
	Device      string        // PCI address, RDMA or network device name; empty: the only device that fits
	Representor string        // on the DPU: the host function whose daemon is meant
	Driver      string        // "doca" or "soft"; empty: DOCA if it loads and finds a device, else the software device
	Keys        string        // directory of this side's key and the trusted keys; empty: the default one
	PeerKey     string        // key that the daemon must have, or the name of a trusted key; empty: any trusted key
	Anonymous   bool          // authenticate nobody; between machines for a loopback address only
	Encrypt     bool          // between machines: fail rather than copy without encryption
	Wait        time.Duration // for the daemon to appear and be free; 0: 30 s
	IdleTimeout time.Duration // without progress or a message of the daemon; 0: 30 s

	Overwrite      bool  // replace what exists and differs; SyncTo and SyncFrom always do
	IgnoreExisting bool  // leave what exists as it is
	Checksum       bool  // compare what exists by digest, not by size and modification time
	MakePath       bool  // create missing directories above the target
	DryRun         bool  // change nothing
	Delete         bool  // SyncTo, SyncFrom: after a copy without failures, delete what the source does not have
	MaxDelete      int   // entries that Delete may delete; 0: what the guards of sync --delete permit
	Bandwidth      int64 // bytes per second; 0: no limit

	Log *zerolog.Logger // nil: nothing is logged
}

// Client is a connection to a daemon. It does one thing at a time, and is used by one goroutine at a time. After the
// loss of the connection, or a call whose context has ended, all further calls fail.
type Client struct {
	conn    *connect.Conn
	options Options
	log     zerolog.Logger
}

// Connect connects to a daemon and authenticates both sides.
func Connect(ctx context.Context, o Options) (*Client, error) {
	c := &Client{options: o, log: zerolog.Nop()}
	if o.Log != nil {
		c.log = *o.Log
	}
	address := o.Address
	if address != "" {
		var err error
		if address, err = share.ParseAddress(address); err != nil {
			return nil, failure(exit.Usagef("Address %w", err))
		}
	}
	id, err := connect.Identify(connect.Keys{
		Directory: o.Keys, Anonymous: o.Anonymous, Pinned: o.PeerKey, Origin: "Options.PeerKey", Getenv: os.Getenv,
	})
	if err != nil {
		return nil, failure(err)
	}
	c.conn, err = connect.Connect(ctx, connect.Daemon{
		Selection: inventory.Selection{Device: o.Device, Representor: o.Representor, Role: inventory.RoleAuto},
		Address:   address, Identity: id, Encrypt: o.Encrypt, Bandwidth: o.Bandwidth,
		Driver:  doca.Options{Choice: cmp.Or(doca.Choice(o.Driver), doca.ChooseAuto)},
		Waiting: func(report.Wait) func() { return func() {} },
		Wait:    cmp.Or(o.Wait, defaultTime), WaitGiven: o.Wait > 0, IdleTimeout: c.idleTimeout(),
	}, c.log)
	if err != nil {
		return nil, failure(err)
	}
	return c, nil
}

// defaultTime is the default of Wait and IdleTimeout.
const defaultTime = 30 * time.Second

func (c *Client) idleTimeout() time.Duration { return cmp.Or(c.options.IdleTimeout, defaultTime) }

// Close ends the connection. It is called once.
func (c *Client) Close() error {
	var err error
	c.conn.End(&err)
	return failure(err)
}

// Push copies a file or directory of this side to a place in a share, SHARE/PATH, which is the name of the copy, or
// a directory to copy into if it ends with a slash or is a share alone.
func (c *Client) Push(ctx context.Context, source, target string) (Result, error) {
	return c.copy(ctx, source, target, true, false)
}

// Pull copies a file or directory from a place in a share, SHARE/PATH, to this side. The target is as in Push.
func (c *Client) Pull(ctx context.Context, source, target string) (Result, error) {
	return c.copy(ctx, target, source, false, false)
}

// SyncTo makes a directory in a share the same as one of this side.
func (c *Client) SyncTo(ctx context.Context, source, target string) (Result, error) {
	return c.copy(ctx, source, target, true, true)
}

// SyncFrom makes a directory of this side the same as one in a share.
func (c *Client) SyncFrom(ctx context.Context, source, target string) (Result, error) {
	return c.copy(ctx, target, source, false, true)
}

// Result is what a copy has done.
type Result struct {
	Files   int64 // that were copied, or in a dry run would be
	Bytes   int64 // of these
	Deleted int64 // entries
}

func (c *Client) copy(ctx context.Context, local, place string, sends, sync bool) (Result, error) {
	e := operations.Ends{Local: local, Remote: placeAt(c.options.Address, place)}
	if sends {
		e.Directory = operations.NameOf(local) == ""
		e.Remote.Path = path.Clean("/" + operations.Landing(local, e.Remote.Path))[1:]
	} else {
		e.Directory = operations.NameOf(place) == ""
		e.Local = operations.Landing(place, local)
	}
	o := c.options
	copies := &operations.Copies{
		Conn: c.conn, Sends: sends, Reporter: silent{}, Log: c.log,
		Guards: operations.Guards{MaxDelete: o.MaxDelete},
	}
	t := &copies.Options
	t.Side, t.Device, t.Log, t.IdleTimeout = c.conn.Side.Is, c.conn.Device, c.log, c.idleTimeout()
	t.Overwrite, t.IgnoreExisting, t.Checksum = o.Overwrite || sync, o.IgnoreExisting && !sync, o.Checksum
	t.MakePath, t.DryRun, t.Bandwidth, t.Durability = o.MakePath, o.DryRun, o.Bandwidth, wire.DurabilityFull
	t.Links, t.Digest = tree.LinksCopy, digest.CRC32C
	if !o.Anonymous {
		t.Digest = digest.BLAKE3
	}
	var err error
	switch {
	case c.conn.MovesNothing():
		err = connect.ErrMovesNothing
	case sync && o.Delete:
		err = copies.Mirror(ctx, e)
	default:
		err = copies.CopyAll(ctx, []operations.Ends{e})
	}
	return Result{copies.Total.Files, copies.Total.Bytes, copies.Total.Deleted}, failure(err)
}

// placeAt returns a place in a share.
func placeAt(address, place string) share.Remote {
	name, below, _ := strings.Cut(place, "/")
	return share.Remote{Address: address, Share: name, Path: below}
}

// Entry is what is in a share.
type Entry struct {
	Path      string // below the listed place; empty: the place itself
	Directory bool
	Symlink   string // what it points to; empty: it is none
	Mode      uint32 // permissions
	Size      int64  // of a file, in bytes
	Modified  time.Time
}

// List calls each for what is at a place in a share, SHARE/PATH, and in it, with recursive everything below it. The
// empty place has the shares. An error of each ends the connection.
func (c *Client) List(ctx context.Context, place string, recursive bool, each func(Entry) error) error {
	at := connect.PlaceOf(placeAt(c.options.Address, place))
	flags := service.ListFlags(0)
	if at.Share != "" {
		flags = service.ListAll
		if recursive {
			flags |= service.ListRecursive
		}
	}
	end, err := c.conn.Client.List(ctx, at, flags, func(e share.Entry) error {
		return each(Entry{
			Path: e.Path, Directory: e.Kind == wire.EntryDirectory, Symlink: e.Link, Mode: uint32(e.Mode), Size: e.Size,
			Modified: time.Unix(e.Modified.Sec, int64(e.Modified.Nsec)),
		})
	})
	return c.failed("list", errors.Join(err, connect.Incomplete(end)))
}

// Remove removes a file, symlink or empty directory at a place in a share, SHARE/PATH. It is no error if nothing is
// there.
func (c *Client) Remove(ctx context.Context, place string) error {
	at := connect.PlaceOf(placeAt(c.options.Address, place))
	above, name := path.Split(at.Path)
	at.Path = strings.TrimSuffix(above, "/")
	var refused error
	request := service.RemoveRequest{Place: at, Paths: []string{name}}
	err := c.conn.Client.Remove(ctx, request, func(_ string, r service.Removal) error {
		if r.Code != 0 {
			refused = &service.Refusal{Code: r.Code, Text: r.Text}
		}
		return nil
	})
	return c.failed("rm", errors.Join(err, refused))
}

// MakeDir creates a directory at a place in a share, SHARE/PATH, with parents also those above it; it may exist then.
func (c *Client) MakeDir(ctx context.Context, place string, parents bool) error {
	at := connect.PlaceOf(placeAt(c.options.Address, place))
	return c.failed("mkdir", c.conn.Client.MakeDir(ctx, at, parents))
}

func (c *Client) failed(request string, err error) error {
	return failure(report.InRequest(request, report.WithSide(c.conn.Side.Is, err)))
}

// silent reports nothing.
type silent struct{}

func (silent) Begin(report.Path)                {}
func (silent) Event(job.Event)                  {}
func (silent) Progress(job.Sample)              {}
func (silent) Interval() time.Duration          { return 0 }
func (silent) Asked(job.Sample, []job.Snapshot) {}
func (silent) Result(job.Summary) error         { return nil }
func (silent) SourceFailed(error)               {}
func (silent) Deleting(report.Deleting)         {}
func (silent) Deleted(report.Deletion)          {}
func (silent) Total(report.Total) error         { return nil }
func (silent) Fail(error)                       {}
