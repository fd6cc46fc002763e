package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// runHost is the host's part. The reference's host saves after the DPU's STATUS(1) and never says how that went.
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
	if r.owner {
		return nil
	}
	return r.save()
}

// connect waits for the DPU, which people start first when they use the reference.
func (r *refpeer) connect(ctx context.Context, client *doca.Client) error {
	for waits := false; ; waits = true {
		conn, err := client.Connect(ctx)
		if err == nil {
			r.conn = conn
			return r.reached(ctx, "connected")
		}
		if !errors.Is(err, doca.ErrNoServer) {
			return err
		}
		if !waits {
			fmt.Fprintln(os.Stderr, `{"level":"info","message":"waiting"}`)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (r *refpeer) agreeAsHost(ctx context.Context) error {
	if err := r.say(ctx, "direction-sent", directionImage(r.owner, r.size)); err != nil {
		return err
	}
	answer, err := r.expect(ctx, directionType, "direction-received")
	if err != nil {
		return err
	}
	access := doca.RemoteRead
	if !r.owner {
		r.size, access = imageSize(answer), doca.RemoteWrite
	}
	return r.allocate(access)
}

func (r *refpeer) export(ctx context.Context) error {
	descriptor, err := r.memory.Export()
	if err != nil {
		return err
	}
	return r.say(ctx, "export-sent", exportImage(r.memory.Address(), descriptor))
}
