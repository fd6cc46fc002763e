package negotiate

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// randomTransfer is a transfer in which a script decides in which order messages arrive and the sides act, and which
// chunks are damaged. Both sides must be done in the end.
type randomTransfer struct {
	*pair
	script     []byte
	toSender   [][]byte // sent and not delivered
	toReceiver [][]byte
	todo       []Record // records that the sender has not announced
	sent       map[uint32]Record
	received   map[uint32]Record // not acknowledged yet
	order      []uint32          // slots of received
	metadata   []byte            // not sent yet
	work       uint64
	size       uint64
}

const randomMetadata = 700

func newRandomTransfer(t testing.TB, sending Side, size, resume uint64, stream bool, script []byte) *randomTransfer {
	from, to := senderHello(), receiverHello()
	from.Size, from.Depth, to.Depth = size, 5, 3
	if stream {
		from, resume = receiverHello(), 0
		from.Flags |= FlagStream
	}
	m := &randomTransfer{
		pair: newPair(t, sending, from, to), script: script, size: size, metadata: make([]byte, randomMetadata),
		sent: map[uint32]Record{}, received: map[uint32]Record{},
	}
	m.cut(min(resume, size))
	return m
}

// cut creates the records of the whole file: claims, and then alternating holes and data.
func (m *randomTransfer) cut(resume uint64) {
	for offset := uint64(0); offset < m.size; {
		r := Record{Kind: DataRecord, Offset: offset, Length: min(MinChunk, m.size-offset)}
		switch {
		case offset < resume:
			r.Kind, r.Length = ClaimRecord, min(MinChunk, resume-offset)
		case offset%3 == 1:
			r.Kind = HoleRecord
		case offset%3 == 2:
			r.Length = min(1000, r.Length)
		}
		m.todo = append(m.todo, r)
		offset += r.Length
	}
}

// chance returns the next decision of the script, below n; 0 at the end of the script.
func (m *randomTransfer) chance(n int) int {
	if len(m.script) == 0 {
		return 0
	}
	octet := m.script[0]
	m.script = m.script[1:]
	return int(octet) % n
}

func (m *randomTransfer) run() {
	for len(m.script) > 0 {
		m.move(m.chance(6))
	}
	for turns := 0; m.sender.State() != Done || len(m.toReceiver) > 0; turns++ {
		if turns > 100_000 {
			m.t.Fatalf("sender in %s, receiver in %s, and nothing moves", m.sender.State(), m.receiver.State())
		}
		m.move(turns % 4)
	}
	if err := m.sender.Disconnected(); err != nil {
		m.t.Fatal(err)
	}
	if err := m.receiver.Disconnected(); err != nil {
		m.t.Fatal(err)
	}
	wantNativeStates(m.t, m.pair, Done, Done)
}

func (m *randomTransfer) move(what int) {
	switch what {
	case 0:
		m.advanceSender()
	case 1:
		m.arrive(&m.toReceiver, m.receiver, m.hearReceiver)
	case 2:
		m.advanceReceiver()
	case 3:
		m.arrive(&m.toSender, m.sender, m.hearSender)
	case 4:
		m.beat(m.sender)
	case 5:
		m.beat(m.receiver)
	}
}

func (m *randomTransfer) arrive(queue *[][]byte, to *NativeSession, hear func(NativeStep)) {
	if len(*queue) == 0 {
		return
	}
	msg := (*queue)[0]
	*queue = (*queue)[1:]
	step, err := to.Receive(msg)
	clear(msg)
	if err != nil {
		m.t.Fatalf("sender in %s, receiver in %s: %v", m.sender.State(), m.receiver.State(), err)
	}
	hear(step)
}

func (m *randomTransfer) tell(from *NativeSession, msg []byte, err error) {
	if err != nil {
		m.t.Fatalf("sender in %s, receiver in %s: %v", m.sender.State(), m.receiver.State(), err)
	}
	if from == m.sender {
		m.toReceiver = append(m.toReceiver, msg)
	} else {
		m.toSender = append(m.toSender, msg)
	}
}

func (m *randomTransfer) beat(n *NativeSession) {
	if n.State() == Done {
		return
	}
	m.work++
	msg, err := n.Beat(nil, Beat{min(MaxPhase, uint32(m.work/10)), m.work})
	m.tell(n, msg, err)
}

// openWindow sends the host's WINDOW, whether it is the sender or the receiver.
func (m *randomTransfer) openWindow(n *NativeSession) bool {
	if n.side != Host || n.window {
		return false
	}
	msg, err := n.Window(nativeAddress, nativeDescriptor)
	m.tell(n, msg, err)
	return true
}

func (m *randomTransfer) advanceSender() {
	switch m.sender.State() {
	case AwaitReady:
		m.openWindow(m.sender)
	case Sending:
		m.advanceSending()
	case Deciding:
		msg, err := m.sender.Commit()
		m.tell(m.sender, msg, err)
	}
}

func (m *randomTransfer) advanceSending() {
	switch {
	case len(m.metadata) > 0 && m.chance(3) == 0:
		part := m.metadata[:min(len(m.metadata), 1+m.chance(256))]
		msg, err := m.sender.Metadata(Metadata{randomMetadata, uint32(randomMetadata - len(m.metadata)), part})
		m.metadata = m.metadata[len(part):]
		m.tell(m.sender, msg, err)
	case len(m.todo) > 0:
		m.announce()
	case len(m.sent) == 0 && len(m.metadata) == 0:
		msg, err := m.sender.End(m.size, nativeDigest)
		m.tell(m.sender, msg, err)
	}
}

func (m *randomTransfer) announce() {
	var records []Record
	most := 1 + m.chance(4)
	for slot := range m.sender.Plan().Depth {
		if _, taken := m.sent[slot]; taken || len(m.todo) == 0 || len(records) == most {
			continue
		}
		r := m.todo[0]
		m.todo = m.todo[1:]
		r.Slot = slot
		m.sent[slot] = r
		records = append(records, r)
	}
	if len(records) > 0 {
		msg, err := m.sender.Chunks(nil, records)
		m.tell(m.sender, msg, err)
	}
}

func (m *randomTransfer) hearSender(step NativeStep) {
	for _, a := range step.Acks {
		r := m.sent[a.Slot]
		delete(m.sent, a.Slot)
		if a.Bad {
			r.Attempt++
			if r.Kind == ClaimRecord {
				r.Kind = DataRecord
			}
			m.todo = append(m.todo, r)
		}
	}
}

func (m *randomTransfer) hearReceiver(step NativeStep) {
	for _, r := range step.Records {
		m.received[r.Slot] = r
		m.order = append(m.order, r.Slot)
	}
	if step.Event == PeerEnded && (step.Size != m.size || !bytes.Equal(step.Digest, nativeDigest)) {
		m.t.Fatalf("ended %d of %d bytes, % x", step.Size, m.size, step.Digest)
	}
}

func (m *randomTransfer) advanceReceiver() {
	n := m.receiver
	switch n.State() {
	case Preparing:
		m.prepare()
	case Receiving:
		m.acknowledge()
	case Verifying:
		msg, err := n.Prepared(nativeDigest)
		m.tell(n, msg, err)
	case Committing:
		msg, err := n.Done(DurabilityFull)
		m.tell(n, msg, err)
	}
}

func (m *randomTransfer) prepare() {
	n := m.receiver
	if n.side == Host && m.chance(2) == 0 && m.openWindow(n) {
		return
	}
	if n.ready {
		m.openWindow(n)
		return
	}
	if n.side == Host || n.window {
		msg, err := n.Ready(m.claims())
		m.tell(n, msg, err)
	}
}

func (m *randomTransfer) claims() (resume uint64) {
	for _, r := range m.todo {
		if r.Kind == ClaimRecord {
			resume = r.Offset + r.Length
		}
	}
	return resume
}

// acknowledge acknowledges some of the received records in any order.
func (m *randomTransfer) acknowledge() {
	var acks []Ack
	for range 1 + m.chance(3) {
		if len(m.order) == 0 {
			break
		}
		at := m.chance(len(m.order))
		slot := m.order[at]
		m.order = append(m.order[:at], m.order[at+1:]...)
		acks = append(acks, Ack{Slot: slot, Bad: m.received[slot].Attempt < MaxAttempt && m.chance(4) == 3})
		delete(m.received, slot)
	}
	if len(acks) > 0 {
		msg, err := m.receiver.Acks(nil, acks)
		m.tell(m.receiver, msg, err)
	}
}

func FuzzNativeTransfer(f *testing.F) {
	for _, size := range []uint64{0, 1, MinChunk, 3*MinChunk + 1, 100_001} {
		f.Add(true, false, size, size/2, []byte{0, 1, 2, 3, 4, 5})
		f.Add(false, true, size, uint64(0), []byte("a script is any bytes"))
	}
	f.Fuzz(func(t *testing.T, hostSends, stream bool, size, resume uint64, script []byte) {
		sending := DPU
		if hostSends {
			sending = Host
		}
		newRandomTransfer(t, sending, size%(1<<20), resume%(1<<20), stream, script).run()
	})
}

func TestNativeRandomTransfers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 300 {
		script := make([]byte, random.IntN(2000))
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		size, resume := random.Uint64N(200_000), random.Uint64N(200_000)
		newRandomTransfer(t, Side(random.IntN(2)), size, resume, random.IntN(4) == 0, script).run()
	}
}
