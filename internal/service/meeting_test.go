//go:build cgo

package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/doca"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/share"
)

// meetings has a daemon on one side of the software device and commands on the other, in real time.
type meetings struct {
	*world
	daemon  *Daemon
	meeting Meeting
	box     string // the directory of the share
}

func openMeetings(t *testing.T, daemonSide wire.Side, connections int) *meetings {
	t.Helper()
	m := &meetings{world: newWorld(t), box: t.TempDir()}
	m.config.FS = disk.OS
	m.config.Shares = []share.Share{{Name: "box", Path: m.box, Access: share.ReadWrite}}
	daemonDevice, commandDevice := m.sides.DPU, m.sides.Host
	if daemonSide == wire.Host {
		daemonDevice, commandDevice = commandDevice, daemonDevice
	}
	m.config.Copy.Device = daemonDevice
	m.start()
	function := m.sides.Host.Info().PCIAddress
	var err error
	m.daemon, err = OpenDaemon(DaemonConfig{
		Server: m.server, Device: daemonDevice, Side: daemonSide, Representors: []string{function},
		Connections: connections, Log: m.config.Log,
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

// contentOf returns that of the file of this name.
func contentOf(name string) string { return strings.Repeat(name+"\n", 100_000) }

// command connects, pushes a file of this name twice and pulls it, and disconnects.
func (m *meetings) command(name string) error {
	c, err := Dial(m.Context(), m.meeting, ClientConfig{Key: m.key, Verify: m.verify, Log: m.log})
	if err != nil {
		return err
	}
	source := filepath.Join(m.TempDir(), name)
	if err := os.WriteFile(source, []byte(contentOf(name)), 0o600); err != nil {
		return errors.Join(err, c.Close())
	}
	r := m.copyOf(name, "box/"+name)
	r.Options.Side, r.Options.FS, r.Options.File = m.meeting.Side, disk.OS, source
	_, err = c.Push(m.Context(), r)
	if err == nil {
		r.Place.Path += "-again"
		_, err = c.Push(m.Context(), r)
	}
	if err == nil {
		r.Options.File += "-back"
		_, err = c.Pull(m.Context(), r)
	}
	return errors.Join(err, c.Close(), hasContent(source+"-back", name))
}

func hasContent(path, name string) error {
	if text, err := os.ReadFile(path); err != nil || string(text) != contentOf(name) {
		return fmt.Errorf("%s has %d bytes (%w)", path, len(text), err)
	}
	return nil
}

func TestCommandsMeetTheDaemon(t *testing.T) {
	for _, test := range []struct {
		name        string
		side        wire.Side
		connections int
	}{
		{"daemon on the DPU", wire.DPU, 0},
		{"daemon on the DPU with one connection at a time", wire.DPU, 1},
		{"daemon on the host", wire.Host, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := openMeetings(t, test.side, test.connections)
			names := []string{"one", "two", "three"}
			ended := make(chan error, len(names))
			for _, name := range names {
				go func() { ended <- m.command(name) }()
			}
			for range names {
				must(t, <-ended)
			}
			for _, name := range names {
				must(t, hasContent(filepath.Join(m.box, name), name))
				must(t, hasContent(filepath.Join(m.box, name+"-again"), name))
			}
		})
	}
}

// A daemon on the host is connected with as many commands at once as there are names, and with another one when one of
// them has ended.
func TestCommandsOnTheDPUAtOnce(t *testing.T) {
	m := openMeetings(t, wire.Host, 0)
	names := protocol.CommandNames()
	var connected []*Client
	for range names {
		connected = append(connected, m.mustDial())
	}
	for _, c := range connected {
		_, err := c.RoundTrip(t.Context(), nil)
		must(t, err)
	}
	mustBe(t, answerInTime(func(wait time.Duration) error {
		hasty := m.meeting
		hasty.Wait = wait
		_, err := Dial(t.Context(), hasty, ClientConfig{Key: m.key, Verify: m.verify, Log: m.log})
		return err
	}), ErrBusy)
	for i := range connected { // from the last name to the first
		last := &connected[len(connected)-1-i]
		next := make(chan *Client)
		go func() { next <- m.mustDial() }()
		must(t, (*last).Close())
		*last = <-next
		_, err := (*last).RoundTrip(t.Context(), nil)
		must(t, err)
	}
	for _, c := range connected {
		must(t, c.Close())
	}
}

func (m *meetings) mustDial() *Client {
	m.Helper()
	c, err := Dial(m.Context(), m.meeting, ClientConfig{Key: m.key, Verify: m.verify, Log: m.log})
	must(m.T, err)
	return c
}

// A command that breaks the protocol reads why its connection ends before it does.
func TestReasonArrivesBeforeTheEnd(t *testing.T) {
	m := openMeetings(t, wire.DPU, 0)
	dialer := comch.NewDialer(m.meeting.Device, protocol.ServerName, comch.Within(m.meeting.Wait))
	for range 20 {
		raw, err := dialer.Dial(t.Context())
		must(t, err)
		conn, err := secure.Client(t.Context(), raw, secure.Config{Key: m.key, Verify: m.verify})
		must(t, err)
		must(t, conn.Send(t.Context(), greeting()))
		must(t, conn.Send(t.Context(), greeting()))
		message, err := conn.Recv(t.Context())
		for err == nil && messageType(message) != wire.TypeRefused {
			message, err = conn.Recv(t.Context())
		}
		must(t, err)
		refusal, err := protocol.DecodeRefused(message)
		must(t, err)
		if !refusal.Final || refusal.Code != wire.AbortProtocol {
			t.Errorf("got %+v", refusal)
		}
		must(t, conn.Close())
	}
}

func TestSecondDaemonIsRefused(t *testing.T) {
	m := openMeetings(t, wire.DPU, 0)
	_, err := OpenDaemon(DaemonConfig{
		Server: m.server, Device: m.sides.DPU, Side: wire.DPU, Log: zerolog.Nop(),
		Representors: []string{m.sides.Host.Info().PCIAddress},
	})
	mustBe(t, err, doca.CodeAlreadyExist)
}
