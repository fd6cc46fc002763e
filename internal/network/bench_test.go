package network

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// The layout of a large copy.
const benchChunk, benchDepth = 512 << 10, 16

// BenchmarkLanes moves chunks over the paths tls and tcp between both ends in this process, with a checksum of each.
// "vs-tcp" is how many times as fast it is as the same bytes over one TCP connection, without frames and checksums,
// moved in alternation.
func BenchmarkLanes(b *testing.B) {
	for name, of := range map[string]struct {
		path  wire.Path
		lanes int
	}{
		"tls/lanes=1": {wire.PathTLS, 1}, "tls/lanes=2": {wire.PathTLS, 2},
		"tcp/lanes=1": {wire.PathTCP, 1}, "tcp/lanes=2": {wire.PathTCP, 2},
	} {
		lanes := of.lanes
		b.Run(name, func(b *testing.B) {
			m := newMachines(b, nil)
			both := m.meet(b)
			defer both.close(b)
			server := both.serverControl.Memory(both.server, m.Listener.settings)
			client := both.clientControl.Memory(both.client, Settings{})
			l := window.Layout{
				Path: of.path, Digest: digest.CRC32C, Chunk: benchChunk, Depth: benchDepth, Lanes: lanes,
			}
			to, err := server.Expose(b.Context(), l)
			must(b, err)
			l.Sends = true
			from, err := client.Open(b.Context(), l, native.Window{Descriptor: to.Descriptor})
			must(b, err)
			w := windows{from, to}
			defer w.close(b)
			tcp := newPlainPair(b)
			var plain time.Duration
			b.SetBytes(benchDepth * benchChunk)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				w.moveAll(b, lanes)
				b.StopTimer()
				began := time.Now()
				tcp.copy(b, benchDepth*benchChunk)
				plain += time.Since(began)
				b.StartTimer()
			}
			b.StopTimer()
			b.ReportMetric(float64(plain)/float64(b.Elapsed()), "vs-tcp")
		})
	}
}

// moveAll uses every slot of the window once.
func (w windows) moveAll(b *testing.B, lanes int) {
	b.Helper()
	for lane := range lanes {
		for slot := int64(lane); slot < benchDepth; slot += int64(lanes) {
			m := pump.Move{Window: slot * benchChunk, Buffer: slot * benchChunk, Length: benchChunk, Tag: int(slot)}
			submit(b, w.sender.Engines[lane], m)
			m.Buffer = slot / int64(lanes) * benchChunk
			submit(b, w.receiver.Engines[lane], m)
		}
	}
	for lane := range lanes {
		to := w.receiver.Engines[lane].(*receiveEngine)
		for range benchDepth / lanes {
			own := reap(b, to).Tag / lanes
			digest.Check(digest.CRC32C, to.received[own*benchChunk:][:benchChunk])
			to.Release(own)
			reap(b, w.sender.Engines[lane])
		}
	}
}

// plainPair is a TCP connection within this process.
type plainPair struct {
	from, to net.Conn
	buffers  [2][]byte
}

func newPlainPair(b *testing.B) *plainPair {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	p := &plainPair{buffers: [2][]byte{bytes.Repeat([]byte{1}, benchChunk), make([]byte, benchChunk)}}
	p.from, err = net.Dial("tcp", listener.Addr().String())
	must(b, err)
	p.to, err = listener.Accept()
	must(b, err)
	b.Cleanup(func() {
		_, _, _ = p.from.Close(), p.to.Close(), listener.Close()
	})
	return p
}

// copy moves so many bytes.
func (p *plainPair) copy(b *testing.B, total int) {
	b.Helper()
	sent := make(chan error, 1)
	go func() {
		var err error
		for left := total; left > 0 && err == nil; left -= benchChunk {
			_, err = p.from.Write(p.buffers[0])
		}
		sent <- err
	}()
	for left := total; left > 0; left -= benchChunk {
		_, err := io.ReadFull(p.to, p.buffers[1])
		must(b, err)
	}
	must(b, <-sent)
}
