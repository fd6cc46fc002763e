//go:build ucx && cgo

package ucx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// An address of a version that UCX does not know is refused before UCX sees it.
func TestAddressOfAnotherVersion(t *testing.T) {
	s := newSide(t, Settings{Transports: []string{"tcp"}})
	address, err := s.worker.Address()
	if err != nil {
		t.Fatal(err)
	}
	for version := range byte(16) {
		changed := bytes.Clone(address)
		changed[0] = changed[0]&^addressVersions | version
		if version <= lastAddressVersion {
			if version == address[0]&addressVersions {
				s.connect(s)
			}
			continue
		}
		if _, err := s.worker.Connect(changed, 1); !errors.Is(err, ErrInvalid) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// damages are what a peer can do to an address.
var damages = map[string]func(*rand.Rand, []byte) []byte{
	"a byte changed": func(r *rand.Rand, address []byte) []byte {
		address[1+r.IntN(len(address)-1)] ^= byte(1 + r.IntN(255))
		return address
	},
	"cut": func(r *rand.Rand, address []byte) []byte { return address[:1+r.IntN(len(address)-1)] },
	"random": func(r *rand.Rand, address []byte) []byte {
		for i := range address[1:] {
			address[1+i] = byte(r.Uint32())
		}
		return address
	},
}

// A malformed address may end the process by an assertion of UCX, which is why no path over UCX is used by default. It
// does nothing else: no access beyond the address, whose end UCX does not know, and no wait without end.
func TestMalformedAddress(t *testing.T) {
	for name, tls := range transports {
		s := newSide(t, Settings{Transports: tls})
		address, err := s.worker.Address()
		if err != nil {
			t.Fatal(err)
		}
		for kind, damage := range damages {
			for seed := range uint64(6) {
				t.Run(fmt.Sprintf("%s/%s/%d", name, kind, seed), func(t *testing.T) {
					t.Parallel()
					given := damage(rand.New(rand.NewPCG(seed, 1)), bytes.Clone(address))
					mustEndOrAbort(t, tls, given)
				})
			}
		}
	}
}

func mustEndOrAbort(t *testing.T, tls []string, address []byte) {
	t.Helper()
	given, err := json.Marshal(introduction{Worker: address})
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	command := processCommand(t, "connect")
	// UCX itself forgets some memory of a connection that it could not make.
	command.Env = append(command.Env, transportsVariable+"="+strings.Join(tls, ","), "ASAN_OPTIONS=detect_leaks=0")
	command.Stdin, command.Stderr = bytes.NewReader(given), &stderr
	out, err := command.Output()
	if err == nil && string(out) == "ended\n" {
		return
	}
	if said := stderr.String(); !strings.Contains(said, "SIGABRT") {
		t.Errorf("address %x: %v, %s%s", address, err, out, said)
	}
}

// connectAndSend is the process "connect": it sends to the worker whose address it is told, and gives up.
func connectAndSend() error {
	var other introduction
	if err := json.NewDecoder(os.Stdin).Decode(&other); err != nil {
		return err
	}
	c, err := Open(processSettings(false))
	if err != nil {
		return err
	}
	w, err := c.NewWorker(1)
	if err != nil {
		return err
	}
	m, err := c.Alloc(windowLength, LocalRead)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if e, err := w.Connect(other.Worker, 1); err == nil && e.Send(token, 1, m, 0, windowLength, 1) == nil {
		var events [1]Event
		_, _ = w.Reap(ctx, events[:])
	}
	if err := errors.Join(w.Close(ctx), m.Close(), c.Close()); err != nil {
		return err
	}
	fmt.Println("ended")
	return nil
}
