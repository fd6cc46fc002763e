package native

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// speaker is one side of a connection: a reference session, and the Session that follows it.
type speaker struct {
	*reference.Session
	side   wire.Side
	offer  *Offer
	native *Session
	reply  []byte // to be sent first
	err    error
}

func newSpeaker(side wire.Side, local reference.Local, limits wire.Limits) *speaker {
	offer, _ := local.Native.(*Offer)
	if skewed, is := local.Native.(*skewedOffer); is {
		offer = &skewed.Offer
	}
	return &speaker{Session: reference.New(side, local, limits), side: side, offer: offer}
}

// skewedOffer is the offer of a program that speaks other versions.
type skewedOffer struct {
	Offer
	spoken wire.Versions
}

func (o *skewedOffer) Versions() wire.Versions { return o.spoken }

func (s *speaker) receive(msg []byte) {
	if s.native != nil {
		step, err := s.native.Receive(msg)
		s.reply, s.err = step.Reply, err
		return
	}
	step, err := s.Session.Receive(msg)
	s.reply, s.err = step.Reply, err
	if step.Event == reference.ToNative {
		s.native = s.offer.Session
	}
}

func (s *speaker) state() fmt.Stringer {
	if s.native != nil {
		return s.native.State()
	}
	return s.Session.State()
}

func (s *speaker) disconnected() error {
	if s.native != nil {
		return s.native.Disconnected()
	}
	return s.Session.Disconnected()
}

// speak makes the call that sends a message like msg, from which it takes the arguments.
func (s *speaker) speak(t *testing.T, msg []byte) []byte {
	t.Helper()
	if s.reply != nil {
		reply := s.reply
		s.reply = nil
		return reply
	}
	if wire.TypeOf(msg) == wire.TypeDirection {
		return s.Session.Start()
	}
	if wire.TypeOf(msg) == wire.TypeHello {
		return s.native.Start()
	}
	message, err := decodeNative(msg, s.native.plan.Digest)
	if err != nil {
		t.Fatal(err)
	}
	said, err := call(s.native, message)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// call makes the call that sends a decoded message.
func call(n *Session, message any) ([]byte, error) {
	switch m := message.(type) {
	case Window:
		return n.Window(m.Address, m.Descriptor)
	case Beat:
		return n.Beat(nil, m)
	case PeerAborted:
		return n.Abort(m.Code, m.Text), nil
	case cancelledMessage:
		return n.Cancelled(nil)
	case transferMessage:
		return n.Transfer(nil)
	case []wire.Entry:
		return callEntries(n, m)
	case []Answer:
		return n.Answers(nil, m)
	case metadataMessage:
		return n.Metadata(nil, m.Entry, m.Metadata)
	case []Record:
		return n.Chunks(nil, m)
	case Pack:
		return n.Pack(nil, m)
	case []Ack:
		return n.Acks(nil, m)
	case endMessage:
		return n.End(nil, m.Entry, m.Size, m.Digest)
	case sumMessage:
		return n.Sum(nil, m.Entry, m.Digest)
	case Failure:
		return n.Fail(nil, m)
	case resultsMessage:
		return n.Results(nil, m)
	case finishMessage:
		return n.Finish(nil, m.Missing, m.Transport)
	case finishedMessage:
		return n.Finished(nil, m.Durability, m.Transport)
	}
	return nil, errors.New("no call sends this message")
}

func callEntries(n *Session, entries []wire.Entry) ([]byte, error) {
	msg, _, err := n.Entries(nil, entries)
	return msg, err
}

type nativeConversation struct {
	Name     string                `json:"name"`
	Meaning  string                `json:"meaning"`
	Host     nativeLocal           `json:"host"`
	DPU      nativeLocal           `json:"dpu"`
	Messages []wiretest.VectorSent `json:"messages"`
	HostEnds string                `json:"host_ends"`
	DPUEnds  string                `json:"dpu_ends"`
}

type nativeLocal struct {
	HasFile  bool            `json:"has_file"`
	Size     wiretest.Number `json:"size"`
	Native   *vectorHello    `json:"native"`
	Versions []uint8         `json:"versions"`
}

func (l nativeLocal) local(t *testing.T) reference.Local {
	local := reference.Local{HasFile: l.HasFile, Size: uint64(l.Size)}
	if l.Native != nil {
		offer := &skewedOffer{Offer: Offer{Own: l.Native.hello(t)}, spoken: Supported}
		if len(l.Versions) == 2 {
			offer.spoken = versions(l.Versions[0], l.Versions[1])
		}
		local.Native = offer
	}
	return local
}

func TestNativeConversationVectors(t *testing.T) {
	var conversations []nativeConversation
	wiretest.ReadVectors(t, "native-conversations.json", &conversations)
	if len(conversations) == 0 {
		t.Fatal("no conversations")
	}
	for _, c := range conversations {
		t.Run(c.Name, func(t *testing.T) {
			host, dpu := newSpeaker(wire.Host, c.Host.local(t), nativeLimits), newSpeaker(wire.DPU, c.DPU.local(t),
				nativeLimits)
			dpu.Start()
			for _, m := range c.Messages {
				from, to := host, dpu
				if m.From == wire.DPU.String() {
					from, to = dpu, host
				}
				said := from.speak(t, m.Hex)
				wiretest.WantBytes(t, said, m.Hex)
				if to.native != nil && to.native.State() == Idle {
					to.native.Start()
				}
				to.receive(bytes.Clone(said))
			}
			for _, s := range []*speaker{host, dpu} {
				if s.reply != nil {
					t.Errorf("the %s has not said % x", s.side, s.reply)
				}
				if err := s.disconnected(); s.err == nil {
					s.err = err
				}
			}
			if host.state().String() != c.HostEnds || dpu.state().String() != c.DPUEnds {
				t.Errorf("host %s, want %s; DPU %s, want %s (%v; %v)", host.state(), c.HostEnds, dpu.state(), c.DPUEnds,
					host.err, dpu.err)
			}
		})
	}
}

// versionsMeet connects two sides that support different versions.
func versionsMeet(host, dpu wire.Versions) (*speaker, *speaker) {
	own, peers := &skewedOffer{Offer{Own: senderHello()}, host}, &skewedOffer{Offer{Own: receiverHello()}, dpu}
	sending := newSpeaker(wire.Host, reference.Local{HasFile: true, Size: nativeSize, Native: own}, nativeLimits)
	receiving := newSpeaker(wire.DPU, reference.Local{Native: peers}, nativeLimits)
	receiving.Start()
	receiving.receive(sending.Start())
	sending.receive(receiving.reply)
	return sending, receiving
}

func TestVersionSkew(t *testing.T) {
	for _, test := range []struct {
		host, dpu wire.Versions
		want      uint8 // 0 for none
	}{
		{versions(1, 1), versions(1, 1), 1},
		{versions(1, 1), versions(1, 2), 1},
		{versions(1, 2), versions(1, 1), 1},
		{versions(1, 3), versions(2, 4), 3},
		{versions(2, 255), versions(255, 255), 255},
		{versions(1, 1), versions(2, 2), 0},
		{versions(3, 5), versions(1, 2), 0},
		{versions(1, 254), versions(255, 255), 0},
	} {
		host, dpu := versionsMeet(test.host, test.dpu)
		if test.want == 0 {
			wantNoCommonVersion(t, host, test.host, test.dpu)
			wantNoCommonVersion(t, dpu, test.dpu, test.host)
			continue
		}
		if host.err != nil || dpu.err != nil ||
			host.native.own.Version != test.want || dpu.native.own.Version != test.want {
			t.Errorf("%v and %v: %v, %v", test.host, test.dpu, host.err, dpu.err)
			continue
		}
		k := &pair{t: t, sender: host.native, receiver: dpu.native}
		dpu.native.Start()
		k.pass(k.pass(host.native.Start(), dpu.native, Planned).Reply, host.native, Planned)
		if got := host.native.plan.Version; got != test.want {
			t.Errorf("%v and %v planned in version %d", test.host, test.dpu, got)
		}
	}
}

// wantNoCommonVersion wants an error with both ranges, this side's first.
func wantNoCommonVersion(t *testing.T, s *speaker, own, peer wire.Versions) {
	t.Helper()
	var failure *wire.Error
	want := fmt.Sprintf("the %s supports %s, the %s %s", s.side, own, s.side.Other(), peer)
	if !errors.Is(s.err, wire.ErrVersion) || !errors.As(s.err, &failure) || failure.Detail != want {
		t.Errorf("got %v, want %s", s.err, want)
	}
}

// A peer of version 1, which copied one file per connection, is refused on either side, and both versions are named.
func TestPeerOfVersion1IsRefused(t *testing.T) {
	for _, test := range []struct{ host, dpu wire.Versions }{{Supported, versions(1, 1)}, {versions(1, 1), Supported}} {
		host, dpu := versionsMeet(test.host, test.dpu)
		wantNoCommonVersion(t, host, test.host, test.dpu)
		wantNoCommonVersion(t, dpu, test.dpu, test.host)
	}
	host, _ := versionsMeet(Supported, versions(1, 1))
	want := "negotiation in state await-direction at DIRECTION: no common version of the native protocol: " +
		"the host supports version 2, the DPU version 1"
	if host.err == nil || host.err.Error() != want {
		t.Errorf("got  %v\nwant %s", host.err, want)
	}
}

// A directory cannot be copied with a peer that speaks the reference protocol.
func TestDirectoryNeedsTheNativeProtocol(t *testing.T) {
	own := treeHello()
	host := reference.New(wire.Host, reference.Local{HasFile: true, Native: &Offer{Own: own}}, nativeLimits)
	host.Start()
	step, err := host.Receive(reference.Direction{FileInHost: true}.Encode())
	wantNative(t, err, wire.ErrNeedsNative)
	wiretest.WantBytes(t, step.Reply, reference.Status{}.Encode())
	dpu := reference.New(wire.DPU, reference.Local{Native: &Offer{Own: own}}, nativeLimits)
	dpu.Start()
	step, err = dpu.Receive(reference.Direction{FileInHost: true, Size: 5}.Encode())
	wantNative(t, err, wire.ErrNeedsNative)
	wiretest.WantBytes(t, step.Reply, reference.Status{}.Encode())
}

// Padding that is no offer, or no answer to one, selects the reference protocol.
func TestPaddingThatOffersNothing(t *testing.T) {
	own := senderHello()
	for _, padding := range [][3]byte{
		{}, {0, 2, 2}, {0xDC, 0, 0}, {0xDC, 0, 1}, {0xDC, 2, 1}, {0xDC, 255, 1}, {0xff, 0xff, 0xff},
		{0xDD, 0, 3}, {0xDD, 3, 2}, {0xDD, 2, 2},
	} {
		host := reference.New(wire.Host, reference.Local{HasFile: true, Size: 5, Native: &Offer{Own: own}},
			nativeLimits)
		host.Start()
		step, err := host.Receive(reference.Direction{FileInHost: true, Offer: padding}.Encode())
		if err != nil || step.Event != reference.Agreed || step.Agreement.Protocol != wire.Reference {
			t.Errorf("% x in an answer: %s, %v", padding, step.Event, err)
		}
		dpu := reference.New(wire.DPU, reference.Local{Native: &Offer{Own: own}}, nativeLimits)
		dpu.Start()
		step, err = dpu.Receive(reference.Direction{FileInHost: true, Size: 5, Offer: padding}.Encode())
		if err != nil || step.Event != reference.Agreed || step.Agreement.Size != 5 {
			t.Errorf("% x in an opening: %s, %v", padding, step.Event, err)
		}
		wiretest.WantBytes(t, step.Reply[5:8], []byte{0, 0, 0})
	}
}

// A host whose padding only looked like an offer continues in the reference protocol where that is still possible.
func TestReferenceHostAfterMistakenOffer(t *testing.T) {
	for _, test := range []struct {
		dpu     reference.Local
		host    reference.Direction
		want    error
		replies bool
	}{
		{reference.Local{}, reference.Direction{FileInHost: true, Size: 100}, nil, false},
		{reference.Local{}, reference.Direction{}, wire.ErrNeitherHasFile, true},
		{reference.Local{HasFile: true, Size: 9}, reference.Direction{FileInHost: true, Size: 100},
			wire.ErrBothHaveFile, true},
		{reference.Local{HasFile: true, Size: 9}, reference.Direction{}, wire.ErrOutOfOrder, true},
		{reference.Local{}, reference.Direction{FileInHost: true, Size: wire.MaxSize + 1}, wire.ErrTooLarge, true},
		{
			reference.Local{Native: &Offer{Own: Hello{Flags: FlagStream, Chunk: wire.MinChunk, Depth: 1}}},
			reference.Direction{FileInHost: true}, wire.ErrNeedsNative, true,
		},
	} {
		if test.dpu.Native == nil {
			test.dpu.Native = &Offer{Own: Hello{Chunk: wire.MinChunk, Depth: 1}}
		}
		dpu := newSpeaker(wire.DPU, test.dpu, nativeLimits)
		dpu.Start()
		test.host.Offer = [3]byte{0xDC, 2, 2}
		dpu.receive(test.host.Encode())
		dpu.native.Start()
		step, err := dpu.native.Receive(reference.Export{Address: 4096, Descriptor: []byte{1}}.Encode())
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || (step.Reply != nil) != test.replies {
			t.Errorf("%+v: %+v, %v; want %v", test.host, step, err, test.want)
		}
		if test.replies {
			wiretest.WantBytes(t, step.Reply, reference.Status{}.Encode())
		}
		if test.want == nil {
			wantTakenBack(t, dpu, step)
		}
	}
}

func wantTakenBack(t *testing.T, dpu *speaker, step Step) {
	t.Helper()
	got := dpu.Resumed()
	if step.Event != ToReference || got.Event != reference.Exported || got.Export.Address != 4096 ||
		got.Agreement != (reference.Agreement{Protocol: wire.Reference, Sender: wire.Host, Size: 100}) {
		t.Fatalf("%+v", step)
	}
	wiretest.WantBytes(t, wiretest.Must(t)(dpu.Finish(true)), reference.Status{Success: true}.Encode())
	if err := dpu.Disconnected(); err != nil {
		t.Fatal(err)
	}
}

func versions(first, last uint8) wire.Versions { return wire.Versions{Min: first, Max: last} }
