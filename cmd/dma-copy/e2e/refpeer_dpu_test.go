package e2e

import (
	"context"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// runDPU runs the DPU's role: it checks the direction, copies with one task, and waits for the host to disconnect.
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
	rejecting := make(chan struct{})
	go func() {
		defer close(rejecting)
		rejectClients(ctx, server)
	}()
	err = r.serve(ctx)
	err = errors.Join(err, r.awaitDisconnect(ctx))
	cancel()
	<-rejecting
	return err
}

// rejectClients disconnects every further client as soon as it connects.
func rejectClients(ctx context.Context, server *doca.Server) {
	for {
		other, err := server.Accept(ctx)
		if err != nil {
			return
		}
		_ = other.Close()
	}
}

func (r *refpeer) serve(ctx context.Context) error {
	if err := r.afterStep(ctx, "connected"); err != nil {
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
	if err := r.afterStep(ctx, "copied"); err != nil {
		return err
	}
	return r.send(ctx, "status-sent", statusImage(true))
}

func (r *refpeer) agreeAsDPU(ctx context.Context) error {
	opening, err := r.expect(ctx, directionType, "direction-received")
	if err != nil {
		return err
	}
	if err := r.checkDirection(opening); err != nil {
		_ = r.conn.Send(ctx, statusImage(false))
		return err
	}
	answer := directionImage(false, r.size)
	if !r.sends {
		r.size, answer = imageSize(opening), directionImage(true, 0)
	}
	return r.send(ctx, "direction-sent", answer)
}

// checkDirection refuses what the reference program refuses. One task has to hold the file.
func (r *refpeer) checkDirection(opening []byte) error {
	size := r.size
	if !r.sends {
		size = imageSize(opening)
	}
	switch largest := int64(r.dev.Info().MaxBufferSize); {
	case imageFileInHost(opening) && r.sends:
		return errors.New("both sides have the file")
	case !imageFileInHost(opening) && !r.sends:
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
	if r.sends {
		task.Source, task.Target = r.memory, remote
	}
	if err := runTask(ctx, engine, task); err != nil || r.sends {
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

func (r *refpeer) awaitDisconnect(ctx context.Context) error {
	select {
	case <-r.conn.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
