package dmaxfer

import (
	"context"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/reference"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
)

// peer is one connection, and what is to be transferred over it.
type peer struct {
	options Options
	file    *job.LocalFile
	conn    comch.Conn
	memory  window.Memory
}

// transfer chooses the protocol by what the peer speaks, and hands over between the two.
func (p peer) transfer(ctx context.Context) (job.Summary, error) {
	first := reference.New(p.reference())
	outcome, err := first.Run(ctx)
	if outcome.Native == nil {
		return outcome.Summary, err
	}
	if err != nil {
		native.Tell(p.native(), outcome.Native, err)
		return job.Summary{}, err
	}
	result, err := native.Run(ctx, p.native(), outcome.Native, outcome.HostSize)
	if !result.Reference {
		return result.Summary, p.file.Explain(p.options.Side, err)
	}
	outcome, err = first.Resume(ctx)
	return outcome.Summary, err
}

// refuse tells the peer why this side cannot start.
func (p peer) refuse(ctx context.Context, failed error) {
	if outcome := reference.New(p.reference()).Refuse(ctx, failed); outcome.Native != nil {
		native.Tell(p.native(), outcome.Native, failed)
	}
}

func (p peer) reference() reference.Config {
	o := &p.options
	c := reference.Config{
		Side: o.Side, Conn: p.conn, Device: o.Device, File: p.file, Chunk: o.Chunk, Depth: o.Depth,
		MaxFileSize: maxFileSize, MaxBytes: o.MaxBytes, Expect: o.Expect, DryRun: o.DryRun, Backup: o.Backup,
		Word: o.Word, IdleTimeout: o.IdleTimeout, Log: o.Log, Progress: o.Progress, Notify: o.Notify,
	}
	if !o.ReferenceOnly {
		config := p.native()
		hello := config.Hello()
		c.Native = &hello
	}
	return c
}

func (p peer) native() role.Config { return p.options.native(p.file, p.conn, p.memory) }

// native returns what the options mean for one side of a transfer in the native protocol.
func (o *Options) native(file *job.LocalFile, conn comch.Conn, memory window.Memory) role.Config {
	c := role.Config{
		Options: o.Options, Conn: conn, Memory: memory, Paths: o.paths, File: file, StallLog: o.Log,
	}
	c.RefuseSame = o.RefuseSame || o.HideContent && !file.Directory
	return c
}
