package native

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// randomSession is a session in which a script decides in which order messages arrive and both sides act, what they
// decide about each entry, and what is damaged. Both sides count the outcomes themselves, and agree in the end.
type randomSession struct {
	*pair
	script     []byte
	toSender   [][]byte // sent and not delivered
	toReceiver [][]byte
	work       uint64
	from, to   actor
}

// actor is what one side knows about the entries of the transfer. It acts only on what its session has told it.
type actor struct {
	entries   []*actorEntry
	announced int
	slots     []actorSlot
	counts    Counts
	late      int  // failures of directories that were decided
	finished  bool // FINISH or FINISHED is sent
}

type actorEntry struct {
	wire.Entry
	phase    phase
	metadata int      // bytes not sent, or not received
	todo     []Record // sender: not announced
	packed   bool     // receiver: in a pack in flight
	acked    uint64   // receiver: bytes acknowledged as good
	size     uint64   // receiver: by END
	late     bool     // receiver: decided, and not a directory, which may still fail
}

// actorSlot is a slot in flight: one record or one pack.
type actorSlot struct {
	number uint16
	record Record
	pack   []PackedFile
	tries  uint8
}

// randomKind is what a random session transfers.
type randomKind byte

const (
	randomFile    randomKind = 0
	randomStream  randomKind = 1
	randomTree    randomKind = 2
	randomCompare randomKind = 3
	randomDryRun  randomKind = 4
	randomKinds   randomKind = 5
)

func newRandomSession(t testing.TB, sending wire.Side, kind randomKind, script []byte) *randomSession {
	from, to := senderHello(), receiverHello()
	from.Depth, to.Depth = 5, 3
	switch kind {
	case randomStream:
		from.Flags ^= FlagFile | FlagStream
	case randomTree:
		from.Flags ^= FlagFile | FlagTree
	case randomCompare:
		sending, to.Flags = wire.Host, to.Flags|FlagFile
	case randomDryRun:
		from.Flags ^= FlagFile | FlagTree | FlagDryRun
	}
	m := &randomSession{script: script}
	if path := allPaths[m.chance(len(allPaths))]; path != wire.PathDMA {
		from.Flags, to.Flags = from.Flags|pathFlags[path], to.Flags|pathFlags[path]|FlagNoDMA
		if path != wire.PathFast {
			sending += wire.Client - wire.Host
		}
	}
	m.pair = newPair(t, sending, from, to)
	return m
}

// chance returns the next decision of the script, below n; 0 at the end of the script.
func (m *randomSession) chance(n int) int {
	if len(m.script) == 0 {
		return 0
	}
	octet := m.script[0]
	m.script = m.script[1:]
	return int(octet) % n
}

// run makes as many transfers as the script is long.
func (m *randomSession) run() {
	if m.chance(2) == 0 {
		m.sendWindow()
	}
	for first := true; first || len(m.script) > 0; first = false {
		m.transfer()
	}
	for _, n := range []*Session{m.sender, m.receiver} {
		if err := n.Disconnected(); err != nil {
			m.t.Fatal(err)
		}
	}
	wantNativeStates(m.t, m.pair, Done, Done)
}

func (m *randomSession) transfer() {
	m.from, m.to = actor{entries: m.grow()}, actor{}
	m.tell(m.sender)(m.sender.Transfer(nil))
	for turns := 0; m.sender.State() != Ready || len(m.toReceiver)+len(m.toSender) > 0; turns++ {
		if turns > 200_000 {
			m.t.Fatalf("sender in %s, receiver in %s, and nothing moves", m.sender.State(), m.receiver.State())
		}
		if len(m.script) > 0 {
			m.move(m.chance(6))
		} else {
			m.move(turns % 4)
		}
	}
	if m.from.counts != m.to.counts ||
		m.from.counts != m.sender.entries.counts || m.to.counts != m.receiver.entries.counts ||
		total(m.from.counts) != len(m.from.entries)+m.from.late {
		m.t.Fatalf("%d entries: the sides counted %+v and %+v, their sessions %+v and %+v", len(m.from.entries),
			m.from.counts, m.to.counts, m.sender.entries.counts, m.receiver.entries.counts)
	}
}

// grow returns the entries of a random transfer.
func (m *randomSession) grow() []*actorEntry {
	root := &actorEntry{Entry: rootFile()}
	root.Size = uint64(m.chance(4)) * 3000
	if m.sender.plan.StreamSource {
		root.Size, root.Flags = 0, wire.EntrySizeUnknown|wire.EntryChunked
	}
	entries := []*actorEntry{root}
	if m.sender.plan.Tree {
		entries = []*actorEntry{{Entry: rootDirectory()}}
		m.growInto(&entries, 1, 12)
	}
	for _, e := range entries {
		if m.sender.plan.XAttr && e.Kind != wire.EntryHardLink && m.chance(4) == 1 {
			e.Flags |= wire.EntryHasMetadata
			e.metadata = 30
		}
	}
	return entries
}

func (m *randomSession) growInto(entries *[]*actorEntry, depth, most int) {
	for i := range m.chance(most) {
		e := &actorEntry{Entry: entryAt(depth, wire.EntryKind(1+m.chance(4)), fmt.Sprintf("n%d", 10+i))}
		*entries = append(*entries, e)
		switch e.Kind {
		case wire.EntryFile:
			e.Size = []uint64{0, 1, 700, 4096, 9000}[m.chance(5)]
			if e.Size > wire.MinChunk || m.chance(4) == 1 {
				e.Flags = wire.EntryChunked
			}
		case wire.EntryDirectory:
			m.growInto(entries, depth+1, most/2+1)
		default:
			e.Link = []byte("n10")
		}
	}
}

func (m *randomSession) move(what int) {
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

func (m *randomSession) arrive(queue *[][]byte, to *Session, hear func(Step)) {
	if len(*queue) == 0 {
		return
	}
	msg := (*queue)[0]
	*queue = (*queue)[1:]
	name := wire.TypeOf(msg)
	step, err := to.Receive(msg)
	clear(msg)
	if err != nil {
		m.t.Fatalf("%s: sender in %s, receiver in %s: %v", name, m.sender.Reached(), m.receiver.Reached(), err)
	}
	if step.Reply != nil {
		m.tell(to)(append([]byte(nil), step.Reply...), nil)
	}
	hear(step)
}

func (m *randomSession) tell(from *Session) func([]byte, error) {
	return func(msg []byte, err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatalf("sender in %s, receiver in %s: %v", m.sender.State(), m.receiver.State(), err)
		}
		if from == m.sender {
			m.toReceiver = append(m.toReceiver, msg)
		} else {
			m.toSender = append(m.toSender, msg)
		}
	}
}

func (m *randomSession) beat(n *Session) {
	m.work++
	m.tell(n)(n.Beat(nil, Beat{0, m.work}))
}

// ensureWindow sends the WINDOW late, when a record needs it, and reports whether the sender may use it.
func (m *randomSession) ensureWindow() bool {
	if owner := m.windowOwner(); !owner.window && owner.State() != Idle {
		m.sendWindow()
	}
	return m.sender.window
}

func (m *randomSession) sendWindow() {
	owner := m.windowOwner()
	m.tell(owner)(owner.Window(windowOf(owner.plan)))
}

func (m *randomSession) advanceSender() {
	if m.sender.State() != Transferring && m.sender.State() != Finishing {
		return
	}
	if m.from.announced < len(m.from.entries) && (m.from.announced == 0 || m.chance(3) == 0) {
		m.announceEntries()
		return
	}
	busy := false
	start := m.chance(max(1, m.from.announced))
	for i := range m.from.announced {
		number := uint32((start + i) % m.from.announced)
		e := m.from.entries[number]
		if m.advanceEntry(number, e) {
			return
		}
		if e.Kind == wire.EntryFile && e.phase != ended && e.phase != decided || e.metadata > 0 && e.phase != decided {
			busy = true
		}
	}
	if !busy && m.from.announced == len(m.from.entries) && !m.from.finished {
		m.from.finished = true
		m.tell(m.sender)(m.sender.Finish(nil, 0, ""))
	}
}

func (m *randomSession) announceEntries() {
	var list []wire.Entry
	for _, e := range m.from.entries[m.from.announced:] {
		if list = append(list, e.Entry); len(list) > m.chance(8) {
			break
		}
	}
	if m.sender.Room() == 0 {
		return
	}
	msg, used, err := m.sender.Entries(nil, list)
	for _, e := range m.from.entries[m.from.announced : m.from.announced+used] {
		e.phase = unanswered
	}
	m.from.announced += used
	m.tell(m.sender)(msg, err)
}

// advanceEntry does the next thing about an entry, if it is the sender's turn.
func (m *randomSession) advanceEntry(number uint32, e *actorEntry) bool {
	switch {
	case e.metadata > 0 && (e.phase == needed || e.Kind != wire.EntryFile && e.phase == unanswered):
		part := make([]byte, min(e.metadata, 1+m.chance(20)))
		offset := uint32(30 - e.metadata)
		e.metadata -= len(part)
		m.tell(m.sender)(m.sender.Metadata(nil, number, Metadata{30, offset, part}))
	case e.phase == asked && m.chance(8) == 7, e.phase == needed && m.chance(16) == 15:
		e.phase = decided
		m.from.counts.Failed++
		m.tell(m.sender)(m.sender.Fail(nil, Failure{Entry: number, Code: wire.AbortSource}))
	case e.phase == asked:
		e.phase = summed
		m.tell(m.sender)(m.sender.Sum(nil, number, nativeSum))
	case e.phase == needed || e.phase == ended && len(e.todo) > 0:
		return m.sendContent(number, e)
	default:
		return false
	}
	return true
}

func (m *randomSession) sendContent(number uint32, e *actorEntry) bool {
	chunked := e.Flags.Has(wire.EntryChunked)
	free, vacant := m.vacantSlot()
	switch {
	case e.phase == needed && chunked && (len(e.todo) == 0 || m.chance(4) == 0):
		e.phase = ended
		size := e.Size
		if e.Flags.Has(wire.EntrySizeUnknown) {
			size = randomStreamSize
		}
		m.tell(m.sender)(m.sender.End(nil, number, size, nativeDigest))
	case !vacant || !m.ensureWindow():
		return false
	case !chunked:
		m.sendPack(free)
	case len(e.todo) > 0:
		r := e.todo[0]
		e.todo = e.todo[1:]
		r.Slot = free
		m.from.slots = append(m.from.slots, actorSlot{number: free, record: r})
		m.tell(m.sender)(m.sender.Chunks(nil, []Record{r}))
	default:
		return false
	}
	return true
}

const randomStreamSize = 7001

func (m *randomSession) vacantSlot() (uint16, bool) {
	for slot := range uint16(m.sender.plan.Depth) {
		taken := false
		for _, s := range m.from.slots {
			taken = taken || s.number == slot
		}
		if !taken {
			return slot, true
		}
	}
	return 0, false
}

// sendPack packs all small files that are needed.
func (m *randomSession) sendPack(slot uint16) {
	p, position := Pack{Slot: slot, Attempt: 0}, uint64(0)
	for number, e := range m.from.entries[:m.from.announced] {
		if e.phase != needed || e.Flags.Has(wire.EntryChunked) || e.metadata > 0 || position+e.Size > wire.MinChunk {
			continue
		}
		p.Files = append(p.Files, PackedFile{Entry: uint32(number), Position: uint32(position), Length: uint32(e.Size)})
		position += e.Size
		e.phase = ended
	}
	if len(p.Files) == 0 {
		return
	}
	m.from.slots = append(m.from.slots, actorSlot{number: slot, pack: p.Files})
	m.tell(m.sender)(m.sender.Pack(nil, p))
}

func (m *randomSession) hearSender(step Step) {
	for _, a := range step.Answers {
		m.hearAnswer(m.from.entries[a.Entry], a)
	}
	for _, a := range step.Acks {
		m.hearAck(a)
	}
	for _, number := range step.Results {
		m.from.entries[number].phase = decided
		m.from.counts.Committed++
	}
	if step.Event == EntryFailed {
		m.hearFailure(&m.from, step.Failure.Entry)
	}
	if step.Event == PeerFinished && step.Counts != m.from.counts {
		m.t.Fatalf("finished with %+v, counted %+v", step.Counts, m.from.counts)
	}
}

func (m *randomSession) hearFailure(a *actor, number uint32) {
	e := a.entries[number]
	if e.Kind == wire.EntryDirectory && e.phase == decided {
		a.late++
	}
	e.phase, e.todo = decided, nil
	a.counts.Failed++
}

func (m *randomSession) hearAnswer(e *actorEntry, a Answer) {
	switch {
	case a.Kind == AnswerHave:
		e.phase = decided
		m.from.counts.Unchanged++
	case a.Kind == AnswerSum:
		e.phase = asked
	case m.sender.plan.DryRun:
		e.phase = decided
		m.from.counts.Committed++
	default:
		if e.phase = needed; e.Flags.Has(wire.EntryChunked) {
			e.todo = cut(a.Entry, e, a.Offset)
		}
	}
}

// cut returns the records of a whole file: claims, and then holes and data.
func cut(number uint32, e *actorEntry, resume uint64) []Record {
	size := e.Size
	if e.Flags.Has(wire.EntrySizeUnknown) {
		size = randomStreamSize
	}
	var records []Record
	for offset := uint64(0); offset < size; {
		r := Record{Kind: DataRecord, Entry: number, Offset: offset, Length: min(wire.MinChunk, size-offset)}
		switch {
		case offset < resume:
			r.Kind, r.Length = ClaimRecord, min(wire.MinChunk, resume-offset)
		case offset%3 == 1:
			r.Kind = HoleRecord
		case offset%3 == 2:
			r.Length = min(1000, r.Length)
		}
		records = append(records, r)
		offset += r.Length
	}
	return records
}

func (m *randomSession) hearAck(a Ack) {
	for i, s := range m.from.slots {
		if uint32(s.number) != a.Slot {
			continue
		}
		m.from.slots = append(m.from.slots[:i:i], m.from.slots[i+1:]...)
		if !a.Bad {
			return
		}
		for _, f := range s.pack {
			if e := m.from.entries[f.Entry]; e.phase != decided {
				e.phase = needed
			}
		}
		if e := m.from.entries[s.record.Entry]; s.pack == nil && e.phase != decided {
			s.record.Attempt++
			if s.record.Kind == ClaimRecord {
				s.record.Kind = DataRecord
			}
			e.todo = append(e.todo, s.record)
		}
		return
	}
	m.t.Fatalf("slot %d was acknowledged", a.Slot)
}

func (m *randomSession) hearReceiver(step Step) {
	for _, e := range step.Entries {
		got := &actorEntry{Entry: e, phase: unanswered, size: e.Size}
		if e.Flags.Has(wire.EntryHasMetadata) {
			got.metadata = 30
		}
		m.to.entries = append(m.to.entries, got)
	}
	for _, r := range step.Records {
		m.to.slots = append(m.to.slots, actorSlot{number: r.Slot, record: r, tries: r.Attempt})
	}
	switch step.Event {
	case Packed:
		files := append([]PackedFile(nil), step.Pack.Files...)
		m.to.slots = append(m.to.slots, actorSlot{number: step.Pack.Slot, pack: files})
		for _, f := range files {
			m.to.entries[f.Entry].packed = true
			m.reach(f.Entry, ended)
		}
	case PeerMetadata:
		m.to.entries[step.Entry].metadata -= len(step.Metadata.Part)
	case PeerEnded:
		m.to.entries[step.Entry].size = step.Size
		m.reach(step.Entry, ended)
	case PeerSum:
		m.reach(step.Entry, summed)
	case EntryFailed:
		m.hearFailure(&m.to, step.Failure.Entry)
	}
}

// reach changes the phase of an entry that the receiver has not failed.
func (m *randomSession) reach(number uint32, to phase) {
	if e := m.to.entries[number]; e.phase != decided {
		e.phase = to
	}
}

func (m *randomSession) advanceReceiver() {
	if m.receiver.State() != Transferring && m.receiver.State() != Finishing {
		return
	}
	if len(m.to.slots) > 0 && m.chance(2) == 0 {
		m.acknowledge()
		return
	}
	start := m.chance(max(1, len(m.to.entries)))
	for i := range m.to.entries {
		number := uint32((start + i) % len(m.to.entries))
		if m.decide(number, m.to.entries[number]) {
			return
		}
	}
	if m.receiver.State() == Finishing && m.receiver.Settled() {
		m.tell(m.receiver)(m.receiver.Finished(nil, wire.DurabilityFull, ""))
	}
}

// decide does the next thing about an entry, if it is the receiver's turn.
func (m *randomSession) decide(number uint32, e *actorEntry) bool {
	switch {
	case e.phase == decided && (e.Kind != wire.EntryDirectory || e.late):
		return false
	case (e.phase == decided || e.phase == needed || e.phase == asked) && m.chance(64) != 63:
		return false
	case e.phase == decided, e.phase == needed, e.phase == asked, m.chance(16) == 15:
		m.failByReceiver(number, e)
	case e.Kind == wire.EntryFile && e.phase != ended:
		m.answerFile(number, e)
	case e.Kind == wire.EntryFile && (e.acked != e.size || e.packed), e.metadata > 0:
		return false
	case m.receiver.plan.Compare || e.Kind != wire.EntryFile && m.chance(4) == 1:
		e.late = e.Kind != wire.EntryDirectory
		m.decideEntry(e, &m.to.counts.Unchanged)
		m.tell(m.receiver)(m.receiver.Answers(nil, []Answer{{Entry: number, Kind: AnswerHave}}))
	case m.receiver.plan.DryRun:
		e.late = e.Kind != wire.EntryDirectory
		m.decideEntry(e, &m.to.counts.Committed)
		m.tell(m.receiver)(m.receiver.Answers(nil, []Answer{{Entry: number, Kind: AnswerNeed, Change: ChangeNew}}))
	default:
		e.late = e.Kind != wire.EntryDirectory
		m.decideEntry(e, &m.to.counts.Committed)
		m.tell(m.receiver)(m.receiver.Results(nil, []uint32{number}))
	}
	return true
}

func (m *randomSession) decideEntry(e *actorEntry, count *uint32) {
	e.phase = decided
	*count++
}

func (m *randomSession) failByReceiver(number uint32, e *actorEntry) {
	e.late = true
	m.decideEntry(e, &m.to.counts.Failed)
	m.tell(m.receiver)(m.receiver.Fail(nil, Failure{Entry: number, Code: wire.AbortTarget}))
}

func (m *randomSession) answerFile(number uint32, e *actorEntry) {
	a := Answer{Entry: number, Kind: AnswerNeed}
	stream := e.Flags.Has(wire.EntrySizeUnknown)
	switch m.chance(4) {
	case 1:
		if e.phase == unanswered && !stream {
			a.Kind = AnswerSum
		}
	case 2:
		if !stream {
			a.Kind = AnswerHave
		}
	case 3:
		if e.Flags.Has(wire.EntryChunked) && m.receiver.plan.Resumable() && !m.receiver.plan.DryRun {
			a.Offset = e.Size / 2
		}
	}
	if m.receiver.plan.Compare && a.Kind == AnswerNeed {
		a = Answer{Entry: number, Kind: AnswerHave}
	}
	switch {
	case a.Kind == AnswerHave:
		m.decideEntry(e, &m.to.counts.Unchanged)
	case a.Kind == AnswerSum:
		e.phase = asked
	case m.receiver.plan.DryRun:
		a.Change = ChangeSize
		m.decideEntry(e, &m.to.counts.Committed)
	default:
		e.phase = needed
	}
	m.tell(m.receiver)(m.receiver.Answers(nil, []Answer{a}))
}

// acknowledge acknowledges some of the slots in flight in any order.
func (m *randomSession) acknowledge() {
	var acks []Ack
	for range 1 + m.chance(3) {
		if len(m.to.slots) == 0 {
			break
		}
		at := m.chance(len(m.to.slots))
		s := m.to.slots[at]
		m.to.slots = append(m.to.slots[:at:at], m.to.slots[at+1:]...)
		a := Ack{Slot: uint32(s.number), Bad: s.tries < MaxAttempt && m.chance(4) == 3}
		acks = append(acks, a)
		m.account(s, a.Bad)
	}
	m.tell(m.receiver)(m.receiver.Acks(nil, acks))
}

func (m *randomSession) account(s actorSlot, bad bool) {
	for _, f := range s.pack {
		e := m.to.entries[f.Entry]
		if e.packed = false; bad && e.phase != decided {
			e.phase = needed
		} else if !bad {
			e.acked = e.size
		}
	}
	if s.pack == nil && !bad {
		m.to.entries[s.record.Entry].acked += s.record.Length
	}
}

func FuzzNativeTransfer(f *testing.F) {
	for kind := range randomKinds {
		f.Add(true, byte(kind), []byte{0, 1, 2, 3, 4, 5})
		f.Add(false, byte(kind), []byte("a script is any bytes"))
	}
	f.Fuzz(func(t *testing.T, hostSends bool, kind byte, script []byte) {
		sending := wire.DPU
		if hostSends {
			sending = wire.Host
		}
		newRandomSession(t, sending, randomKind(kind)%randomKinds, script).run()
	})
}

func TestNativeRandomTransfers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	outcomes := Counts{}
	for range 500 {
		script := make([]byte, random.IntN(3000))
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		m := newRandomSession(t, wire.Side(random.IntN(2)), randomKind(random.IntN(int(randomKinds))), script)
		m.run()
		last := m.sender.entries.counts
		outcomes = Counts{outcomes.Committed + last.Committed, outcomes.Unchanged + last.Unchanged,
			outcomes.Failed + last.Failed}
	}
	if outcomes.Committed == 0 || outcomes.Unchanged == 0 || outcomes.Failed == 0 {
		t.Errorf("not every outcome occurred: %+v", outcomes)
	}
}
