//go:build cgo

package service

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// The files of a simulation have one of these contents each, so that a mixture of two is noticed.
const (
	simFiles   = 4
	simClients = 4
	simSteps   = 6
)

func simContent(variant int) string {
	return strings.Repeat(fmt.Sprintf("variant %d\n", variant), 100+variant*1500)
}

// simulation is clients with random requests at once, over connections that break at random.
type simulation struct {
	*world
	seed uint64

	succeeded, failed *atomic.Int64 // requests of all seeds
}

// Whatever requests run at once, and wherever connections break, every file has one whole content, both sides agree on
// what succeeded, and nothing is left open, reserved or counted.
func TestSimulation(t *testing.T) {
	var succeeded, failed atomic.Int64
	seeds := uint64(30)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.config.Limits.Transfers = 1 + int(seed%3)
				for variant := range simFiles {
					w.local.Put(fmt.Sprintf("/home/%d", variant), simContent(variant))
					w.remote.Put(fmt.Sprintf("/srv/box/%d", variant), simContent(0))
				}
			}, func(w *world) { simulation{w, seed, &succeeded, &failed}.run() })
		})
	}
	if succeeded.Load() < int64(seeds) || failed.Load() < int64(seeds) {
		t.Errorf("%d requests succeeded and %d failed", succeeded.Load(), failed.Load())
	}
}

func (s simulation) run() {
	var clients sync.WaitGroup
	for i := range simClients {
		clients.Go(func() { s.client(i, rand.New(rand.NewPCG(s.seed, uint64(i)))) })
	}
	clients.Wait()
	time.Sleep(10 * time.Minute) // after which even a lost peer has been given up
	status := s.server.Status()
	if len(status.Connections) != 0 || status.Running != 0 || status.Waiting != 0 || status.Memory != 0 ||
		status.Pending != 0 || status.Totals.Bugs != 0 {
		s.Errorf("the status is %+v", status)
	}
	s.checkFiles()
	s.checkRecords(status.Totals)
}

// client makes requests. After a failure of its connection it connects again.
func (s simulation) client(number int, random *rand.Rand) {
	var c *Client
	for step := range simSteps {
		if c == nil {
			var err error
			if c, err = s.connectBroken(random); err != nil {
				c = nil
				continue
			}
		}
		err := s.request(c, number, step, random)
		if err == nil {
			s.succeeded.Add(1)
		} else {
			s.failed.Add(1)
		}
		if c.broken != nil || random.IntN(5) == 0 {
			must(s.T, c.Close())
			c = nil
		}
	}
	if c != nil {
		must(s.T, c.Close())
	}
}

// connectBroken connects over a connection that may break at a random message.
func (s simulation) connectBroken(random *rand.Rand) (*Client, error) {
	fault := func() comchtest.Fault {
		if random.IntN(2) == 0 {
			return comchtest.Faultless
		}
		return comchtest.Cut(random.IntN(120))
	}
	host, dpu := comchtest.NewPair(testMessage, fault(), fault())
	shared := &bus{}
	s.serving.Go(func() {
		_ = s.server.Serve(s.ctx, Incoming{Conn: dpu, Memory: shared, Function: "b1:00.1"})
	})
	return Connect(s.Context(), ClientConfig{Conn: host, Memory: shared, Key: s.key, Verify: s.verify})
}

// request makes a random request, and checks what its success means.
func (s simulation) request(c *Client, number, step int, random *rand.Rand) error {
	name, variant := fmt.Sprint(random.IntN(simFiles)), random.IntN(simFiles)
	switch random.IntN(6) {
	case 0, 1:
		r := s.copyOf(fmt.Sprint(variant), "box/"+name)
		r.Options.Overwrite = random.IntN(2) == 0
		_, err := c.Push(s.Context(), r)
		return err
	case 2, 3:
		target := fmt.Sprintf("from-%d-%d", number, step)
		_, err := c.Pull(s.Context(), s.copyOf(target, "box/"+name))
		if got, found := s.local.Get("/home/" + target); found != (err == nil) || found && !s.isWhole(got) {
			s.Errorf("pull: %v, and %d bytes (found: %t)", err, len(got), found)
		}
		return err
	case 4:
		_, err := s.list(c, "box", negotiate.ListRecursive)
		return err
	default:
		_, err := c.Ping(s.Context(), []byte("ping"))
		return err
	}
}

func (s simulation) isWhole(text string) bool {
	return slices.ContainsFunc([]int{0, 1, 2, 3}, func(v int) bool { return text == simContent(v) })
}

func (s simulation) checkFiles() {
	for i := range simFiles {
		if got, found := s.remote.Get(fmt.Sprintf("/srv/box/%d", i)); !found || !s.isWhole(got) {
			s.Errorf("file %d has %d bytes (found: %t), of no single variant", i, len(got), found)
		}
	}
}

// checkRecords compares what the server reports with what the clients know.
func (s simulation) checkRecords(totals Totals) {
	failed := int64(0)
	for _, r := range s.records() {
		if (r.Err == nil) != (r.Code == 0) {
			s.Errorf("code %d for %v", r.Code, r.Err)
		}
		if r.Err != nil {
			failed++
		}
	}
	if totals.Failed != failed {
		s.Errorf("%d requests failed by the totals, %d by the records", totals.Failed, failed)
	}
	began, ended := 0, 0
	for _, event := range s.observed.events {
		if strings.HasPrefix(event, "began") {
			began++
		} else if strings.HasPrefix(event, "ended") {
			ended++
		}
	}
	if began != ended {
		s.Errorf("%d requests began, %d ended", began, ended)
	}
}

// Whatever order known messages come in, and whichever of their bytes are changed, the server ends that connection or
// serves it, without a defect.
func TestRandomMessages(t *testing.T) {
	place := negotiate.Place{Share: "box", Path: "a"}
	messages := [][]byte{
		greeting(), pushMessage("a"), heartbeat(), negotiate.AppendClose(nil), negotiate.AppendWorking(nil, 1),
		copyMessage(negotiate.CopyPull, negotiate.CopyUnknown, place, 0),
		negotiate.AppendList(nil, negotiate.ListRequest{Place: place}),
		negotiate.AppendList(nil, negotiate.ListRequest{}),
		negotiate.AppendRemove(nil, negotiate.RemoveRequest{Place: place, Paths: []string{"b"}}),
		negotiate.AppendItems(nil, []negotiate.Item{{Kind: negotiate.ItemExclude, Text: "x"}}),
		negotiate.AppendServicePing(nil, negotiate.ServicePing{Payload: []byte("p")}),
		negotiate.AppendAbort(nil, negotiate.AbortFailure, "no"), []byte("garbage"),
	}
	var refused atomic.Int64
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { tryMessages(t, seed, messages, &refused) })
	}
	if refused.Load() < 10 {
		t.Errorf("only %d of the messages were refused", refused.Load())
	}
}

// tryMessages sends some of the messages at random.
func tryMessages(t *testing.T, seed uint64, messages [][]byte, refused *atomic.Int64) {
	inWorld(t, func(w *world) { w.remote.Put("/srv/box/a", "content") }, func(w *world) {
		random := rand.New(rand.NewPCG(seed, 0))
		a := w.attack().greet()
		for range 1 + random.IntN(8) {
			message := slices.Clone(messages[random.IntN(len(messages))])
			if random.IntN(3) == 0 {
				message[random.IntN(len(message))] ^= 1 << random.IntN(8)
			}
			if random.IntN(3) == 0 {
				synctest.Wait()
			}
			a.send(message)
		}
		synctest.Wait()
		for {
			message, received := a.conn.TryRecv()
			if !received {
				break
			}
			if messageType(message) == negotiate.TypeRefused {
				refused.Add(1)
			}
		}
		must(w.T, a.raw.Close())
		w.alice().Close()
		if got := w.observed.bugs; got != nil {
			w.Errorf("defects: %v", got)
		}
	})
}

// A connection that ends in the middle of the handshake is nothing that the server would report as authenticated.
func TestBrokenHandshakes(t *testing.T) {
	for cut := range 6 {
		t.Run(fmt.Sprintf("cut at %d", cut), func(t *testing.T) {
			inWorld(t, nil, func(w *world) { w.breakHandshake(cut) })
		})
	}
}

func (w *world) breakHandshake(cut int) {
	host, dpu := comchtest.NewPair(testMessage, comchtest.Cut(cut), comchtest.Faultless)
	w.serving.Go(func() { _ = w.server.Serve(w.ctx, Incoming{Conn: dpu, Memory: &bus{}}) })
	c, err := Connect(w.Context(), ClientConfig{Conn: host, Memory: &bus{}, Key: w.key, Verify: w.verify})
	if err == nil {
		must(w.T, c.Close())
		return
	}
	if !errors.Is(err, comch.ErrPeerLost) && !errors.Is(err, job.ErrIdle) {
		w.Error(err)
	}
	if w.happened("authenticated alice") == w.happened("refused") {
		w.Errorf("the events are %q", w.observed.events)
	}
	w.alice().Close()
}
