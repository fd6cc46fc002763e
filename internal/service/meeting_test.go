//go:build cgo

package service

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/share"
)

// meetings has a daemon on one side of the software device and commands on the other, in real time.
type meetings struct {
	*world
	daemon  *Daemon
	meeting Meeting
	box     string // the directory of the share
}

func openMeetings(t *testing.T, daemonSide negotiate.Side) *meetings {
	t.Helper()
	m := &meetings{world: newWorld(t), box: t.TempDir()}
	m.config.FS = disk.OS
	m.config.Shares = []share.Share{{Name: "box", Path: m.box, Access: share.ReadWrite}}
	m.config.Copy.Side = daemonSide
	daemonDevice, commandDevice := m.sides.DPU, m.sides.Host
	if daemonSide == negotiate.Host {
		daemonDevice, commandDevice = commandDevice, daemonDevice
	}
	m.config.Copy.Device = daemonDevice
	m.start()
	function := m.sides.Host.Info().PCIAddress
	var err error
	m.daemon, err = OpenDaemon(DaemonConfig{
		Server: m.server, Device: daemonDevice, Side: daemonSide, Representors: []string{function}, Log: zerolog.Nop(),
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- m.daemon.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ran)
		m.server.Drain(context.Background())
		must(t, m.daemon.Close())
		m.stop()
	})
	m.meeting = Meeting{
		Device: commandDevice, Side: daemonSide.Other(), Representor: function, Wait: 30 * time.Second,
	}
	return m
}

// command connects, pushes a file of this name, and disconnects.
func (m *meetings) command(name string) error {
	c, err := Dial(m.Context(), m.meeting, ClientConfig{Key: m.key, Verify: m.verify, Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	source := filepath.Join(m.TempDir(), name)
	if err := os.WriteFile(source, []byte(name), 0o600); err != nil {
		return err
	}
	r := m.copyOf(name, "box/"+name)
	r.Options.Side, r.Options.Device, r.Options.FS, r.Options.File = m.meeting.Side, m.meeting.Device, disk.OS, source
	if _, err := c.Push(m.Context(), r); err != nil {
		return err
	}
	return c.Close()
}

func TestCommandsMeetTheDaemon(t *testing.T) {
	for _, side := range []negotiate.Side{negotiate.DPU, negotiate.Host} {
		t.Run("daemon on the "+side.String(), func(t *testing.T) {
			m := openMeetings(t, side)
			names := []string{"one", "two", "three"}
			ended := make(chan error, len(names))
			for _, name := range names {
				go func() { ended <- m.command(name) }()
			}
			for range names {
				must(t, <-ended)
			}
			for _, name := range names {
				text, err := os.ReadFile(filepath.Join(m.box, name))
				if err != nil || string(text) != name {
					t.Errorf("%s has %q (%v)", name, text, err)
				}
			}
		})
	}
}

func TestSecondDaemonIsRefused(t *testing.T) {
	m := openMeetings(t, negotiate.DPU)
	_, err := OpenDaemon(DaemonConfig{
		Server: m.server, Device: m.sides.DPU, Side: negotiate.DPU, Log: zerolog.Nop(),
		Representors: []string{m.sides.Host.Info().PCIAddress},
	})
	if err == nil {
		t.Fatal("two daemons offer the service to one function")
	}
}
