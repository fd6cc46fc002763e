//go:build ucx && cgo

package ucx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// side is one of two sides in this process: its context, a worker, and the endpoint to the other's worker.
type side struct {
	*testing.T
	context  *Context
	worker   *Worker
	endpoint *Endpoint
	memory   []*Memory
}

// transports are those that every machine has, and RDMA where there is a port for it.
var transports = func() map[string][]string {
	all := map[string][]string{"tcp": {"tcp"}, "shared memory": {"posix", "cma", "self"}}
	if slices.ContainsFunc(RDMAPorts(), func(p Port) bool { return p.Active }) {
		all["rdma"] = []string{"rc", "dc"}
	}
	return all
}()

// limit is how long a test waits for anything.
const limit = time.Minute

func newSide(t *testing.T, settings Settings) *side {
	t.Helper()
	s := &side{T: t}
	c, err := Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	w, err := c.NewWorker(16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
		for _, m := range s.memory {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	s.context, s.worker = c, w
	return s
}

// alloc allocates memory that is closed after the worker.
func (s *side) alloc(length int64, access Access) *Memory {
	s.Helper()
	m, err := s.context.Alloc(length, access)
	if err != nil {
		s.Fatal(err)
	}
	s.memory = append(s.memory, m)
	return m
}

func (s *side) connect(to *side) {
	s.Helper()
	address, err := to.worker.Address()
	if err != nil {
		s.Fatal(err)
	}
	if s.endpoint, err = s.worker.Connect(address, 77); err != nil {
		s.Fatal(err)
	}
}

// reach connects to the owner of a window, and returns the key of the window.
func (s *side) reach(owner *side, window *Memory) *RemoteKey {
	s.Helper()
	packed, err := window.RemoteKey()
	if err != nil {
		s.Fatal(err)
	}
	s.connect(owner)
	key, err := s.endpoint.ImportKey(packed)
	if err != nil {
		s.Fatal(err)
	}
	return key
}

// serve progresses the worker until the test ends.
func (s *side) serve() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var events [4]Event
		for ctx.Err() == nil {
			_, _ = s.worker.Reap(ctx, events[:])
		}
	}()
	s.Cleanup(func() { cancel(); <-ended })
}

// reap returns the next event, and sleeps until there is one.
func (s *side) reap() Event {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var events [1]Event
	if n, err := s.worker.Reap(ctx, events[:]); n != 1 || err != nil {
		s.Fatalf("%d events, %v", n, err)
	}
	return events[0]
}

// reapFrom is reap while a sender makes progress, whose events are completions without an error.
func (s *side) reapFrom(sender *side) Event {
	s.Helper()
	for start := time.Now(); time.Since(start) < limit; runtime.Gosched() {
		var events [1]Event
		if sender.worker.Poll(events[:]) == 1 && (events[0].Kind != Completed || events[0].Err != nil) {
			s.Errorf("the sender has %+v", events[0])
		}
		if s.worker.Poll(events[:]) == 1 {
			return events[0]
		}
	}
	s.Fatal("no event")
	return Event{}
}

func random(b []byte) {
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(b)
}

func TestGet(t *testing.T) {
	for name, tls := range transports {
		for _, length := range []int64{1, 4096, 65537, 2 << 20} {
			t.Run(fmt.Sprintf("%s/%d", name, length), func(t *testing.T) {
				settings := Settings{Reads: true, Transports: tls}
				reader, owner := newSide(t, settings), newSide(t, settings)
				window, buffer := owner.alloc(length+8, RemoteRead), reader.alloc(length+8, LocalWrite)
				random(window.Bytes())
				key := reader.reach(owner, window)
				owner.serve()
				t.Log(reader.endpoint.Transports())
				if err := reader.endpoint.Get(buffer, 3, length, window.Address()+5, key, 42); err != nil {
					t.Fatal(err)
				}
				if e := reader.reap(); e.Kind != Completed || e.Tag != 42 || e.Err != nil {
					t.Fatalf("%+v", e)
				}
				if !bytes.Equal(buffer.Bytes()[3:3+length], window.Bytes()[5:5+length]) {
					t.Error("other bytes")
				}
			})
		}
	}
}

// A window in shared memory is mapped, and follows its owner; others have no address here.
func TestMap(t *testing.T) {
	for name, tls := range transports {
		t.Run(name, func(t *testing.T) {
			settings := Settings{Reads: true, Transports: tls}
			reader, owner := newSide(t, settings), newSide(t, settings)
			window := owner.alloc(65536, RemoteRead)
			key := reader.reach(owner, window)
			mapped, err := key.Map(window.Address()+5, 65531)
			if err != nil {
				t.Fatal(err)
			}
			if name != "shared memory" {
				if mapped != nil {
					t.Error("it is mapped")
				}
				return
			}
			for range 2 {
				random(window.Bytes()[100:])
				if !bytes.Equal(mapped, window.Bytes()[5:]) {
					t.Error("other bytes")
				}
				clear(window.Bytes())
			}
			for name, c := range map[string]struct {
				address uint64
				length  int64
				wrong   bool
			}{
				"nothing":         {window.Address(), 0, false},
				"across the end":  {window.Address(), 1 << 30, true},
				"address 0":       {0, 1, true},
				"another address": {window.Address() + 1<<40, 65536, true},
			} {
				if mapped, err := key.Map(c.address, c.length); mapped != nil || errors.Is(err, ErrInvalid) != c.wrong {
					t.Errorf("%s: %d bytes, %v", name, len(mapped), err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if err := reader.endpoint.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if mapped, err := key.Map(window.Address(), 1); mapped != nil || err != nil {
				t.Error("a key without an endpoint is mapped")
			}
		})
	}
}

// Over shared memory a window is read without its owner, which makes no progress, and it is as empty as other memory.
func TestSharedMemoryIsReadWithoutItsOwner(t *testing.T) {
	for _, length := range []int64{1, 4096, 65537, 2 << 20} {
		t.Run(fmt.Sprint(length), func(t *testing.T) { readShared(t, length) })
	}
}

func readShared(t *testing.T, length int64) {
	settings := Settings{Reads: true, Transports: transports["shared memory"]}
	reader, owner := newSide(t, settings), newSide(t, settings)
	window, buffer := owner.alloc(length, RemoteRead), reader.alloc(length, LocalWrite)
	if !bytes.Equal(window.Bytes(), make([]byte, length)) {
		t.Error("the new window has content")
	}
	random(window.Bytes())
	key := reader.reach(owner, window)
	if err := reader.endpoint.Get(buffer, 0, length, window.Address(), key, 7); err != nil {
		t.Fatal(err)
	}
	if e := reader.reap(); e.Kind != Completed || e.Tag != 7 || e.Err != nil {
		t.Fatalf("%+v", e)
	}
	if !bytes.Equal(buffer.Bytes(), window.Bytes()) {
		t.Error("other bytes")
	}
}
