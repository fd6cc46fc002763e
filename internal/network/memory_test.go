package network

import (
	"errors"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The paths are those that settings permit and the choice of the user.
func TestPaths(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	tls, tcp := job.PathsOf(wire.PathTLS), job.PathsOf(wire.PathTCP)
	rma := job.PathsOf(wire.PathRMA)
	for name, c := range map[string]struct {
		permitted job.Paths
		choice    job.PathChoice
		want      job.Paths
		err       error
	}{
		"any":              {0, job.AnyPath, tls, nil},
		"tls":              {0, job.OnlyTLS, tls, nil},
		"tls only":         {tls, job.AnyPath, tls, nil},
		"tcp":              {0, job.OnlyTCP, tcp, nil},
		"tcp only":         {tcp, job.AnyPath, tcp, nil},
		"tls and tcp":      {tls | tcp, job.AnyPath, tls | tcp, nil},
		"dma":              {0, job.OnlyDMA, 0, job.ErrSettings},
		"fast":             {0, job.OnlyFast, 0, job.ErrSettings},
		"not permitted":    {rma, job.OnlyTLS, 0, job.ErrSettings},
		"only tcp":         {tcp, job.OnlyTLS, 0, job.ErrSettings},
		"encrypt, and rma": {tls, job.OnlyRMA, 0, job.ErrSettings},
		"encrypt, and tcp": {tls, job.OnlyTCP, 0, job.ErrSettings},
	} {
		memory := both.clientControl.Memory(both.client, Settings{Paths: c.permitted})
		got, err := memory.Paths(c.choice)
		if !errors.Is(err, c.err) || got != c.want {
			t.Errorf("%s: %b, %v", name, got, err)
		}
	}
}

// Nothing but tls is used unless both the operator and the user ask for it.
func TestPathsByDefault(t *testing.T) {
	tls, tcp := job.PathsOf(wire.PathTLS), job.PathsOf(wire.PathTCP)
	messages, rma := job.PathsOf(wire.PathMessages), job.PathsOf(wire.PathRMA)
	for name, c := range map[string]struct {
		permitted job.Paths
		choice    job.PathChoice
		want      job.Paths
	}{
		"a daemon":                        {0, job.AnyPath, tls},
		"a daemon that permits one":       {messages, job.AnyPath, messages},
		"a daemon that permits all":       {tls | messages | rma, job.AnyPath, tls | messages | rma},
		"a command":                       {0, job.AnyPath, tls},
		"a command that names tls":        {0, job.OnlyTLS, tls},
		"a command that names tcp":        {0, job.OnlyTCP, tcp},
		"a command that names am":         {0, job.OnlyMessages, messages},
		"a command that names rma":        {0, job.OnlyRMA, rma},
		"a command that encrypts":         {tls, job.AnyPath, tls},
		"one that encrypts and names rma": {tls, job.OnlyRMA, 0},
		"one that encrypts and names tcp": {tls, job.OnlyTCP, 0},
	} {
		m := &memory{permitted: c.permitted}
		for _, path := range []wire.Path{
			wire.PathTLS, wire.PathTCP, wire.PathMessages, wire.PathRMA,
		} {
			if got := m.permits(path, c.choice); got != c.want.Has(path) {
				t.Errorf("%s: %s: %t", name, path, got)
			}
		}
	}
}

// Sizes are bounded by the protocol only.
func TestTraits(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	memory := both.clientControl.Memory(both.client, Settings{})
	must(t, memory.Check(wire.MaxChunk, wire.MaxDepth))
	got := memory.Traits(job.PathsOf(wire.PathTLS))
	if got.Lanes != wire.MaxLanes || got.Offloaded || got.Largest != 0 {
		t.Errorf("%+v", got)
	}
}

// The sizes of a window are those of the path that is chosen if the peer permits it, whatever else is permitted.
func TestTraitsOfThePreferredPath(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	memory := both.clientControl.Memory(both.client, Settings{Paths: job.EveryPath})
	alone := memory.Traits(job.PathsOf(wire.PathRMA))
	got := memory.Traits(job.PathsOf(wire.PathRMA, wire.PathTLS, wire.PathTCP, wire.PathMessages))
	if got.Sizes != alone.Sizes || alone.Sizes == (window.Sizes{}) {
		t.Errorf("%+v, of rma alone %+v", got, alone)
	}
	if got := memory.Traits(job.PathsOf(wire.PathTLS, wire.PathMessages)); got.Sizes != sizes {
		t.Errorf("%+v of tls", got)
	}
}

// The peer chooses how many data connections a sender has. Their buffers count, and there are none for the direction in
// which nothing is sent.
func TestBuffersOfLanes(t *testing.T) {
	m := newMachines(t, nil)
	both := m.meet(t)
	defer both.close(t)
	server := both.serverControl.Memory(both.server, m.Listener.settings)
	counts := server.(window.Buffering).Overhead
	sends := testLayout(wire.PathTLS, 2)
	sends.Sends, sends.Depth = true, wire.MaxLanes
	of := native.Window{Descriptor: native.AppendLanes(nil, wire.MaxLanes, 1)}
	if got := counts(sends, of); got < wire.MaxLanes*writeAtOnce {
		t.Errorf("%d lanes of a sender count as %d bytes", wire.MaxLanes, got)
	}
	if got := counts(testLayout(wire.PathTLS, 2), native.Window{}); got < 2*readAtOnce {
		t.Errorf("2 lanes of a receiver count as %d bytes", got)
	}
	plain := sends
	plain.Path = wire.PathTCP
	if got := counts(plain, of); got != 0 {
		t.Errorf("lanes without TLS count as %d bytes", got)
	}
	if got := counts(sends, native.Window{Descriptor: []byte("none")}); got != 0 {
		t.Errorf("a window that cannot be opened counts as %d bytes", got)
	}
	w := openWindows(t, wire.PathTLS, both.clientControl.Memory(both.client, Settings{}), server, 1, 1)
	moveMany(t, w, 1, 1)
	sender := w.sender.Engines[0].(*sendEngine).writers[0].lane.socket
	if sender.from != nil || cap(sender.pending) == 0 {
		t.Errorf("buffers of a sender: %v to read, %d bytes to write", sender.from, cap(sender.pending))
	}
	w.close(t)
}
