package ping

import (
	"context"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
)

// postedBuffers is for the message that is on its way to a consumer, and for that which is in use.
const postedBuffers = 2

// errNoFastPath is a connection without producers and consumers, over which the session does not choose that path.
var errNoFastPath = errors.New("the connection has no producers and consumers")

// fastPath is this side's consumer and producer for the payloads of one turn. It is used by one goroutine at a time.
type fastPath struct {
	conn             comch.Conn
	over             comch.FastPath
	length           int64 // bytes of a buffer
	posted, outgoing *doca.Region
	consumer         *doca.Consumer
	producer         *doca.Producer
	peer             uint32 // its consumer

	arrived [postedBuffers]doca.Received
	unread  []doca.Received // of arrived
	inUse   int64           // offset of the buffer with the message that was received last; -1: none
}

// openFastPath returns a fastPath for messages of at most length bytes. Its consumer is ready; connect completes it.
func openFastPath(ctx context.Context, device *doca.Device, conn comch.Conn, length int) (*fastPath, error) {
	over, has := conn.(comch.FastPath)
	if !has {
		return nil, errNoFastPath
	}
	f := &fastPath{conn: conn, over: over, length: int64(length), inUse: -1}
	if err := f.open(ctx, device); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *fastPath) open(ctx context.Context, device *doca.Device) (err error) {
	if f.posted, err = device.Alloc(postedBuffers*f.length, doca.LocalWrite|doca.RemoteWrite); err != nil {
		return fmt.Errorf("registering buffers: %w", err)
	}
	if f.outgoing, err = device.Alloc(f.length, doca.LocalRead); err != nil {
		return fmt.Errorf("registering buffers: %w", err)
	}
	config := doca.ConsumerConfig{Depth: postedBuffers}
	if f.consumer, err = f.over.NewConsumer(ctx, f.posted, config); err != nil {
		return fmt.Errorf("starting a consumer: %w", err)
	}
	if f.producer, err = f.over.NewProducer(1); err != nil {
		return fmt.Errorf("starting a producer: %w", err)
	}
	for i := range int64(postedBuffers) {
		if err := f.post(i * f.length); err != nil {
			return err
		}
	}
	n, err := f.consumer.Push(f.arrived[:])
	f.unread = f.arrived[:n]
	return err
}

func (f *fastPath) post(offset int64) error {
	_, err := f.consumer.Post([]doca.Receive{{Offset: offset, Length: f.length, Tag: uint64(offset)}})
	return err
}

// connect names the consumer of the peer, and waits until the device knows it.
func (f *fastPath) connect(ctx context.Context, peer uint32) error {
	f.peer = peer
	return comch.AwaitConsumers(ctx, f.conn, f.over, []uint32{peer})
}

// buffer returns the memory for a message to be sent.
func (f *fastPath) buffer() []byte { return f.outgoing.Bytes()[:0:f.length] }

// send sends a message, which is in buffer, and waits until it has been delivered.
func (f *fastPath) send(ctx context.Context, message []byte) error {
	sent := doca.FastMessage{To: f.peer, Source: f.outgoing, Length: int64(len(message))}
	if _, err := f.producer.SendWait(ctx, []doca.FastMessage{sent}); err != nil {
		return err
	}
	var completion [1]doca.Completion
	if _, err := f.producer.Reap(ctx, completion[:]); err != nil {
		return err
	}
	return completion[0].Err
}

// receive returns the next message, of the consumer or of the control channel. It is valid until the next call.
func (f *fastPath) receive(ctx context.Context) (message []byte, fast bool, err error) {
	if f.inUse >= 0 {
		offset := f.inUse
		f.inUse = -1
		if err := f.post(offset); err != nil {
			return nil, false, err
		}
	}
	for len(f.unread) == 0 {
		if message, received := f.conn.TryRecv(); received {
			return message, false, nil
		}
		select {
		case <-f.conn.Done():
			message, err := f.conn.Recv(ctx) // the last messages, and then why the connection has ended
			return message, false, err
		default:
		}
		if err := f.await(ctx); err != nil {
			return nil, false, err
		}
	}
	first := f.unread[0]
	f.unread = f.unread[1:]
	if first.Err != nil {
		return nil, false, first.Err
	}
	f.inUse = int64(first.Tag)
	return f.posted.Bytes()[f.inUse : f.inUse+first.Length], true, nil
}

// await waits until there is something at the consumer, or perhaps in the control channel.
func (f *fastPath) await(ctx context.Context) error {
	waiting, wake := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-f.conn.Arrived():
		case <-f.conn.Done():
		case <-waiting.Done():
		}
		wake()
	}()
	n, err := f.consumer.Reap(waiting, f.arrived[:])
	woken := waiting.Err() != nil
	wake()
	<-watched
	f.unread = f.arrived[:n]
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case woken:
		return nil
	}
	return err
}

// close ends what open has started, also in part. The memory stays if the device may still use it.
func (f *fastPath) close() error {
	var errs []error
	if f.producer != nil {
		errs = append(errs, f.producer.Close())
	}
	if f.consumer != nil {
		errs = append(errs, f.consumer.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, region := range []*doca.Region{f.outgoing, f.posted} {
		if region != nil {
			errs = append(errs, region.Close())
		}
	}
	return errors.Join(errs...)
}
