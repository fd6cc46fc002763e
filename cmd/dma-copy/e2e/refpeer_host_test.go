package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// runHost runs the host's role. The reference program's host saves the file after the DPU's STATUS(1) and does not
// report the result.
func (r *refpeer) runHost(ctx context.Context) error {
	client, err := r.dev.NewClient(referenceServer, doca.ChannelConfig{})
	if err != nil {
		return err
	}
	defer client.Close()
	if err := r.connect(ctx, client); err != nil {
		return err
	}
	if err := r.agreeAsHost(ctx); err != nil {
		return err
	}
	if err := r.export(ctx); err != nil {
		return err
	}
	if _, err := r.expect(ctx, statusType, "status-received"); err != nil {
		return err
	}
	if r.sends {
		return nil
	}
	return r.save()
}

// connect waits for the DPU. Users of the reference program start the DPU first.
func (r *refpeer) connect(ctx context.Context, client *doca.Client) error {
	for waiting := false; ; waiting = true {
		conn, err := client.Connect(ctx)
		if err == nil {
			r.conn = conn
			return r.afterStep(ctx, "connected")
		}
		if !errors.Is(err, doca.ErrNoServer) {
			return err
		}
		if !waiting {
			fmt.Fprintln(os.Stderr, `{"level":"info","message":"waiting"}`)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (r *refpeer) agreeAsHost(ctx context.Context) error {
	if err := r.send(ctx, "direction-sent", directionImage(r.sends, r.size)); err != nil {
		return err
	}
	answer, err := r.expect(ctx, directionType, "direction-received")
	if err != nil {
		return err
	}
	access := doca.RemoteRead
	if !r.sends {
		r.size, access = imageSize(answer), doca.RemoteWrite
	}
	return r.allocate(access)
}

func (r *refpeer) export(ctx context.Context) error {
	descriptor, err := r.memory.Export()
	if err != nil {
		return err
	}
	return r.send(ctx, "export-sent", exportImage(r.memory.Address(), descriptor))
}
