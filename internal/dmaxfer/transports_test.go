//go:build cgo

package dmaxfer

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/network/ucxpath"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// transport is one way in which content goes from side to side, for the cases that hold on all of them.
type transport struct {
	path    wire.Path
	choice  job.PathChoice
	connect func(t testing.TB, s *setup) connected
}

// connected are both sides of a connection.
type connected struct {
	conns  [2]comch.Conn
	memory [2]window.Memory
	close  []func() error // the last one first
}

// pipeMessage is the largest message of a connection within this process, in bytes.
const pipeMessage = 4080

var transports = map[string]transport{
	"dma":     {wire.PathDMA, job.OnlyDMA, connectDevice},
	"fast":    {wire.PathFast, job.OnlyFast, connectDevice},
	"tls":     {wire.PathTLS, job.OnlyTLS, connectNetwork},
	"tcp":     {wire.PathTCP, job.OnlyTCP, connectNetwork},
	"am-tcp":  overUCX(wire.PathMessages, job.OnlyMessages, "tcp"),
	"am-shm":  overUCX(wire.PathMessages, job.OnlyMessages, "posix", "cma"),
	"rma-tcp": overUCX(wire.PathRMA, job.OnlyRMA, "tcp"),
	"rma-shm": overUCX(wire.PathRMA, job.OnlyRMA, "posix", "cma"),
}

// eachTransport runs a case over every transport.
func eachTransport(t *testing.T, run func(t *testing.T, over transport)) {
	for name, over := range transports {
		t.Run(name, func(t *testing.T) { run(t, over) })
	}
}

// eachWay runs a case with a sender on either side over every transport, each over a connection of its own.
func eachWay(t *testing.T, run func(t *testing.T, l *linkedPair, sender wire.Side)) {
	eachTransport(t, func(t *testing.T, over transport) { bothWays(t, over, run) })
}

// bothWays runs a case with a sender on either side.
func bothWays(t *testing.T, over transport, run func(t *testing.T, l *linkedPair, sender wire.Side)) {
	for _, sender := range []wire.Side{wire.Host, wire.DPU} {
		t.Run("from the "+sender.String(), func(t *testing.T) {
			l := newLinkedPair(t, over)
			run(t, l, sender)
		})
	}
}

// newLinkedPair connects both sides until the end of the test.
func newLinkedPair(t *testing.T, over transport) *linkedPair {
	t.Helper()
	setup := newSetup(t, "")
	setup.host.Path, setup.dpu.Path = over.choice, over.choice
	l, disconnect := setup.connect(t, over)
	t.Cleanup(disconnect)
	return l
}

// connectDevice connects both sides over the software device.
func connectDevice(t testing.TB, s *setup) (c connected) {
	accepted := make(chan error, 1)
	go func() {
		conn, disconnect, err := offer(s.dpu).AcceptOne(context.Background(), comch.Within(s.dpu.Wait))
		if err == nil {
			c.conns[wire.DPU], c.close = conn, append(c.close, disconnect)
		}
		accepted <- err
	}()
	conn, err := comch.NewDialer(s.host.Device, reference.ServerName, comch.Within(s.host.Wait)).Dial(t.Context())
	mustBeNil(t, errors.Join(err, <-accepted))
	c.conns[wire.Host], c.close = conn, append(c.close, conn.Close)
	for _, o := range []*Options{&s.host, &s.dpu} {
		c.memory[o.Side] = window.NewMemory(o.Device, o.Side, c.conns[o.Side])
	}
	return c
}

// connectNetwork connects both sides over TCP: the host is the client, and the DPU the server.
func connectNetwork(t testing.TB, s *setup) (c connected) {
	keys := map[wire.Side]*identity.Key{}
	for _, side := range []wire.Side{wire.Host, wire.DPU} {
		key, err := identity.Generate()
		mustBeNil(t, err)
		keys[side] = key
	}
	settings := network.Settings{Key: keys[wire.DPU]}
	listener, err := network.Listen(t.Context(), "127.0.0.1:0", settings)
	mustBeNil(t, err)
	server := make(chan error, 1)
	go func() {
		control, err := listener.Accept(t.Context())
		if err == nil {
			err = c.authenticate(t.Context(), wire.DPU, control, keys, secure.Server)
		}
		server <- err
	}()
	control, err := network.Dial(t.Context(), listener.Address().String(), s.host.Wait, network.Settings{})
	mustBeNil(t, err)
	mustBeNil(t, c.authenticate(t.Context(), wire.Host, control, keys, secure.Client))
	mustBeNil(t, <-server)
	c.close = []func() error{listener.Close, c.conns[wire.DPU].Close, c.conns[wire.Host].Close}
	return c
}

// authenticate makes one side of a network connection.
func (c *connected) authenticate(ctx context.Context, side wire.Side, control *network.Control,
	keys map[wire.Side]*identity.Key,
	handshake func(context.Context, comch.Conn, secure.Config) (*secure.Conn, error),
) error {
	conn, err := handshake(ctx, control, secure.Config{Key: keys[side], Verify: secure.AnyKey})
	if err != nil {
		return err
	}
	c.conns[side], c.memory[side] = conn, control.Memory(conn, network.Settings{})
	return nil
}

func mustBeNil(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// overUCX is a path of UCX over some of its transports. The control connection is within this process.
func overUCX(path wire.Path, choice job.PathChoice, transports ...string) transport {
	return transport{path, choice, func(t testing.TB, _ *setup) (c connected) {
		for side, end := range slices.All(pipeEnds()) {
			opened := ucxpath.New(path, ucxpath.Config{UCX: ucx.Settings{Transports: transports}})
			if err := opened.Usable(); errors.Is(err, ucx.ErrUnavailable) {
				t.Skip(err)
			}
			c.conns[side], c.memory[side] = end, pathMemory{path, opened}
			c.close = append(c.close, end.Close)
		}
		return c
	}}
}

// pipeEnds returns those of a connection within this process.
func pipeEnds() []*comch.PipeEnd {
	one, other := comch.Pipe(pipeMessage)
	return []*comch.PipeEnd{one, other}
}

// pathMemory is the window.Memory of a connection with one path.
type pathMemory struct {
	path wire.Path
	*ucxpath.Path
}

func (m pathMemory) Paths(job.PathChoice) (job.Paths, error) { return job.PathsOf(m.path), nil }
func (pathMemory) Check(int64, int) error                    { return nil }
func (m pathMemory) Traits(job.Paths) window.Traits          { return m.Path.Traits() }
