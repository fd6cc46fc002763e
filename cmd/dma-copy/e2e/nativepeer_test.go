package e2e

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// nativePeer is a model of a peer that speaks the native protocol until it does something that the protocol forbids. It
// is written over the device layer alone, and shares no code with internal/negotiate and internal/dmaxfer. What it does
// is the act of a case.
type nativePeer struct {
	role, device string

	dev    *doca.Device
	conn   *doca.Connection
	chunk  uint32 // as planned
	depth  uint32
	window []byte // the host's memory, on the host
}

const (
	peerChunk = 1 << 16
	peerDepth = 4
)

// errAborted is the end that a peer expects: the other side has noticed what it did.
var errAborted = errors.New("ABORT received")

// nativepeerMain is the command: nativepeer -role host|dpu -case NAME. It prints the ABORT that it receives.
func nativepeerMain() {
	p := &nativePeer{}
	var name string
	flag.StringVar(&p.role, "role", "host", "host or dpu")
	flag.StringVar(&name, "case", "", "what to do")
	flag.CommandLine.Parse(os.Args[1:])
	p.device = map[string]string{"host": "b1:00.1", "dpu": "03:00.1"}[p.role]
	err := p.run(findHostileCase(name))
	if err == nil || errors.Is(err, errAborted) {
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "nativepeer: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	os.Exit(1)
}

func (p *nativePeer) run(c *hostileCase) error {
	ctx, cancel := context.WithTimeout(context.Background(), refpeerTimeout)
	defer cancel()
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft})
	if err != nil {
		return err
	}
	defer driver.Close()
	if p.dev, err = driver.OpenDevice(p.device); err != nil {
		return err
	}
	defer p.dev.Close()
	if p.role == "dpu" {
		return p.serve(ctx, c)
	}
	client, err := p.dev.NewClient(referenceServer, doca.ChannelConfig{})
	if err != nil {
		return err
	}
	defer client.Close()
	connecting := refpeer{}
	if err := connecting.connect(ctx, client); err != nil {
		return err
	}
	p.conn = connecting.conn
	return p.converse(ctx, c)
}

func (p *nativePeer) serve(ctx context.Context, c *hostileCase) error {
	rep, err := p.dev.OpenRepresentor("b1:00.1")
	if err != nil {
		return err
	}
	defer rep.Close()
	server, err := p.dev.Listen(rep, referenceServer, doca.ChannelConfig{})
	if err != nil {
		return err
	}
	defer server.Close()
	if p.conn, err = server.Accept(ctx); err != nil {
		return err
	}
	return p.converse(ctx, c)
}

// converse agrees with the other side, does what the case is about, and waits until the other side ends the session.
func (p *nativePeer) converse(ctx context.Context, c *hostileCase) error {
	region, err := p.dev.Alloc(peerChunk*peerDepth, doca.RemoteWrite)
	if err != nil {
		return err
	}
	defer region.Close()
	if err := p.agree(ctx, c.hello); err != nil {
		return err
	}
	p.window = region.Bytes()
	if p.role == "host" && !c.noWindow {
		descriptor, err := region.Export()
		if err != nil {
			return err
		}
		if err := p.send(ctx, windowImage(region.Address(), uint64(p.chunk)*uint64(p.depth), descriptor)); err != nil {
			return err
		}
	}
	if err := c.act(ctx, p); err != nil || c.ends {
		return err
	}
	_, err = p.await(ctx, 0)
	return err
}

// agree exchanges DIRECTION and HELLO.
func (p *nativePeer) agree(ctx context.Context, flags uint32) error {
	if p.role == "host" {
		if err := p.send(ctx, offerImage(0xdc, nativeVersion, nativeVersion)); err != nil {
			return err
		}
	}
	if _, err := p.await(ctx, directionType); err != nil {
		return err
	}
	if p.role == "dpu" {
		if err := p.send(ctx, offerImage(0xdc, nativeVersion, nativeVersion)); err != nil {
			return err
		}
	}
	if err := p.send(ctx, helloImage(flags, peerChunk, peerDepth)); err != nil {
		return err
	}
	hello, err := p.await(ctx, helloType)
	if err != nil {
		return err
	}
	chunk, depth := helloLimits(hello)
	p.chunk, p.depth = min(chunk, peerChunk), min(depth, peerDepth)
	return nil
}

func (p *nativePeer) send(ctx context.Context, messages ...[]byte) error {
	for _, m := range messages {
		if err := p.conn.Send(ctx, m); err != nil {
			return connectionError(err)
		}
	}
	return nil
}

// await returns the next message of a type, and ignores others. It returns errAborted after an ABORT.
func (p *nativePeer) await(ctx context.Context, wanted uint32) ([]byte, error) {
	for {
		m, err := p.conn.Recv(ctx)
		if err != nil {
			return nil, connectionError(err)
		}
		switch imageType(m) {
		case wanted:
			return m, nil
		case abortType:
			return nil, p.aborted(m)
		}
	}
}

// aborted prints an ABORT, and returns errAborted.
func (p *nativePeer) aborted(abort []byte) error {
	text, err := json.Marshal(fmt.Sprintf("ABORT(%d): %s", abort[4], abort[12:]))
	fmt.Fprintf(os.Stderr, `{"level":"info","message":%s}`+"\n", text)
	return cmp.Or(err, errAborted)
}

// awaitItems awaits messages of a type until they have so many items.
func (p *nativePeer) awaitItems(ctx context.Context, wanted uint32, items int) error {
	for items > 0 {
		m, err := p.await(ctx, wanted)
		if err != nil {
			return err
		}
		items -= int(binary.BigEndian.Uint32(m[4:]))
	}
	return nil
}

// announce begins a transfer of a tree with these entries below the root.
func (p *nativePeer) announce(ctx context.Context, entries ...wireEntry) error {
	return p.send(ctx, transferImage, entriesImage(append([]wireEntry{wireRoot}, entries...)...))
}

// announceNeeded is announce for files, and awaits that so many of them are needed.
func (p *nativePeer) announceNeeded(ctx context.Context, needed int, entries ...wireEntry) error {
	err := p.announce(ctx, entries...)
	if err == nil && p.role == "dpu" {
		_, err = p.await(ctx, windowType)
	}
	if err == nil {
		err = p.awaitItems(ctx, answersType, needed)
	}
	return err
}

// repeat sends messages until the other side ends the session.
func (p *nativePeer) repeat(ctx context.Context, next func(i int) []byte) error {
	ending, end := context.WithCancelCause(ctx)
	go func() {
		_, err := p.await(ctx, 0)
		end(err)
	}()
	for i := 0; ; i++ {
		if err := p.conn.Send(ending, next(i)); err != nil {
			<-ending.Done()
			return context.Cause(ending)
		}
	}
}
