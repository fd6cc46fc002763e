//go:build ucx && cgo

package ucx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// introduction is what two processes of a test tell each other, as a JSON line each.
type introduction struct {
	Worker []byte // address of the worker
	Key    []byte // of the window
	Window uint64 // address of the window
}

const windowLength = 1 << 20

// transportsVariable has the transports of a process.
const transportsVariable = "UCX_TEST_TRANSPORTS"

// peer is a worker in a process of its own.
type peer struct {
	introduction
	command *exec.Cmd
	stdin   io.WriteCloser
}

// startPeer starts a process that introduces itself, and goes on until its standard input ends.
func startPeer(t *testing.T, process string, tls []string) *peer {
	t.Helper()
	command := processCommand(t, process)
	command.Env = append(command.Env, transportsVariable+"="+strings.Join(tls, ","))
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &peer{command: command, stdin: stdin}
	t.Cleanup(func() {
		p.signal(t, syscall.SIGKILL)
		_ = command.Wait()
	})
	if err := json.NewDecoder(stdout).Decode(&p.introduction); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *peer) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}

// kill returns when the process has ended.
func (p *peer) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	_ = p.command.Wait()
}

func processSettings(reads bool) Settings {
	return Settings{Reads: reads, Transports: strings.Split(os.Getenv(transportsVariable), ",")}
}

// objects are what a process of a test has: a worker, and memory of windowLength.
type objects struct {
	context *Context
	worker  *Worker
	memory  *Memory
}

// openObjects opens those of a process, with a worker for so many operations.
func openObjects(reads bool, depth int, access Access) (o objects, err error) {
	if o.context, err = Open(processSettings(reads)); err != nil {
		return o, err
	}
	if o.worker, err = o.context.NewWorker(depth); err != nil {
		return o, err
	}
	o.memory, err = o.context.Alloc(windowLength, access)
	return o, err
}

// giveUp waits for what has been begun, for a moment, and closes all.
func (o objects) giveUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if o.worker.Inflight() > 0 {
		var events [1]Event
		_, _ = o.worker.Reap(ctx, events[:])
	}
	return o.close(ctx)
}

func (o objects) close(ctx context.Context) error {
	return errors.Join(o.worker.Close(ctx), o.memory.Close(), o.context.Close())
}

// ownWindow is the process "owner": the owner of a window that it serves.
func ownWindow() error {
	own, err := openObjects(true, 1, RemoteRead)
	if err != nil {
		return err
	}
	random(own.memory.Bytes())
	told := introduction{Window: own.memory.Address()}
	if told.Worker, err = own.worker.Address(); err != nil {
		return err
	}
	if told.Key, err = own.memory.RemoteKey(); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	for ctx.Err() == nil {
		var events [1]Event
		if _, err := own.worker.Reap(ctx, events[:]); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return own.close(ctx)
}

// sendForever is the process "sender": it sends to the slots of newReceiver, whose worker it is told, without regard to
// whether they are vacant.
func sendForever() error {
	own, err := openObjects(false, 8, LocalRead)
	if err != nil {
		return err
	}
	var told, other introduction
	if told.Worker, err = own.worker.Address(); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		return err
	}
	if err := json.NewDecoder(os.Stdin).Decode(&other); err != nil {
		return err
	}
	e, err := own.worker.Connect(other.Worker, 1)
	if err != nil {
		return err
	}
	for slot := uint32(1); ; slot = (slot + 2) % 8 {
		for own.worker.Inflight() == own.worker.Depth() {
			var events [8]Event
			if _, err := own.worker.Reap(context.Background(), events[:]); err != nil {
				return err
			}
		}
		if err := e.Send(token, slot, own.memory, 0, windowLength, 1); err != nil {
			return err
		}
	}
}

// reader is a side that has read from the window of a peer once.
func newReader(t *testing.T, p *peer, tls []string) (*side, *Memory, *RemoteKey) {
	t.Helper()
	r := newSide(t, Settings{Reads: true, Transports: tls})
	buffer := r.alloc(windowLength, LocalWrite)
	var err error
	if r.endpoint, err = r.worker.Connect(p.Worker, 77); err != nil {
		t.Fatal(err)
	}
	key, err := r.endpoint.ImportKey(p.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.endpoint.Get(buffer, 0, windowLength, p.Window, key, 1); err != nil {
		t.Fatal(err)
	}
	if e := r.reap(); e.Kind != Completed || e.Err != nil {
		t.Fatalf("%+v", e)
	}
	return r, buffer, key
}

func TestGetFromAnotherProcess(t *testing.T) {
	for name, tls := range transports {
		t.Run(name, func(t *testing.T) {
			p := startPeer(t, "owner", tls)
			_, buffer, _ := newReader(t, p, tls)
			want := make([]byte, windowLength)
			if random(want); string(buffer.Bytes()) != string(want) {
				t.Error("other bytes")
			}
			if err := p.stdin.Close(); err != nil {
				t.Error(err)
			}
			if err := p.command.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TCP reports a killed peer by itself: the endpoint fails, and operations complete with errors.
func TestPeerIsKilled(t *testing.T) {
	p := startPeer(t, "owner", []string{"tcp"})
	r, buffer, key := newReader(t, p, []string{"tcp"})
	p.signal(t, syscall.SIGSTOP)
	for tag := range uint64(4) {
		if err := r.endpoint.Get(buffer, 0, windowLength, p.Window, key, tag); err != nil {
			t.Fatal(err)
		}
	}
	p.kill(t)
	failed, completed := 0, 0
	for completed < 4 || failed < 1 {
		switch e := r.reap(); {
		case e.Err == nil:
			t.Fatalf("%+v", e)
		case e.Kind == Completed:
			completed++
		case e.Kind == Failed && e.Tag == 77:
			failed++
		default:
			t.Fatalf("%+v", e)
		}
	}
	if failed != 1 || completed != 4 {
		t.Errorf("%d endpoints failed, and %d operations of 4", failed, completed)
	}
	err := r.endpoint.Get(buffer, 0, 1, p.Window, key, 9)
	if err == nil {
		err = r.reap().Err
	}
	if err == nil {
		t.Error("a failed endpoint can be used")
	}
}

// Nothing reports a stopped peer, nor over shared memory a killed one. Closing does not wait for it any longer than its
// context says.
func TestCloseWithoutThePeer(t *testing.T) {
	for name, tls := range transports {
		for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			t.Run(fmt.Sprintf("%s/%s", name, signal), func(t *testing.T) {
				p := startPeer(t, "owner", tls)
				r, buffer, key := newReader(t, p, tls)
				if p.signal(t, signal); signal == syscall.SIGKILL {
					_ = p.command.Wait()
				}
				for tag := range uint64(4) {
					// Refused at once where the kernel says that the process is gone.
					_ = r.endpoint.Get(buffer, 0, windowLength, p.Window, key, tag)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				defer cancel()
				if err := r.worker.Close(ctx); err != nil {
					t.Error(err)
				}
				if err := buffer.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A sender that is killed or stopped at any time leaves a receiver that can be closed, also while UCX fetches a
// message.
func TestSenderIsLost(t *testing.T) {
	for name, tls := range transports {
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
			for round := range 4 {
				t.Run(fmt.Sprintf("%s/%s/%d", name, signal, round), func(t *testing.T) {
					loseSender(t, tls, signal, 3*round)
				})
			}
		}
	}
}

// loseSender sends a signal to a sender after some messages, and closes the receiver.
func loseSender(t *testing.T, tls []string, signal syscall.Signal, messages int) {
	p := startPeer(t, "sender", tls)
	r, memory := newReceiver(t, Settings{Transports: tls}, windowLength)
	address, err := r.worker.Address()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(p.stdin).Encode(introduction{Worker: address}); err != nil {
		t.Fatal(err)
	}
	for range messages {
		e := r.reap()
		if e.Kind == Refused {
			break // the sender overtook the posted slots
		}
		if e.Kind != Arrived {
			t.Fatalf("%+v", e)
		}
		if err := r.worker.Post(uint32(e.Tag)); err != nil {
			t.Fatal(err)
		}
	}
	if p.signal(t, signal); signal == syscall.SIGKILL {
		_ = p.command.Wait()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	for ctx.Err() == nil {
		var events [8]Event
		_, _ = r.worker.Reap(ctx, events[:])
	}
	if err := errors.Join(r.worker.Close(ctx), memory.Close()); err != nil {
		t.Error(err)
	}
}

// What was closed by its worker is closed: nothing uses the memory of C.
func TestEndpointAfterItsWorker(t *testing.T) {
	for name, tls := range transports {
		t.Run(name, func(t *testing.T) {
			p := startPeer(t, "owner", tls)
			r, buffer, key := newReader(t, p, tls)
			p.signal(t, syscall.SIGSTOP)
			_ = r.endpoint.Get(buffer, 0, windowLength, p.Window, key, 1)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			if err := r.worker.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if err := r.endpoint.Get(buffer, 0, 1, p.Window, key, 1); !errors.Is(err, ErrClosed) {
				t.Errorf("Get: %v", err)
			}
			if err := r.endpoint.Send(token, 1, buffer, 0, 1, 1); !errors.Is(err, ErrClosed) {
				t.Errorf("Send: %v", err)
			}
			if _, err := r.endpoint.ImportKey(p.Key); !errors.Is(err, ErrClosed) {
				t.Errorf("ImportKey: %v", err)
			}
			if got := r.endpoint.Transports(); got != "" {
				t.Errorf("Transports: %q", got)
			}
			if err := r.endpoint.Close(ctx); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}
