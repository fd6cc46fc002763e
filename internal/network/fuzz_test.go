package network

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// FuzzReadHello reads the first bytes of a client: it keeps all that it has read, within its limit.
func FuzzReadHello(f *testing.F) {
	f.Add(recordedHello(f))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte(endless()[:100]))
	f.Fuzz(func(t *testing.T, sent []byte) {
		one, other := net.Pipe()
		go func() {
			_, _ = other.Write(sent)
			_ = other.Close()
		}()
		read, _, err := readHello(one)
		_ = one.Close()
		if err == nil && (!bytes.HasPrefix(sent, read) || len(read) > maxHello) {
			t.Errorf("%d bytes were read of %d", len(read), len(sent))
		}
	})
}

// FuzzRecords cuts a stream of bytes into records: together they are the stream, none is longer than a message, and
// only the last one is not a record.
func FuzzRecords(f *testing.F) {
	f.Add([]byte("\x17\x03\x03\x00\x01a\x17\x03\x03\x00\x02bc"))
	f.Add([]byte("\x15\x03\x03\x40\x11"))
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		from := bytes.NewReader(stream)
		var joined []byte
		for {
			record, err := readRecord(from)
			joined = append(joined, record...)
			if len(record) > secure.MaxMessage {
				t.Errorf("a record of %d bytes", len(record))
			}
			if err == nil && (len(record) <= recordHeader || record[1] != 3) {
				t.Errorf("%x is a record", record)
			}
			if err != nil {
				break
			}
		}
		if !bytes.HasPrefix(stream, joined) {
			t.Errorf("%x was read of %x", joined, stream)
		}
	})
}

// FuzzRecordBounds cuts a stream at the bounds of its records, in reads of any length: each part is within a header, or
// within what follows it.
func FuzzRecordBounds(f *testing.F) {
	f.Add([]byte("\x17\x03\x03\x00\x01a\x17\x03\x03\x00\x02bc"), uint8(3))
	f.Add([]byte("\x14\x03\x03\x00\x00\x17\x03\x03\xff\xff"), uint8(200))
	f.Fuzz(func(t *testing.T, stream []byte, most uint8) {
		var bounds recordBounds
		due := 0 // where the next record begins
		for at := 0; at < len(stream); {
			n := min(bounds.next(), int(most)+1, len(stream)-at)
			if n < 1 || at < due && at+n > due {
				t.Fatalf("%d bytes at %d, and a record begins at %d", n, at, due)
			}
			bounds.pass(stream[at : at+n])
			if at += n; at == due+recordHeader {
				due += recordHeader + int(binary.BigEndian.Uint16(stream[due+3:]))
			}
		}
	})
}

// FuzzFrames receives frames of an authenticated peer: none is written outside of its slot or over content that has not
// been taken, and whatever happens the engine can be closed.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x00\x02\x00\x00\x00\x01b"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x00\x00\x00\x00\x00\x01b"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		l := testLayout(wire.PathTLS, 2)
		l.Chunk = 8
		e := newReceiveEngine(l, 0, make([]byte, int64(l.LaneSlots(0))*l.Chunk), &Settings{})
		source := bytes.NewReader(sent)
		e.start(func(context.Context) (*lane, error) {
			return &lane{socket: closedSocket(), content: source}, nil
		})
		<-e.failed
		if e.err == nil {
			t.Error("the reader has ended without an error")
		}
		for slot := int64(0); slot < testDepth; slot += 2 {
			m := pump.Move{Window: slot * l.Chunk, Buffer: slot / 2 * l.Chunk, Length: 1}
			if _, err := e.Submit([]pump.Move{m}); err != nil {
				break
			}
		}
		for moved := make([]pump.Moved, 1); ; {
			if n, err := e.Reap(t.Context(), moved); n == 0 || err != nil {
				break
			}
		}
		must(t, e.Close())
	})
}

// closedSocket is a connection that has ended.
func closedSocket() *socketBuffer {
	one, other := net.Pipe()
	_ = other.Close()
	return newSocketBuffer(one)
}
