package e2e

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// refpeer is a model of an unmodified doca_dma_copy: what it sends, in what order, what it checks of what it receives,
// and what it can copy. It is written from docs/PROTOCOL.md over the device layer alone and shares no code with
// internal/negotiate, so the two do not make the same mistakes. Where the reference would wait for ever, it fails after
// refpeerPatience.
//
// It can also be a bad peer: die or fall silent after a step, or say something else in place of what it has to say. And
// it can pause after a step, until it gets SIGUSR1. The steps, in order:
//
//	host: connected, direction-sent, direction-received, export-sent, status-received
//	DPU:  connected, direction-received, direction-sent, export-received, copied, status-sent
type refpeer struct {
	role, device, rep, file string
	dieAfter, stopAfter     string
	pauseAfter              string
	blocks                  bool                // the memory that it exports blocks every access to it
	instead                 map[string][][]byte // by step, what is sent instead

	dev    *doca.Device
	conn   *doca.Connection
	owner  bool         // has the file
	size   int64        // of the file, once known
	memory *doca.Region // holds the whole file
}

const refpeerPatience = 60 * time.Second

var (
	errTold     = errors.New("STATUS(0) received")
	errConnLost = errors.New("the connection is lost")
)

// refpeerMain is the command: refpeer -role host|dpu -device PCI [-rep PCI] -file FILE.
func refpeerMain() {
	r := &refpeer{instead: map[string][][]byte{}}
	flag.StringVar(&r.role, "role", "host", "host or dpu")
	flag.StringVar(&r.device, "device", "b1:00.1", "PCI address")
	flag.StringVar(&r.rep, "rep", "b1:00.1", "PCI address of the representor, DPU only")
	flag.StringVar(&r.file, "file", "", "sent if it is there, else created")
	flag.StringVar(&r.dieAfter, "die-after", "", "step after which the process kills itself")
	flag.StringVar(&r.stopAfter, "stop-after", "", "step after which it says and does nothing more")
	flag.StringVar(&r.pauseAfter, "pause-after", "", "step after which it waits for SIGUSR1")
	flag.BoolVar(&r.blocks, "block", false, "export memory that blocks every access to it; host only")
	flag.Func("send", "STEP=HEX[,HEX...]: messages in place of the step's own", r.parseInstead)
	flag.CommandLine.Parse(os.Args[1:])
	if err := r.run(); err != nil {
		fmt.Fprintf(os.Stderr, "refpeer: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
	os.Exit(0)
}

func (r *refpeer) parseInstead(text string) error {
	step, messages, _ := strings.Cut(text, "=")
	for message := range strings.SplitSeq(messages, ",") {
		decoded, err := hex.DecodeString(message)
		if err != nil {
			return err
		}
		r.instead[step] = append(r.instead[step], decoded)
	}
	return nil
}

func (r *refpeer) run() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), refpeerPatience, errors.New("it would wait for ever"))
	defer cancel()
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft})
	if err != nil {
		return err
	}
	defer driver.Close()
	if r.dev, err = driver.OpenDevice(r.device); err != nil {
		return err
	}
	defer r.dev.Close()
	if err := r.lookAtFile(); err != nil {
		return err
	}
	defer r.free()
	if r.role == "dpu" {
		return r.runDPU(ctx)
	}
	return r.runHost(ctx)
}

func (r *refpeer) free() {
	if r.memory != nil {
		_ = r.memory.Close() // nothing depends on it any more
	}
}

// lookAtFile decides the direction as the reference does: the side that can read the file sends it.
func (r *refpeer) lookAtFile() error {
	if syscall.Access(r.file, 4) != nil {
		return nil
	}
	info, err := os.Stat(r.file)
	if err != nil {
		return err
	}
	r.owner, r.size = true, info.Size()
	return nil
}

// reached is called after each step.
func (r *refpeer) reached(ctx context.Context, step string) error {
	if step == r.dieAfter {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	if step == r.stopAfter {
		fmt.Fprintln(os.Stderr, `{"level":"info","message":"stopped"}`)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if step == r.pauseAfter {
		return pause(ctx)
	}
	return nil
}

func pause(ctx context.Context) error {
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGUSR1)
	defer signal.Stop(goOn)
	fmt.Fprintln(os.Stderr, `{"level":"info","message":"paused"}`)
	select {
	case <-goOn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// say sends the message of a step, or what is to be sent instead.
func (r *refpeer) say(ctx context.Context, step string, message []byte) error {
	messages, changed := r.instead[step]
	if !changed {
		messages = [][]byte{message}
	}
	for _, m := range messages {
		if err := r.conn.Send(ctx, m); err != nil {
			return r.lost(err)
		}
	}
	return r.reached(ctx, step)
}

// hear returns the next message, checked as far as the reference checks it: its type, and the length of its type.
func (r *refpeer) hear(ctx context.Context) ([]byte, error) {
	message, err := r.conn.Recv(ctx)
	if err != nil {
		return nil, r.lost(err)
	}
	if !acceptable(message) {
		_ = r.conn.Send(ctx, statusImage(false))
		return nil, fmt.Errorf("received % x, which is no message", message)
	}
	if imageType(message) == statusType && !imageSuccess(message) {
		return nil, errTold
	}
	return message, nil
}

// expect hears a message of one type. The reference takes any order; this model does not, because a peer that departs
// from it is what the tests look for.
func (r *refpeer) expect(ctx context.Context, wanted uint32, step string) ([]byte, error) {
	message, err := r.hear(ctx)
	if err != nil {
		return nil, err
	}
	if imageType(message) != wanted {
		_ = r.conn.Send(ctx, statusImage(false))
		return nil, fmt.Errorf("received % x at %s", message, step)
	}
	return message, r.reached(ctx, step)
}

func (r *refpeer) lost(err error) error {
	if errors.Is(err, doca.ErrDisconnected) || errors.Is(err, doca.ErrClosed) {
		return errConnLost
	}
	return err
}

// allocate makes the buffer for the whole file; the owner's holds the file's bytes.
func (r *refpeer) allocate(access doca.Access) error {
	allocate := r.dev.Alloc
	if r.blocks {
		allocate = r.blockedMemory
	}
	region, err := allocate(r.size, access)
	if err != nil {
		return err
	}
	r.memory = region
	if !r.owner || r.blocks {
		return nil
	}
	content, err := os.ReadFile(r.file)
	if err != nil {
		return err
	}
	copy(region.Bytes(), content)
	return nil
}

// save writes the file under its final name at once, as the reference does.
func (r *refpeer) save() error {
	return os.WriteFile(r.file, r.memory.Bytes(), 0o644)
}
