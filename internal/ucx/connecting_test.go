//go:build ucx && cgo

package ucx

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// knownAbort is in the text of an assertion of UCX 1.13, which Debian's build has: over TCP, a worker that answers a
// request to connect ends its process if the side that has sent the request is gone before the answer is. Builds
// without assertions continue.
const knownAbort = "got REP message"

// Either side may be closed by force at any time of the connection, and then the other one. That ends no process,
// except for the assertion that is documented in SECURITY.md.
func TestCloseWhileConnecting(t *testing.T) {
	for name, tls := range transports {
		t.Run(name, func(t *testing.T) {
			var messages strings.Builder
			command := processCommand(t, "closing")
			command.Env = append(command.Env, transportsVariable+"="+strings.Join(tls, ","))
			command.Stderr = &messages
			err := command.Run()
			_, ended := errors.AsType[*exec.ExitError](err)
			switch known := strings.Contains(messages.String(), knownAbort); {
			case name == "tcp" && ended && known:
				t.Logf("UCX ended the process: %s", knownAbort)
			case err != nil:
				t.Errorf("%v: %s", err, messages.String())
			}
		})
	}
}

// closeWhileConnecting is the process "closing". It closes each of two sides many times, at a random time of the
// connection.
func closeWhileConnecting() error {
	const seed, rounds = 1, 20
	random := rand.New(rand.NewPCG(seed, seed))
	whole := 0
	for round := range rounds {
		c, err := startConnecting(processSettings(true))
		if err != nil {
			return err
		}
		if whole == 0 {
			if whole, err = c.steps(); err != nil {
				return err
			}
		}
		for range random.IntN(1 + random.IntN(whole+2)) { // more often early, when UCX's messages are under way
			c.step()
		}
		sides := []*end{c.reader, c.owner}
		first, second := sides[round%2], sides[1-round%2]
		err = first.close()
		for range random.IntN(whole + 2) {
			c.step()
		}
		if err = errors.Join(err, second.close()); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// end is one end of a connection.
type end struct {
	context *Context
	worker  *Worker
	memory  *Memory
}

func newEnd(s Settings, access Access) (*end, error) {
	c, err := Open(s)
	if err != nil {
		return nil, err
	}
	w, err := c.NewWorker(1)
	if err != nil {
		return nil, err
	}
	m, err := c.Alloc(4096, access)
	return &end{context: c, worker: w, memory: m}, err
}

// close closes the end without waiting for the other one.
func (e *end) close() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return errors.Join(e.worker.Close(now), e.memory.Close(), e.context.Close())
}

// connecting is a connection that is being made, by a read of the owner's memory.
type connecting struct{ reader, owner *end }

func startConnecting(s Settings) (connecting, error) {
	owner, err := newEnd(s, RemoteRead)
	if err != nil {
		return connecting{}, err
	}
	reader, err := newEnd(s, LocalWrite)
	if err != nil {
		return connecting{}, err
	}
	address, addressErr := owner.worker.Address()
	packed, keyErr := owner.memory.RemoteKey()
	if err := errors.Join(addressErr, keyErr); err != nil {
		return connecting{}, err
	}
	endpoint, err := reader.worker.Connect(address, 77)
	if err != nil {
		return connecting{}, err
	}
	key, err := endpoint.ImportKey(packed)
	if err != nil {
		return connecting{}, err
	}
	return connecting{reader, owner}, endpoint.Get(reader.memory, 0, 1, owner.memory.Address(), key, 1)
}

// step makes progress on the sides that are open, and reports whether the read has ended.
func (c connecting) step() bool {
	var events [4]Event
	c.owner.worker.Poll(events[:])
	ended := c.reader.worker.Poll(events[:]) > 0
	time.Sleep(50 * time.Microsecond)
	return ended
}

// steps returns how many steps the connection and the read take.
func (c connecting) steps() (n int, err error) {
	for start := time.Now(); !c.step(); n++ {
		if time.Since(start) > limit {
			return n, errors.New("the first read does not end")
		}
	}
	return n, nil
}
