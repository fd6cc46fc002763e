//go:build ucx && cgo

package ucx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// An address of another version is refused before UCX sees it, which knows two and ends the process at others.
func TestAddressOfAnotherVersion(t *testing.T) {
	s := newSide(t, Settings{Transports: []string{"tcp"}})
	address, err := s.worker.Address()
	if err != nil {
		t.Fatal(err)
	}
	s.connect(s)
	for version := byte(1); version < 16; version++ {
		changed := bytes.Clone(address)
		changed[0] = changed[0]&^addressVersion | version
		if _, err := s.worker.Connect(changed, 1); !errors.Is(err, ErrInvalid) {
			t.Errorf("version %d: %v", version+1, err)
		}
	}
}

// The addresses of this release of UCX are understood: those of all transports of this machine, with and without the
// debugging information that an environment variable adds.
func TestAddressesAreUnderstood(t *testing.T) {
	for name, tls := range transports {
		for _, debug := range []string{"n", "y"} {
			t.Run(name+"/"+debug, func(t *testing.T) {
				t.Setenv("UCX_ADDRESS_DEBUG_INFO", debug)
				s := newSide(t, Settings{Transports: tls})
				address, err := s.worker.Address()
				if err != nil {
					t.Fatal(err)
				}
				entries, err := parseAddress(address)
				if err != nil {
					t.Fatal(err)
				}
				resources, err := s.context.Resources()
				if err != nil || len(entries) == 0 || len(entries) > len(resources) {
					t.Errorf("%d transports in %x, of %v, %v", len(entries), address, resources, err)
				}
			})
		}
	}
}

// damages are what a peer can do to an address or a key.
var damages = map[string]func(*rand.Rand, []byte) []byte{
	"a byte changed": func(r *rand.Rand, given []byte) []byte {
		given[1+r.IntN(len(given)-1)] ^= byte(1 + r.IntN(255))
		return given
	},
	"bytes changed": func(r *rand.Rand, given []byte) []byte {
		for range 2 + r.IntN(4) {
			given[1+r.IntN(len(given)-1)] = byte(r.Uint32())
		}
		return given
	},
	"cut": func(r *rand.Rand, given []byte) []byte { return given[:1+r.IntN(len(given)-1)] },
	"random": func(r *rand.Rand, given []byte) []byte {
		for i := range given[1:] {
			given[1+i] = byte(r.Uint32())
		}
		return given
	},
}

// A malformed address or key does not end the process: it is refused here or by UCX, or leads nowhere. That is so over
// TCP, where each can come from another machine. Over shared memory both name memory of a process of the same user.
func TestMalformedAddress(t *testing.T) {
	malformed(t, "connect", "sender", func(i *introduction) *[]byte { return &i.Worker })
}

func TestMalformedKey(t *testing.T) {
	malformed(t, "import", "owner", func(i *introduction) *[]byte { return &i.Key })
}

// malformed has a process use damaged parts of the introduction of another one.
func malformed(t *testing.T, process, of string, part func(*introduction) *[]byte) {
	tcp := []string{"tcp"}
	for kind, damage := range damages {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("%s/%d", kind, seed), func(t *testing.T) {
				t.Parallel()
				given := startPeer(t, of, tcp).introduction
				damaged := part(&given)
				*damaged = damage(rand.New(rand.NewPCG(seed, 1)), *damaged)
				mustEnd(t, process, tcp, given)
			})
		}
	}
}

func mustEnd(t *testing.T, process string, tls []string, given introduction) {
	t.Helper()
	input, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	command := processCommand(t, process)
	// UCX itself forgets some memory of a connection that it could not make.
	command.Env = append(command.Env, transportsVariable+"="+strings.Join(tls, ","), "ASAN_OPTIONS=detect_leaks=0")
	command.Stdin, command.Stderr = bytes.NewReader(input), &stderr
	if out, err := command.Output(); err != nil || string(out) != "ended\n" {
		t.Errorf("%+v: %v, %s%s", given, err, out, stderr.String())
	}
}

// connectAndSend is the process "connect": it sends to the worker whose address it is told, and gives up.
func connectAndSend() error {
	var other introduction
	if err := json.NewDecoder(os.Stdin).Decode(&other); err != nil {
		return err
	}
	own, err := openObjects(false, 1, LocalRead)
	if err != nil {
		return err
	}
	if e, err := own.worker.Connect(other.Worker, 1); err == nil {
		_ = e.Send(token, 1, own.memory, 0, windowLength, 1) // it may fail
	}
	if err := own.giveUp(); err != nil {
		return err
	}
	fmt.Println("ended")
	return nil
}
