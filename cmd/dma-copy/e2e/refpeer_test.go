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

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// refpeer is a model of an unmodified doca_dma_copy: what it sends, in what order, what it checks of what it receives,
// and what it can copy. It is written from its page over the device layer alone and shares no code with
// internal/negotiate, so that the two do not make the same mistakes. Where the reference program waits without a limit,
// the model fails after refpeerTimeout.
//
// It can also be a bad peer: kill itself or fall silent after a step, or send other messages instead of a step's own.
// And it can pause after a step until it gets SIGUSR1. The steps, in order:
//
//	host: connected, direction-sent, direction-received, export-sent, status-received
//	DPU:  connected, direction-received, direction-sent, export-received, copied, status-sent
type refpeer struct {
	role, device, rep, file string
	dieAfter, stopAfter     string
	pauseAfter              string
	blockMemory             bool                // the memory that it exports blocks every access
	replacements            map[string][][]byte // by step, the messages sent instead of its own

	dev    *doca.Device
	conn   *doca.Connection
	sends  bool         // this side has the file
	size   int64        // of the file, once known
	memory *doca.Region // for the whole file
}

// refpeerTimeout is less than processTimeout, so that the model itself says why it fails.
const refpeerTimeout = 4 * time.Minute

var (
	errPeerFailed = errors.New("STATUS(0) received")
	errPeerLost   = errors.New("connection lost")
)

// refpeerMain is the command: refpeer -role host|dpu -device PCI [-rep PCI] -file FILE.
func refpeerMain() {
	r := &refpeer{replacements: map[string][][]byte{}}
	flag.StringVar(&r.role, "role", "host", "host or dpu")
	flag.StringVar(&r.device, "device", "b1:00.1", "PCI address")
	flag.StringVar(&r.rep, "rep", "b1:00.1", "PCI address of the representor, DPU only")
	flag.StringVar(&r.file, "file", "", "sent if it is there, else created")
	flag.StringVar(&r.dieAfter, "die-after", "", "step after which the process kills itself with SIGKILL")
	flag.StringVar(&r.stopAfter, "stop-after", "", "step after which it sends and does nothing more")
	flag.StringVar(&r.pauseAfter, "pause-after", "", "step after which it waits for SIGUSR1")
	flag.BoolVar(&r.blockMemory, "block", false, "export memory that blocks every access to it; host only")
	flag.Func("send", "STEP=HEX[,HEX...]: messages in place of the step's own", r.parseReplacements)
	flag.CommandLine.Parse(os.Args[1:])
	if err := r.run(); err != nil {
		fmt.Fprintf(os.Stderr, "refpeer: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
	os.Exit(0)
}

func (r *refpeer) parseReplacements(text string) error {
	step, messages, _ := strings.Cut(text, "=")
	for message := range strings.SplitSeq(messages, ",") {
		decoded, err := hex.DecodeString(message)
		if err != nil {
			return err
		}
		r.replacements[step] = append(r.replacements[step], decoded)
	}
	return nil
}

func (r *refpeer) run() error {
	stillWaiting := errors.New("the reference program would still wait")
	ctx, cancel := context.WithTimeoutCause(context.Background(), refpeerTimeout, stillWaiting)
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
	if err := r.inspectFile(); err != nil {
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
		_ = r.memory.Close() // the process ends
	}
}

// inspectFile decides the direction as the reference program does: the side that can read the file sends it.
func (r *refpeer) inspectFile() error {
	if unix.Access(r.file, unix.R_OK) != nil {
		return nil
	}
	info, err := os.Stat(r.file)
	if err != nil {
		return err
	}
	r.sends, r.size = true, info.Size()
	return nil
}

// afterStep is called after each step. It kills, stops or pauses the process if it was asked to.
func (r *refpeer) afterStep(ctx context.Context, step string) error {
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

// pause waits for SIGUSR1.
func pause(ctx context.Context) error {
	resume := make(chan os.Signal, 1)
	signal.Notify(resume, syscall.SIGUSR1)
	defer signal.Stop(resume)
	fmt.Fprintln(os.Stderr, `{"level":"info","message":"paused"}`)
	select {
	case <-resume:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// send sends the message of a step, or its replacements.
func (r *refpeer) send(ctx context.Context, step string, message []byte) error {
	messages, replaced := r.replacements[step]
	if !replaced {
		messages = [][]byte{message}
	}
	for _, m := range messages {
		if err := r.conn.Send(ctx, m); err != nil {
			return connectionError(err)
		}
	}
	return r.afterStep(ctx, step)
}

// receive returns the next message, checked as far as the reference program checks it: its type and its length.
func (r *refpeer) receive(ctx context.Context) ([]byte, error) {
	message, err := r.conn.Recv(ctx)
	if err != nil {
		return nil, connectionError(err)
	}
	if !isAcceptable(message) {
		_ = r.conn.Send(ctx, statusImage(false))
		return nil, fmt.Errorf("received % x, which is not a message", message)
	}
	if imageType(message) == statusType && !imageSuccess(message) {
		return nil, errPeerFailed
	}
	return message, nil
}

// expect receives a message of one type. The reference program accepts messages in any order. The model does not, so
// that the tests notice a peer that sends them in another order.
func (r *refpeer) expect(ctx context.Context, wanted uint32, step string) ([]byte, error) {
	message, err := r.receive(ctx)
	if err != nil {
		return nil, err
	}
	if imageType(message) != wanted {
		_ = r.conn.Send(ctx, statusImage(false))
		return nil, fmt.Errorf("received % x at %s", message, step)
	}
	return message, r.afterStep(ctx, step)
}

func connectionError(err error) error {
	if errors.Is(err, doca.ErrDisconnected) || errors.Is(err, doca.ErrClosed) {
		return errPeerLost
	}
	return err
}

// allocate makes the buffer for the whole file and, on the side that sends, reads the file into it.
func (r *refpeer) allocate(access doca.Access) error {
	allocate := r.dev.Alloc
	if r.blockMemory {
		allocate = r.allocateBlocking
	}
	region, err := allocate(r.size, access)
	if err != nil {
		return err
	}
	r.memory = region
	if !r.sends || r.blockMemory {
		return nil
	}
	content, err := os.ReadFile(r.file)
	if err != nil {
		return err
	}
	copy(region.Bytes(), content)
	return nil
}

// save writes the file under its final name at once, as the reference program does.
func (r *refpeer) save() error {
	return os.WriteFile(r.file, r.memory.Bytes(), 0o644)
}
