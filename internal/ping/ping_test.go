//go:build cgo

package ping

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// outcome is what Run has returned, and what it has reported.
type outcome struct {
	summary Summary
	err     error
	events  []Event
}

// pair is both sides of round trips in one process.
type pair struct {
	t       *testing.T
	sides   docatest.Sides
	options [2]Options
}

func newPair(t *testing.T, limits string) *pair {
	t.Helper()
	p := &pair{t: t, sides: docatest.OpenSides(t, limits)}
	for _, side := range []wire.Side{wire.Host, wire.DPU} {
		p.options[side] = Options{
			Meeting: Meeting{
				Side: side, Device: p.sides.Host, Wait: 30 * time.Second, IdleTimeout: 30 * time.Second,
				Log: zerolog.Nop(),
			},
			Text: "from the " + side.String(), Count: 20, Size: 64,
		}
	}
	dpu := &p.options[wire.DPU]
	dpu.Device, dpu.Representor = p.sides.DPU, p.sides.Host.Info().PCIAddress
	return p
}

// run runs one side.
func (p *pair) run(ctx context.Context, side wire.Side) outcome {
	var result outcome
	o := p.options[side]
	notify := o.Notify
	o.Notify = func(e Event) {
		result.events = append(result.events, e)
		if notify != nil {
			notify(e)
		}
	}
	result.summary, result.err = Run(ctx, o)
	return result
}

// runBoth runs both sides at once.
func (p *pair) runBoth(ctx context.Context) (results [2]outcome) {
	p.t.Helper()
	var running sync.WaitGroup
	for side := range results {
		running.Go(func() { results[side] = p.run(ctx, wire.Side(side)) })
	}
	running.Wait()
	return results
}

func TestRoundTrips(t *testing.T) {
	for name, test := range map[string]struct {
		host, dpu job.PathChoice
		fast      bool
		size      uint32
	}{
		"control channel":      {job.AnyPath, job.AnyPath, false, 64},
		"control channel only": {job.OnlyDMA, job.AnyPath, false, 4080 - service.PingHeader},
		"empty":                {job.AnyPath, job.OnlyDMA, false, 0},
		"fast":                 {job.OnlyFast, job.OnlyFast, true, 64},
		"host wants fast":      {job.OnlyFast, job.AnyPath, true, 100_000},
		"DPU wants fast":       {job.AnyPath, job.OnlyFast, true, service.MaxPingSize},
		"fast and empty":       {job.AnyPath, job.OnlyFast, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, "")
			p.options[wire.Host].Path, p.options[wire.DPU].Path = test.host, test.dpu
			p.options[wire.Host].Size, p.options[wire.DPU].Count = test.size, 3
			for i, got := range p.runBoth(t.Context()) {
				side := wire.Side(i)
				want := p.options[side]
				if got.err != nil {
					t.Fatalf("%s: %v", side, got.err)
				}
				s := got.summary
				if s.Fast != test.fast || s.Count != int(want.Count) || s.Size != int(want.Size) {
					t.Errorf("%s: %+v", side, s)
				}
				if s.Min <= 0 || s.Min > s.Median || s.Median > s.P99 {
					t.Errorf("%s: %+v", side, s)
				}
				text := Text{From: side.Other(), Text: "from the " + side.Other().String()}
				events := []Event{Connected{Version: int(service.Supported.Max)}, text}
				if fmt.Sprint(got.events) != fmt.Sprint(events) {
					t.Errorf("%s: events %v, want %v", side, got.events, events)
				}
			}
		})
	}
}

// A ping does not take the server name of copies.
func TestRoundTripsBesideACopy(t *testing.T) {
	p := newPair(t, "")
	listener, err := comch.Listen(p.sides.DPU, p.sides.OpenRepresentor(t), reference.ServerName)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for side, got := range p.runBoth(t.Context()) {
		if got.err != nil {
			t.Errorf("%s: %v", wire.Side(side), got.err)
		}
	}
}

// The side that cannot do what both would need says so to the other one.
func TestNoAgreement(t *testing.T) {
	for name, test := range map[string]struct {
		limits string
		change func(host, dpu *Options)
		finds  wire.Side
		want   error
		code   wire.AbortCode
		detail string
	}{
		"no fast path": {"", func(h, d *Options) { h.Path, d.Path = job.OnlyFast, job.OnlyDMA }, wire.DPU,
			wire.ErrNoPath, wire.AbortDevice, "the DPU cannot or will not use producers and consumers"},
		"too large for the channel": {"", func(h, _ *Options) { h.Size = 4080 - service.PingHeader + 1 },
			wire.Host, job.ErrSettings, wire.AbortSettings,
			"the host wants 4065 bytes, limit 4064 over the control channel"},
		"too large for a consumer": {"max_fast_buf_size=8192",
			func(_, d *Options) { d.Path, d.Size = job.OnlyFast, 8192-service.PingHeader+1 }, wire.DPU,
			job.ErrSettings, wire.AbortSettings,
			"the DPU wants 8177 bytes, limit 8176 over producers and consumers"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, test.limits)
			test.change(&p.options[wire.Host], &p.options[wire.DPU])
			results := p.runBoth(t.Context())
			err := results[test.finds].err
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.detail) {
				t.Errorf("%s: %v", test.finds, err)
			}
			told, is := errors.AsType[*native.PeerAborted](results[test.finds.Other()].err)
			if !is || told.Code != test.code || !strings.Contains(told.Text, test.detail) {
				t.Errorf("%s: %v", test.finds.Other(), results[test.finds.Other()].err)
			}
		})
	}
}

func TestPeerAbsent(t *testing.T) {
	p := newPair(t, "")
	for side := range p.options {
		p.options[side].Wait = 20 * time.Millisecond
		if got := p.run(t.Context(), wire.Side(side)); !errors.Is(got.err, comch.ErrPeerAbsent) {
			t.Errorf("%s: %v", wire.Side(side), got.err)
		}
	}
}

// A side that is interrupted tells the other one, on either path and in the middle of the round trips.
func TestInterrupted(t *testing.T) {
	interrupted := exit.Interrupted{Signal: syscall.SIGINT}
	for _, path := range []job.PathChoice{job.OnlyDMA, job.OnlyFast} {
		for _, side := range []wire.Side{wire.Host, wire.DPU} {
			t.Run(fmt.Sprintf("path %d, %s", path, side), func(t *testing.T) {
				p := newPair(t, "")
				for i := range p.options {
					p.options[i].Path, p.options[i].Count = path, service.MaxPings
				}
				ctx, interrupt := context.WithCancelCause(t.Context())
				p.options[wire.Host].Notify = func(e Event) {
					if _, is := e.(Text); is {
						interrupt(interrupted)
					}
				}
				contexts := [2]context.Context{t.Context(), t.Context()}
				contexts[side] = ctx
				var results [2]outcome
				var running sync.WaitGroup
				for i := range results {
					running.Go(func() { results[i] = p.run(contexts[i], wire.Side(i)) })
				}
				running.Wait()
				if err := results[side].err; !errors.Is(err, interrupted) {
					t.Errorf("%s: %v", side, err)
				}
				told, is := errors.AsType[*native.PeerAborted](results[side.Other()].err)
				if !is || told.Code != wire.AbortInterrupted || told.Text != interrupted.Error() {
					t.Errorf("%s: %v", side.Other(), results[side.Other()].err)
				}
			})
		}
	}
}

// hostile connects to a DPU as a host that the test plays, and returns what Run makes of it.
func (p *pair) hostile(play func(conn comch.Conn)) outcome {
	p.t.Helper()
	var result outcome
	var running sync.WaitGroup
	running.Go(func() { result = p.run(p.t.Context(), wire.DPU) })
	dialer := comch.NewDialer(p.sides.Host, service.PingServerName, comch.Within(30*time.Second))
	conn, err := dialer.Dial(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	play(conn)
	if err := conn.Close(); err != nil {
		p.t.Error(err)
	}
	running.Wait()
	return result
}

func (p *pair) send(conn comch.Conn, messages ...[]byte) {
	p.t.Helper()
	for _, message := range messages {
		if err := conn.Send(p.t.Context(), message); err != nil {
			p.t.Error(err)
		}
	}
}

var (
	// greeting is what each side says at the beginning of its turn.
	greeting = service.AppendGreeting(nil, service.Greeting{Versions: service.Supported})
	// daemonGreeting is its answer to that of the other one.
	daemonGreeting = service.AppendGreeting(nil,
		service.Greeting{Versions: service.Supported, Version: service.Supported.Max})
)

func text(number uint32, said string) []byte {
	return service.AppendPing(nil,
		service.Ping{Number: number, Kind: service.PingText, Payload: []byte(said)})
}

// answered is the answer to a text.
func answered(number uint32) []byte {
	return service.AppendPong(nil, service.Ping{Number: number, Kind: service.PingText})
}

func payload(number uint32) []byte {
	return service.AppendPing(nil, service.Ping{Number: number, Payload: make([]byte, 8)})
}

// inHostsTurn returns what a host says that answers a DPU with one round trip and no text, and then messages of its own
// turn.
func (p *pair) inHostsTurn(messages ...[]byte) [][]byte {
	dpu := &p.options[wire.DPU]
	dpu.Count, dpu.Text = 1, ""
	pong := service.AppendPong(nil, service.Ping{Number: 1, Payload: Payload(nil, int(dpu.Size), 0)})
	return append([][]byte{daemonGreeting, service.AppendPong(nil, service.Ping{}), pong, answered(2)}, messages...)
}

func consumer(number, id, size uint32) []byte {
	return service.AppendPing(nil, service.Ping{
		Number: number, Kind: service.PingConsumer, Payload: service.Consumer{ID: id, Size: size}.Append(nil),
	})
}

func refusal(said string) []byte {
	refused := service.Refusal{Code: wire.AbortInterrupted, Text: said, Final: true}
	return service.AppendRefused(nil, refused, service.MaxGreeting)
}

func TestHostilePeer(t *testing.T) {
	for name, test := range map[string]struct {
		messages  [][]byte
		hostsTurn bool // they are said there
		want      error
	}{
		"no greeting":   {[][]byte{payload(0)}, false, wire.ErrOutOfOrder},
		"nothing known": {[][]byte{wire.AppendEmpty(nil, wire.TypeClose)}, false, wire.ErrOutOfOrder},
		"truncated":     {[][]byte{daemonGreeting[:7]}, false, wire.ErrMalformed},
		"too long":      {[][]byte{append(daemonGreeting[:12:12], 0)}, false, wire.ErrMalformed},
		"another version": {[][]byte{append([]byte{0x40, 0, 0, 0, 9, 9}, greeting[6:]...)}, true,
			service.ErrVersion},
		"greeting twice":      {[][]byte{daemonGreeting, daemonGreeting}, false, wire.ErrOutOfOrder},
		"the host's greeting": {[][]byte{greeting}, false, wire.ErrMalformed},
		"a PING of the host":  {[][]byte{daemonGreeting, text(0, "x")}, false, wire.ErrOutOfOrder},
		"PONG of another kind": {[][]byte{daemonGreeting, service.AppendPong(nil, service.Ping{})}, false,
			wire.ErrMalformed},
		"PONG of another PING": {[][]byte{daemonGreeting, answered(1)}, false, wire.ErrMalformed},
		"greeting thrice":      {[][]byte{greeting, greeting}, true, wire.ErrOutOfOrder},
		"list": {[][]byte{greeting, service.AppendList(nil, service.ListRequest{})}, true,
			wire.ErrOutOfOrder},
		"pong":                        {[][]byte{greeting, answered(0)}, true, wire.ErrOutOfOrder},
		"wrong number":                {[][]byte{greeting, text(0, "x"), payload(2)}, true, wire.ErrMalformed},
		"a PING beside the fast path": {[][]byte{greeting, consumer(0, 12345, 64)}, true, job.ErrIdle},
		"larger than any device": {[][]byte{greeting, consumer(0, 1, service.MaxPingSize+1)}, true,
			wire.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, "")
			if test.want == job.ErrIdle { // the consumer whose id the peer gives need not exist
				p.options[wire.DPU].IdleTimeout = 300 * time.Millisecond
			}
			if test.hostsTurn {
				test.messages = p.inHostsTurn(test.messages...)
			}
			got := p.hostile(func(conn comch.Conn) {
				p.send(conn, test.messages...)
				if reason := p.awaitRefusal(conn); reason == nil || !reason.Final {
					t.Errorf("told %v", reason)
				}
			})
			if !errors.Is(got.err, test.want) || errors.Is(got.err, job.ErrHung) {
				t.Errorf("got %v, want %v", got.err, test.want)
			}
		})
	}
}

// awaitRefusal returns the REFUSED of the other side.
func (p *pair) awaitRefusal(conn comch.Conn) *service.Refusal {
	p.t.Helper()
	for {
		message, err := conn.Recv(p.t.Context())
		if err != nil {
			p.t.Error(err)
			return nil
		}
		if reason, err := service.DecodeRefused(message); err == nil {
			return reason
		}
	}
}

// A peer that disconnects or refuses in the middle is noticed, wherever this side waits.
func TestPeerLeaves(t *testing.T) {
	for name, test := range map[string]struct {
		hostsTurn bool
		messages  [][]byte
	}{
		"before the greeting": {false, nil},
		"after the greeting":  {false, [][]byte{daemonGreeting}},
		"after the text":      {true, [][]byte{greeting, text(0, "x")}},
		"on the fast path":    {true, [][]byte{greeting, consumer(0, 12345, 64)}},
	} {
		t.Run(name, func(t *testing.T) {
			p, messages := newPair(t, ""), test.messages
			if test.hostsTurn {
				messages = p.inHostsTurn(messages...)
			}
			got := p.hostile(func(conn comch.Conn) {
				p.send(conn, messages...)
			})
			if !errors.Is(got.err, ErrLost) {
				t.Errorf("got %v", got.err)
			}
			got = p.hostile(func(conn comch.Conn) {
				p.send(conn, append(messages, refusal("bye"))...)
			})
			if told, is := errors.AsType[*native.PeerAborted](got.err); !is || told.Text != "bye" {
				t.Errorf("got %v", got.err)
			}
		})
	}
}

func TestSilentPeer(t *testing.T) {
	for name, messages := range map[string][][]byte{
		"from the start":     nil,
		"after its greeting": {daemonGreeting},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, "")
			p.options[wire.DPU].IdleTimeout = 300 * time.Millisecond
			got := p.hostile(func(conn comch.Conn) {
				p.send(conn, messages...)
				p.awaitRefusal(conn)
			})
			const cause = "no message from the host for 300ms"
			if !errors.Is(got.err, job.ErrIdle) || !strings.Contains(got.err.Error(), cause) {
				t.Errorf("got %v", got.err)
			}
		})
	}
}

// hungConn is a connection whose Recv does not return before the end of the test after the first message, whatever its
// context says.
type hungConn struct {
	comch.Conn
	met bool
	end chan struct{}
}

func (c *hungConn) Recv(ctx context.Context) ([]byte, error) {
	if !c.met {
		c.met = true
		return c.Conn.Recv(ctx)
	}
	<-c.end
	return nil, comch.ErrClosed
}

// A call into the device that does not return does not keep a ping from ending.
func TestHungCall(t *testing.T) {
	p := newPair(t, "")
	synctest.Test(t, func(t *testing.T) {
		o := p.options[wire.Host]
		o.IdleTimeout, o.Notify = 300*time.Millisecond, func(Event) {}
		near, far := comchtest.NewPair(4080, comchtest.Faultless, comchtest.Faultless)
		(&pair{t: t}).send(far, greeting)
		conn := &hungConn{Conn: near, end: make(chan struct{})}
		c, err := begin(t.Context(), o.Meeting, conn, func() error {
			t.Error("disconnected, although the call may still use the connection")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = o.run(t.Context(), c)
		if !errors.Is(err, job.ErrHung) || !errors.Is(err, job.ErrIdle) {
			t.Errorf("got %v", err)
		}
		close(conn.end)
		if err := errors.Join(near.Close(), far.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A host that another DPU process turns away tries again.
func TestHostIsTurnedAway(t *testing.T) {
	p := newPair(t, "")
	listener, err := comch.Listen(p.sides.DPU, p.sides.OpenRepresentor(t), service.PingServerName)
	if err != nil {
		t.Fatal(err)
	}
	var results [2]outcome
	var running sync.WaitGroup
	running.Go(func() { results[wire.Host] = p.run(t.Context(), wire.Host) })
	conn, err := listener.Accept(t.Context(), comch.Within(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Close(), listener.Close()); err != nil {
		t.Fatal(err)
	}
	running.Go(func() { results[wire.DPU] = p.run(t.Context(), wire.DPU) })
	running.Wait()
	for side, got := range results {
		if got.err != nil {
			t.Errorf("%s: %v", wire.Side(side), got.err)
		}
	}
}

// A device that does not say how much it carries at once is used up to the limit of the protocol.
func TestLargestPayload(t *testing.T) {
	for limit, want := range map[uint32]uint32{
		0: service.MaxPingSize, 4096: 4096 - service.PingHeader, 1 << 30: service.MaxPingSize,
	} {
		var device doca.DeviceInfo
		device.Producer.MaxBuffer, device.Consumer.MaxBuffer = 1<<30, limit
		if got := largestPayload(device); got != want {
			t.Errorf("%d: got %d, want %d", limit, got, want)
		}
	}
}
