//go:build cgo

package reference

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

const testChunk = 4096

// A bench is a pipeline with both its ends in this process: the host's memory, and a file that is only bytes.
type bench struct {
	route  route
	host   *doca.Region
	file   []byte
	engine *doca.Engine
	slots  *doca.Region
	remote *doca.Remote
	moved  int
	before func(call int) error // called before each file call, from several goroutines
	calls  atomic.Int64
}

var routes = map[string]route{"receiving": receivingRoute, "sending": sendingRoute}

func withBench(t *testing.T, s docatest.Sides, way route, size int64, depth int, use func(*bench)) {
	t.Helper()
	access := doca.RemoteRead
	if way[vacant] == atFile {
		access = doca.RemoteWrite
	}
	host, err := s.Host.Alloc(size, access)
	must(t, err)
	defer func() { must(t, host.Close()) }()
	descriptor, err := host.Export()
	must(t, err)
	remote, err := s.DPU.Import(descriptor, host.Address(), size)
	must(t, err)
	defer func() { must(t, remote.Close()) }()
	slots, err := s.DPU.Alloc(int64(depth+fileWorkers)*testChunk, doca.LocalWrite)
	must(t, err)
	defer func() { must(t, slots.Close()) }()
	engine, err := s.DPU.NewEngine(depth)
	must(t, err)
	defer func() { must(t, engine.Close()) }()
	use(&bench{
		route: way, host: host, file: make([]byte, size), engine: engine, slots: slots, remote: remote,
		before: func(int) error { return nil },
	})
}

func (p *bench) run(ctx context.Context) error {
	return newPipeline(pipelineConfig{
		engine: p.engine, slots: p.slots, remote: p.remote, route: p.route, file: p.fileCall,
		moved: func(int64) { p.moved++ }, size: int64(len(p.file)), chunk: testChunk,
	}).run(ctx)
}

func (p *bench) fileCall(buffer []byte, offset int64) error {
	if err := p.before(int(p.calls.Add(1) - 1)); err != nil {
		return err
	}
	if p.route[vacant] == atFile {
		copy(buffer, p.file[offset:])
	} else {
		copy(p.file[offset:], buffer)
	}
	return nil
}

// source is where the bytes come from, and target where they go.
func (p *bench) source() []byte {
	if p.route[vacant] == atFile {
		return p.file
	}
	return p.host.Bytes()
}

func (p *bench) target() []byte {
	if p.route[vacant] == atFile {
		return p.host.Bytes()
	}
	return p.file
}

func (p *bench) fillSource() {
	_, _ = rand.NewChaCha8([32]byte{byte(len(p.file))}).Read(p.source())
}

func (p *bench) mustHaveMoved(t *testing.T) {
	t.Helper()
	if !bytes.Equal(p.source(), p.target()) {
		t.Errorf("%d bytes arrived changed", len(p.file))
	}
	if want := (len(p.file) + testChunk - 1) / testChunk; p.moved != want {
		t.Errorf("%d chunks of %d were counted", p.moved, want)
	}
}

func TestPipelineAtTheSeams(t *testing.T) {
	s := docatest.OpenSides(t, "")
	for name, way := range routes {
		for _, depth := range []int{1, 2, 3, 8} {
			window := int64(depth+fileWorkers) * testChunk
			for _, size := range []int64{
				1, testChunk - 1, testChunk, testChunk + 1, window - 1, window, window + 1, 5*window + 1237,
			} {
				t.Run(fmt.Sprint(name, " ", size, " in ", depth), func(t *testing.T) {
					withBench(t, s, way, size, depth, func(p *bench) {
						p.fillSource()
						must(t, p.run(t.Context()))
						p.mustHaveMoved(t)
					})
				})
			}
		}
	}
}

// Slow engines and slow files wait for each other in every way.
func TestPipelineOverASlowEngine(t *testing.T) {
	s := docatest.OpenSides(t, "task_latency_us=500")
	for name, way := range routes {
		t.Run(name, func(t *testing.T) {
			withBench(t, s, way, 40*testChunk+1, 4, func(p *bench) {
				p.fillSource()
				must(t, p.run(t.Context()))
				p.mustHaveMoved(t)
			})
		})
	}
}

const sweepChunks = 12

// Every file call fails once. The sweep ends when there is no such call any more.
func TestPipelineWhenAFileCallFails(t *testing.T) {
	s := docatest.OpenSides(t, "")
	broken := errors.New("the disk is broken")
	for name, way := range routes {
		t.Run(name, func(t *testing.T) {
			for failing := range sweepChunks + 1 {
				withBench(t, s, way, sweepChunks*testChunk, 3, func(p *bench) {
					p.fillSource()
					p.before = failAt(failing, broken)
					err := p.run(t.Context())
					if failing == sweepChunks {
						must(t, err)
						p.mustHaveMoved(t)
						return
					}
					mustBe(t, err, broken)
					if p.moved >= sweepChunks {
						t.Errorf("call %d failed, and all chunks arrived", failing)
					}
				})
			}
		})
	}
}

func failAt(failing int, err error) func(int) error {
	return func(call int) error {
		if call == failing {
			return err
		}
		return nil
	}
}

// The host takes its memory back at every point of the copy.
func TestPipelineWhenTheEngineFails(t *testing.T) {
	s := docatest.OpenSides(t, "")
	for name, way := range routes {
		t.Run(name, func(t *testing.T) {
			for revoking := range sweepChunks {
				withBench(t, s, way, sweepChunks*testChunk, 2, func(p *bench) {
					p.before = func(call int) error {
						if call == revoking {
							return p.host.Close()
						}
						return nil
					}
					err := p.run(t.Context())
					if err == nil && p.moved == sweepChunks {
						return // the other slots had done everything before the memory was gone
					}
					mustBe(t, err, doca.CodeIOFailed)
				})
			}
		})
	}
}

func TestPipelineEndsWithItsContext(t *testing.T) {
	s := docatest.OpenSides(t, "")
	because := errors.New("it was enough")
	for name, way := range routes {
		t.Run(name, func(t *testing.T) {
			for cancelling := range sweepChunks {
				withBench(t, s, way, sweepChunks*testChunk, 2, func(p *bench) {
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					p.before = func(call int) error {
						if call == cancelling {
							cancel(because)
						}
						return nil
					}
					if err := p.run(ctx); err != nil {
						mustBe(t, err, because)
					} else if p.moved != sweepChunks {
						t.Errorf("without an error %d chunks of %d moved", p.moved, sweepChunks)
					}
				})
			}
		})
	}
}

// With an engine that holds its copies, nothing but the context can end the wait.
func TestPipelineEndsWithItsContextInMidCopy(t *testing.T) {
	s := docatest.OpenSides(t, "task_latency_us=60000000")
	because := errors.New("it was enough")
	for name, way := range routes {
		t.Run(name, func(t *testing.T) {
			withBench(t, s, way, sweepChunks*testChunk, 2, func(p *bench) {
				ctx, cancel := context.WithCancelCause(t.Context())
				result := make(chan error, 1)
				go func() { result <- p.run(ctx) }()
				cancel(because)
				mustBe(t, <-result, because)
			})
		})
	}
}
