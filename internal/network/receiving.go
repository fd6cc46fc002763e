package network

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/dma-copy/dma-copy/internal/secure"
)

// incoming has the messages of a Control that have arrived and were not taken. When it is full nothing more is read, so
// that TCP stops the peer.
type incoming struct {
	readable chan struct{} // has a token when there may be a message, for Recv
	arrived  chan struct{} // the same for Arrived
	space    chan struct{} // has a token when there may be space, for the reader

	mu                  sync.Mutex
	queue               [][]byte
	bytes               int // in it
	maxQueued, maxBytes int
	discards            bool // nobody takes messages any more
}

// The limits of what a peer may have sent and nobody has taken: before and after it is authenticated. The second number
// of messages is more than a transfer ever has on its way, so that two sides that only send do not wait for each other.
const (
	firstQueued, firstBytes = secure.MaxHandshakeRecords, secure.MaxHandshakeBytes
	laterQueued, laterBytes = 2048, 8 << 20
)

func newIncoming() incoming {
	token := func() chan struct{} { return make(chan struct{}, 1) }
	return incoming{
		readable: token(), arrived: token(), space: token(), maxQueued: firstQueued, maxBytes: firstBytes,
	}
}

// signal puts a token into a channel that has none.
func signal(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// authenticated lets the peer have more messages on their way.
func (in *incoming) authenticated() {
	in.mu.Lock()
	in.maxQueued, in.maxBytes = laterQueued, laterBytes
	in.mu.Unlock()
	signal(in.space)
}

// discard drops all messages, also those to come.
func (in *incoming) discard() {
	in.mu.Lock()
	in.queue, in.bytes, in.discards = nil, 0, true
	in.mu.Unlock()
	signal(in.space)
}

// add appends a message, when there is space for it. Only the reader calls it.
func (in *incoming) add(message []byte) {
	for !in.put(message) {
		<-in.space
	}
	signal(in.readable)
	signal(in.arrived)
}

func (in *incoming) put(message []byte) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.discards {
		return true
	}
	if len(in.queue) > 0 && (len(in.queue) >= in.maxQueued || in.bytes+len(message) > in.maxBytes) {
		return false
	}
	in.queue = append(in.queue, message)
	in.bytes += len(message)
	return true
}

// take removes the first message.
func (in *incoming) take() (message []byte, taken bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.queue) == 0 {
		return nil, false
	}
	message, in.queue[0] = in.queue[0], nil
	in.queue = in.queue[1:]
	in.bytes -= len(message)
	signal(in.space)
	if len(in.queue) > 0 {
		signal(in.readable) // another Recv may wait
	}
	return message, true
}

// read is the goroutine that receives until the connection ends.
func (c *Control) read(already io.Reader) {
	from := bufio.NewReaderSize(io.MultiReader(already, c.socket), 2*secure.MaxMessage)
	for {
		message, err := readRecord(from)
		if message != nil {
			c.in.add(message)
		}
		if err != nil {
			c.end() // run does it after a panic, which is to be known by then
			return
		}
	}
}

// recordHeader is the length of the header of a TLS record: type, version and length of what follows.
const recordHeader = 5

// errNoRecord means that a peer sent what is no TLS record.
var errNoRecord = errors.New("not a TLS record")

// readRecord returns the next record. With errNoRecord it returns the bytes that are none.
func readRecord(from io.Reader) ([]byte, error) {
	var header [recordHeader]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return nil, err
	}
	length, is := recordLength(header)
	if !is {
		return header[:], errNoRecord
	}
	record := make([]byte, recordHeader+length)
	copy(record, header[:])
	if _, err := io.ReadFull(from, record[recordHeader:]); err != nil {
		return nil, err
	}
	return record, nil
}

// The types of the records of TLS.
const (
	changeCipherSpec = 20
	applicationData  = 23
)

// recordLength returns how many bytes follow a header, if it begins a record which a channel can carry.
func recordLength(header [recordHeader]byte) (length int, is bool) {
	length = int(binary.BigEndian.Uint16(header[3:]))
	is = header[0] >= changeCipherSpec && header[0] <= applicationData && header[1] == 3 &&
		length > 0 && length <= secure.MaxMessage-recordHeader
	return length, is
}

// Recv implements comch.Conn.
func (c *Control) Recv(ctx context.Context) ([]byte, error) {
	for {
		if c.closed.Load() {
			return nil, c.lost()
		}
		if message, taken := c.in.take(); taken {
			return message, nil
		}
		select {
		case <-c.in.readable:
		case <-c.ended:
			if message, taken := c.in.take(); taken {
				return message, nil
			}
			return nil, c.lost()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// TryRecv implements comch.Conn.
func (c *Control) TryRecv() (message []byte, received bool) { return c.in.take() }

// Arrived implements comch.Conn.
func (c *Control) Arrived() <-chan struct{} { return c.in.arrived }

// SpinLimit implements comch.Conn. It is short, because another goroutine of this process receives.
func (*Control) SpinLimit() int { return 2 }
