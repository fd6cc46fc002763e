package e2e

import (
	"context"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// runDPU is the DPU's part: it judges, copies in one task, and waits for the host to hang up.
func (r *refpeer) runDPU(ctx context.Context) error {
	rep, err := r.dev.OpenRepresentor(r.rep)
	if err != nil {
		return err
	}
	defer rep.Close()
	server, err := r.dev.Listen(rep, referenceServer, doca.ChannelConfig{})
	if err != nil {
		return err
	}
	defer server.Close()
	if r.conn, err = server.Accept(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	others := make(chan struct{})
	go func() {
		defer close(others)
		turnAway(ctx, server)
	}()
	err = r.serve(ctx)
	err = errors.Join(err, r.awaitHangUp(ctx))
	cancel()
	<-others
	return err
}

// turnAway disconnects every client after the first as soon as it connects.
func turnAway(ctx context.Context, server *doca.Server) {
	for {
		other, err := server.Accept(ctx)
		if err != nil {
			return
		}
		_ = other.Close()
	}
}

func (r *refpeer) serve(ctx context.Context) error {
	if err := r.reached(ctx, "connected"); err != nil {
		return err
	}
	if err := r.agreeAsDPU(ctx); err != nil {
		return err
	}
	export, err := r.expect(ctx, exportType, "export-received")
	if err != nil {
		return err
	}
	if err := r.copy(ctx, export); err != nil {
		return err
	}
	if err := r.reached(ctx, "copied"); err != nil {
		return err
	}
	return r.say(ctx, "status-sent", statusImage(true))
}

func (r *refpeer) agreeAsDPU(ctx context.Context) error {
	opening, err := r.expect(ctx, directionType, "direction-received")
	if err != nil {
		return err
	}
	if err := r.judge(opening); err != nil {
		_ = r.conn.Send(ctx, statusImage(false))
		return err
	}
	answer := directionImage(false, r.size)
	if !r.owner {
		r.size, answer = imageSize(opening), directionImage(true, 0)
	}
	return r.say(ctx, "direction-sent", answer)
}

// judge applies the reference's three refusals. One task has to hold the file.
func (r *refpeer) judge(opening []byte) error {
	size := r.size
	if !r.owner {
		size = imageSize(opening)
	}
	switch largest := int64(r.dev.Info().MaxBufferSize); {
	case imageFileInHost(opening) && r.owner:
		return errors.New("both sides have the file")
	case !imageFileInHost(opening) && !r.owner:
		return errors.New("neither side has the file")
	case size > largest:
		return fmt.Errorf("%d bytes are more than %d", size, largest)
	}
	return nil
}

// copy moves the whole file with one task, and saves it if it came from the host.
func (r *refpeer) copy(ctx context.Context, export []byte) error {
	address, descriptor := imageExport(export)
	if err := r.allocate(doca.LocalWrite); err != nil {
		return err
	}
	remote, err := r.dev.Import(descriptor, address, r.size)
	if err != nil {
		return err
	}
	defer remote.Close()
	engine, err := r.dev.NewEngine(1)
	if err != nil {
		return err
	}
	task := doca.Copy{Source: remote, Target: r.memory, Length: r.size}
	if r.owner {
		task.Source, task.Target = r.memory, remote
	}
	if err := runTask(ctx, engine, task); err != nil || r.owner {
		return errors.Join(err, engine.Close())
	}
	return errors.Join(engine.Close(), r.save())
}

func runTask(ctx context.Context, engine *doca.Engine, task doca.Copy) error {
	if _, err := engine.Submit([]doca.Copy{task}); err != nil {
		return err
	}
	done := make([]doca.Completion, 1)
	if _, err := engine.Reap(ctx, done); err != nil {
		return err
	}
	return done[0].Err
}

func (r *refpeer) awaitHangUp(ctx context.Context) error {
	select {
	case <-r.conn.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
