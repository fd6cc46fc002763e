package native

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// These tests try every message and every call in every situation of a native session: in both roles, on both sides,
// with a file and with a directory. The expected results are in testdata/states.txt, which README.md of package
// negotiate explains. Rows in which host and DPU differ end with the side.

// gridChunk is the whole file of the grid: one chunk, so that one record more or less makes a difference.
const gridChunk = wire.MinChunk

var nativeErrors = map[string]error{
	"both-have-file":   wire.ErrBothHaveFile,
	"neither-has-file": wire.ErrNeitherHasFile,
	"peer-failed":      wire.ErrPeerFailed,
	"needs-native":     wire.ErrNeedsNative,
	"aborted":          wire.ErrAborted,
	"outcome-unknown":  wire.ErrOutcomeUnknown,
}

// nativeRole is one of the tables.
type nativeRole struct {
	side   wire.Side
	sends  bool
	course gridCourse
}

// gridCourse is what is transferred: a file in chunks, a file of a directory in a pack, or an empty directory.
type gridCourse int

const (
	gridFile   gridCourse = 0
	gridPacked gridCourse = 1
	gridTree   gridCourse = 2
)

// String returns the name of the table.
func (r nativeRole) String() string {
	name := "receives"
	if r.sends {
		name = "sends"
	}
	return name + [...]string{gridFile: "", gridPacked: "-pack", gridTree: "-tree"}[r.course]
}

func (r nativeRole) hello() Hello {
	switch {
	case !r.sends:
		return receiverHello()
	case r.course == gridFile:
		return senderHello()
	}
	return treeHello()
}

func (r nativeRole) peer() nativeRole { return nativeRole{r.side.Other(), !r.sends, r.course} }

// entries returns those of the transfer. The last one is the entry of the table. The directory of a file in a pack is
// never decided.
func (r nativeRole) entries() []wire.Entry {
	var entries []wire.Entry
	switch r.course {
	case gridFile:
		entries = []wire.Entry{rootFile()}
		entries[0].Size = gridChunk
	case gridPacked:
		entries = []wire.Entry{rootDirectory(), fileAt(1, "a", gridChunk)}
	case gridTree:
		entries = []wire.Entry{rootDirectory()}
	}
	entries[len(entries)-1].Flags |= wire.EntryHasMetadata
	return entries
}

// entry returns the number of the entry of the table.
func (r nativeRole) entry() uint32 { return uint32(len(r.entries())) - 1 }

// nativeRoles has those with the same table next to each other.
var nativeRoles = []nativeRole{
	{wire.Host, true, gridFile}, {wire.DPU, true, gridFile}, {wire.Host, false, gridFile}, {wire.DPU, false, gridFile},
	{wire.Host, true, gridPacked}, {wire.DPU, true, gridPacked}, {wire.Host, false, gridPacked}, {wire.DPU, false,
		gridPacked},
	{wire.Host, true, gridTree}, {wire.DPU, true, gridTree}, {wire.Host, false, gridTree}, {wire.DPU, false, gridTree},
}

// author says who sends a message of the grid.
type author int

const (
	byHost     author = 0
	bySender   author = 1
	byReceiver author = 2
	byBoth     author = 3
)

// gridStep is how a situation is reached: from another one, by a message.
type gridStep struct {
	name    string // of the situation
	from    string
	by      author
	message any // to be sent or received, according to the role
	call    func(*Session)
}

func (r nativeRole) failure() Failure {
	return Failure{Entry: r.entry(), Code: wire.AbortTarget, Text: "no"}
}

func (r nativeRole) metadata() metadataMessage {
	return metadataMessage{r.entry(), Metadata{5, 0, []byte("12345")}}
}

func (r nativeRole) records() []Record {
	return []Record{{Kind: DataRecord, Entry: r.entry(), Length: gridChunk, Check: 7}}
}

func (r nativeRole) pack() Pack {
	return Pack{Files: []PackedFile{
		{Entry: r.entry(), Length: gridChunk, Check: 7, Digest: [wire.MaxDigestSize]byte{1}},
	}}
}

func (r nativeRole) answer(kind AnswerKind) []Answer { return []Answer{{Entry: r.entry(), Kind: kind}} }

func (r nativeRole) end() endMessage { return endMessage{r.entry(), gridChunk, nativeDigest} }

func (r nativeRole) finish() finishMessage { return finishMessage{r.entry() + 1, 0, ""} }

// gridBeginning leads both kinds of transfers to their first entry.
func gridBeginning(r nativeRole) []gridStep {
	hello := r.peer().hello()
	hello.Version = Supported.Max
	return []gridStep{
		{"await-hello", "idle", 0, nil, func(n *Session) { n.Start() }},
		{"ready", "await-hello", 0, nil, func(n *Session) { _, _ = n.Receive(AppendHello(nil, hello)) }},
		{"ready+window", "ready", byHost, Window{nativeAddress, 2 * gridChunk, nativeDescriptor}, nil},
		{"transferring", "ready+window", bySender, transferMessage{}, nil},
		{"unanswered", "transferring", bySender, r.entries(), nil},
	}
}

// gridSteps returns the situations of a role in their order, without the first.
func gridSteps(r nativeRole) []gridStep {
	course := [...]func(nativeRole) []gridStep{
		gridFile: gridFileSteps, gridPacked: gridPackSteps, gridTree: gridTreeSteps,
	}[r.course]
	steps := append(gridBeginning(r), course(r)...)
	return append(steps, gridStep{"failed", "idle", 0, nil, func(n *Session) { n.Abort(wire.AbortFailure, "") }})
}

func gridFileSteps(r nativeRole) []gridStep {
	failing := byReceiver
	if r.sends {
		failing = bySender
	}
	committed := finishedMessage{wire.DurabilityFull, Counts{Committed: 1}, ""}
	return []gridStep{
		{"needed", "unanswered", byReceiver, r.answer(AnswerNeed), nil},
		{"needed+metadata", "needed", bySender, r.metadata(), nil},
		{"needed+1", "needed+metadata", bySender, r.records(), nil},
		{"needed+all", "needed+1", byReceiver, []Ack{{}}, nil},
		{"asked", "unanswered", byReceiver, r.answer(AnswerSum), nil},
		{"summed", "asked", bySender, sumMessage{r.entry(), nativeSum}, nil},
		{"failing", "needed+metadata", failing, r.failure(), nil},
		{"ended", "needed+all", bySender, r.end(), nil},
		{"decided", "ended", byReceiver, resultsMessage{r.entry()}, nil},
		{"finishing", "ended", bySender, r.finish(), nil},
		{"finishing+decided", "decided", bySender, r.finish(), nil},
		{"cancelling", "ended", bySender, PeerAborted{wire.AbortInterrupted, ""}, nil},
		{"ready+again", "finishing+decided", byReceiver, committed, nil},
		{"done", "ready+again", 0, nil, func(n *Session) { _ = n.Disconnected() }},
	}
}

// gridPackSteps has what differs from a file in chunks.
func gridPackSteps(r nativeRole) []gridStep {
	return []gridStep{
		{"needed", "unanswered", byReceiver, r.answer(AnswerNeed), nil},
		{"needed+metadata", "needed", bySender, r.metadata(), nil},
		{"packed", "needed+metadata", bySender, r.pack(), nil},
		{"needed+again", "packed", byReceiver, []Ack{{Bad: true}}, nil},
		{"ended", "packed", byReceiver, []Ack{{}}, nil},
		{"decided", "ended", byReceiver, resultsMessage{r.entry()}, nil},
		{"finishing+packed", "packed", bySender, r.finish(), nil},
		{"finishing+needed+again", "finishing+packed", byReceiver, []Ack{{Bad: true}}, nil},
		{"cancelling", "packed", bySender, PeerAborted{wire.AbortInterrupted, ""}, nil},
	}
}

func gridTreeSteps(r nativeRole) []gridStep {
	steps := []gridStep{
		{"unanswered+metadata", "unanswered", bySender, r.metadata(), nil},
		{"decided", "unanswered+metadata", byReceiver, resultsMessage{r.entry()}, nil},
		{"decided+failed", "decided", byReceiver, r.failure(), nil},
		{"finishing", "unanswered+metadata", bySender, r.finish(), nil},
		{"finishing+decided", "decided", bySender, r.finish(), nil},
	}
	if r.sends {
		return steps
	}
	return append(steps, gridStep{"failing", "unanswered", byReceiver, r.failure(), nil})
}

// situation returns the column of a session.
func situation(n *Session) string {
	switch n.State() {
	case Ready:
		switch {
		case n.transfers > 0:
			return "ready+again"
		case n.window:
			return "ready+window"
		}
		return "ready"
	case Transferring:
		if n.order.Next > 0 {
			return entrySituation(n)
		}
	case Finishing:
		if name := entrySituation(n); name != "ended" && name != "unanswered+metadata" {
			return "finishing+" + name
		}
	}
	return n.State().String()
}

func entrySituation(n *Session) string {
	e := n.entries.at(n.entries.next - 1)
	name := [...]string{
		decided: "decided", unanswered: "unanswered", needed: "needed", asked: "asked", summed: "summed",
		ended: "ended",
	}[e.phase]
	switch {
	case e.phase == decided && n.entries.counts.Failed > 0 && e.kind == wire.EntryDirectory:
		return "decided+failed"
	case e.failed && e.phase != decided:
		return "failing"
	case e.packed && e.phase == ended:
		return "packed"
	case e.phase != needed && e.phase != unanswered:
		return name
	case n.slots.outstanding > 0:
		return name + "+1"
	case e.again:
		return name + "+again"
	case e.acked > 0:
		return name + "+all"
	case e.metadata.total > 0:
		return name + "+metadata"
	}
	return name
}

// reachNative returns a new session in the given situation.
func reachNative(t *testing.T, r nativeRole, column string) *Session {
	t.Helper()
	if column == "idle" {
		return handedOver(t, r)
	}
	for _, step := range gridSteps(r) {
		if step.name != column {
			continue
		}
		n := reachNative(t, r, step.from)
		step.take(t, n)
		if got := situation(n); got != column {
			t.Fatalf("%s: wanted to get to %s, and got to %s", r, column, got)
		}
		return n
	}
	t.Fatalf("%s has no situation %s", r, column)
	return nil
}

func (s gridStep) take(t *testing.T, n *Session) {
	t.Helper()
	switch {
	case s.call != nil:
		s.call(n)
	case s.by == byHost && n.side == wire.Host, s.by == bySender && n.sends(), s.by == byReceiver && !n.sends():
		if _, err := call(n, s.message); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	default:
		mustReceive(t, n, encodeNative(s.message, wire.DigestCRC32C))
	}
}

// handedOver returns a native session that a Session has created, as in a transfer.
func handedOver(t *testing.T, r nativeRole) *Session {
	t.Helper()
	offer := &Offer{Own: r.hello()}
	s := reference.New(r.side, reference.Local{HasFile: r.sends, Size: gridChunk, Native: offer}, nativeLimits)
	s.Start()
	heard := reference.Direction{FileInHost: r.side == wire.DPU && !r.sends, Size: gridChunk, Offer: [3]byte{0xDC, 2,
		2}}
	step, err := s.Receive(heard.Encode())
	if err != nil || step.Event != reference.ToNative {
		t.Fatalf("%s: %s, %v", r, step.Event, err)
	}
	return offer.Session
}

func mustReceive(t *testing.T, n *Session, msg []byte) {
	t.Helper()
	if _, err := n.Receive(msg); err != nil {
		t.Fatal(err)
	}
}

type nativeOutcome struct {
	event   Event
	message []byte // to be sent
	err     error
}

type nativeInput struct {
	name  string
	apply func(*Session) nativeOutcome
}

func nativeReceived(name string, messages ...[]byte) []nativeInput {
	var inputs []nativeInput
	for _, msg := range messages {
		inputs = append(inputs, nativeInput{name, func(n *Session) nativeOutcome {
			step, err := n.Receive(msg)
			return nativeOutcome{step.Event, step.Reply, err}
		}})
	}
	return inputs
}

// nativeInputs returns the rows. Some have several inputs with the same result.
func nativeInputs(r nativeRole) []nativeInput {
	inputs := nativeHellos(r)
	for _, m := range gridMessages(r) {
		inputs = append(inputs, nativeReceived(r.row(m, !r.sends), encodeNative(m.value, wire.DigestCRC32C))...)
	}
	inputs = append(inputs, referenceMessages(r)...)
	inputs = append(inputs, nativeReceived("malformed", nil, []byte{0x24, 0, 0}, []byte{4, 0, 0, 0},
		[]byte{0x15, 0, 0, 0}, []byte{0x1f, 0, 0, 0}, []byte{0x2d, 0, 0, 0}, []byte{0, 0, 0, 0x80},
		make([]byte, nativeLimits.MaxMessage+1))...)
	return append(inputs, nativeCalls(r)...)
}

// row returns the row of a message or, in lower case, of the call that sends it. All that the other role would receive
// or call share a row. fromSender says that a sender sends it here.
func (r nativeRole) row(m gridMessage, fromSender bool) string {
	switch {
	case m.by == bySender && !fromSender:
		return "of-sender"
	case m.by == byReceiver && fromSender:
		return "of-receiver"
	case m.by == byHost:
		return m.name + "@" + r.side.String()
	}
	return m.name
}

func nativeHellos(r nativeRole) []nativeInput {
	own, peer := r.hello(), r.peer().hello()
	own.Version, peer.Version = Supported.Max, Supported.Max
	own.Flags |= FlagRefuseSame
	inputs := nativeReceived("HELLO@"+r.side.String(), AppendHello(nil, peer))
	return append(inputs, nativeReceived("HELLO,alike@"+r.side.String(), AppendHello(nil, own))...)
}

type gridMessage struct {
	name  string
	by    author // byBoth for either role
	value any
}

// gridMessages returns what is both received and sent by calls.
func gridMessages(r nativeRole) []gridMessage {
	return []gridMessage{
		{"WINDOW", byHost, Window{nativeAddress, 2 * gridChunk, nativeDescriptor}},
		{"HEARTBEAT", byBoth, Beat{1, 2}},
		{"ABORT", byBoth, PeerAborted{wire.AbortDigest, "no"}},
		{"CANCELLED", byReceiver, cancelledMessage{}},
		{"TRANSFER", bySender, transferMessage{}},
		{"ENTRIES", bySender, r.entries()},
		{"ANSWERS(need)", byReceiver, r.answer(AnswerNeed)},
		{"ANSWERS(have)", byReceiver, r.answer(AnswerHave)},
		{"ANSWERS(sum)", byReceiver, r.answer(AnswerSum)},
		{"METADATA", bySender, r.metadata()},
		{"CHUNKS", bySender, r.records()},
		{"PACK", bySender, r.pack()},
		{"ACKS(ok)", byReceiver, []Ack{{}}},
		{"ACKS(bad)", byReceiver, []Ack{{Bad: true}}},
		{"END", bySender, r.end()},
		{"SUM", bySender, sumMessage{r.entry(), nativeSum}},
		{"FAILURE", byBoth, r.failure()},
		{"RESULTS", byReceiver, resultsMessage{r.entry()}},
		{"FINISH", bySender, r.finish()},
		{"FINISHED", byReceiver, finishedMessage{wire.DurabilityFull, Counts{Committed: 1}, ""}},
	}
}

// referenceMessages returns the messages of the reference protocol. Only a DPU tells them apart.
func referenceMessages(r nativeRole) []nativeInput {
	export := reference.Export{Address: nativeAddress, Descriptor: nativeDescriptor}.Encode()
	failure, others := reference.Status{}.Encode(), [][]byte{reference.Direction{}.Encode(),
		reference.Status{Success: true}.Encode()}
	if r.side == wire.Host {
		return nativeReceived("reference", append(others, export, failure)...)
	}
	inputs := nativeReceived("reference", others...)
	inputs = append(inputs, nativeReceived("EXPORT@DPU", export)...)
	inputs = append(inputs, nativeReceived("EXPORT,malformed@DPU", export[:24])...)
	return append(inputs, nativeReceived("STATUS(0)@DPU", failure)...)
}

// nativeCalls returns the calls: the messages' names in lower case.
func nativeCalls(r nativeRole) []nativeInput {
	inputs := []nativeInput{nativeCall("start()@"+r.side.String(), func(n *Session) ([]byte, error) {
		return n.Start(), nil
	})}
	for _, m := range gridMessages(r) {
		m.name = strings.ToLower(m.name)
		if !strings.Contains(m.name, "(") {
			m.name += "()"
		}
		name := r.row(m, r.sends)
		if strings.HasPrefix(name, "of-") {
			name += "()"
		}
		inputs = append(inputs, nativeCall(name, func(n *Session) ([]byte, error) { return call(n, m.value) }))
	}
	return append(inputs,
		nativeCall("disconnected()", func(n *Session) ([]byte, error) { return nil, n.Disconnected() }))
}

func nativeCall(name string, call func(*Session) ([]byte, error)) nativeInput {
	return nativeInput{name, func(n *Session) nativeOutcome {
		message, err := call(n)
		return nativeOutcome{None, message, err}
	}}
}

// nativeCell formats the result of an input like the grid. usual is the row's usual result.
func nativeCell(before string, failure error, n *Session, got nativeOutcome, usual string) string {
	after, silent := situation(n), got.message == nil && got.event == None
	switch {
	case before == "failed" && after == "failed" && silent && (got.err == nil || got.err == failure):
		return "="
	case got.err == nil && after == before && silent:
		return "."
	case got.err != nil && after == before && silent:
		return "-"
	case got.err != nil:
		return errorCell(got)
	}
	if after == before {
		after = "ok"
	}
	if brings := brings(got); brings != usual {
		after += "(" + brings + ")"
	}
	return after
}

func brings(got nativeOutcome) string {
	text := ""
	if got.event != None {
		text = got.event.String()
	}
	if got.message != nil {
		text += ">" + wire.TypeOf(got.message).String()
	}
	if text == "" {
		return "-"
	}
	return text
}

func errorCell(got nativeOutcome) string {
	name := errorName(got.err)
	if got.message == nil {
		return "." + name
	}
	notice, err := DecodeAbort(got.message)
	switch {
	case err != nil:
		return name + ">" + wire.TypeOf(got.message).String()
	case notice.Code != wire.AbortProtocol || notice.Text != got.err.Error():
		return fmt.Sprintf("%s>ABORT(%d,%s)", name, notice.Code, notice.Text)
	}
	return "!" + name
}

// errorName returns one letter for the most frequent errors.
func errorName(err error) string {
	var aborted *PeerAborted
	switch {
	case errors.Is(err, wire.ErrOutOfOrder):
		return "x"
	case errors.Is(err, wire.ErrMalformed):
		return "m"
	case errors.Is(err, wire.ErrPeerLost):
		return "l"
	case errors.As(err, &aborted):
		return "a"
	}
	for name, sentinel := range nativeErrors {
		if errors.Is(err, sentinel) {
			return name
		}
	}
	return err.Error()
}

func nativeColumns(r nativeRole) []string {
	columns := []string{"idle"}
	for _, step := range gridSteps(r) {
		columns = append(columns, step.name)
	}
	return columns
}

func TestNativeEveryInputInEveryState(t *testing.T) {
	grid := wiretest.ReadGridFile(t, "states.txt")
	used := map[wiretest.GridKey]bool{}
	for _, r := range nativeRoles {
		for _, in := range nativeInputs(r) {
			usual := wiretest.GridKey{r.String(), "brings", in.name}
			used[usual] = true
			for _, column := range nativeColumns(r) {
				key := wiretest.GridKey{r.String(), column, in.name}
				used[key] = true
				n := reachNative(t, r, column)
				failure := error(n.machine.Failure)
				got := in.apply(n)
				if cell := nativeCell(column, failure, n, got, grid[usual]); cell != grid[key] {
					t.Errorf("%v: got %s, want %q (%v)", key, cell, grid[key], got.err)
				}
				checkNativeError(t, key, n, got.err)
			}
		}
	}
	for key := range grid {
		if !used[key] {
			t.Errorf("states.txt speaks of %v, which does not exist", key)
		}
	}
}

// expectedIn has the states in which a malformed message is not even expected otherwise; the entries do not matter.
var expectedIn = map[string][]State{
	"WINDOW":    {Ready, Transferring, Finishing, Cancelling},
	"HEARTBEAT": {Ready, Transferring, Finishing, Cancelling},
	"ABORT":     {Idle, AwaitHello, Ready, Transferring, Finishing, Cancelling, Done},
	"CANCELLED": {Cancelling},
	"TRANSFER":  {Ready},
	"ENTRIES":   {Transferring},
	"ANSWERS":   {Transferring, Finishing, Cancelling},
	"METADATA":  {Transferring},
	"CHUNKS":    {Transferring, Finishing},
	"PACK":      {Transferring, Finishing},
	"ACKS":      {Transferring, Finishing, Cancelling},
	"END":       {Transferring, Finishing},
	"SUM":       {Transferring},
	"RESULTS":   {Transferring, Finishing, Cancelling},
	"FINISH":    {Transferring},
	"FINISHED":  {Finishing},
}

// A message that is malformed by itself fails with malformed in the states in which its type is expected, and with
// out-of-order in all others.
func TestNativeMalformedMessagesInEveryState(t *testing.T) {
	for _, r := range nativeRoles {
		for _, column := range nativeColumns(r) {
			for _, m := range gridMessages(r) {
				msg := encodeNative(m.value, wire.DigestCRC32C)
				for _, wrong := range [][]byte{msg[:len(msg)-1], append(msg[:len(msg):len(msg)], 0)} {
					n := reachNative(t, r, column)
					want := wire.ErrOutOfOrder
					if malformedIsExpected(n, r, m) {
						want = wire.ErrMalformed
					}
					if _, err := n.Receive(wrong); column != "failed" && !errors.Is(err, want) {
						t.Errorf("%s on the %s: malformed %s in %s: %v, want %v", r, r.side, m.name, column, err, want)
					}
				}
			}
		}
	}
}

func malformedIsExpected(n *Session, r nativeRole, m gridMessage) bool {
	name, _, _ := strings.Cut(m.name, "(")
	switch {
	case m.by == bySender && r.sends, m.by == byReceiver && !r.sends:
		return false
	case name == "WINDOW" && (r.side == wire.Host || n.window):
		return false
	case name == "FAILURE" && n.State() == Cancelling:
		return r.sends
	case name == "FAILURE":
		return n.State() == Transferring || n.State() == Finishing
	}
	return slices.Contains(expectedIn[name], n.State())
}

// A session that has handed over to the reference protocol does nothing any more.
func TestNativeHandedOver(t *testing.T) {
	r := nativeRole{wire.DPU, false, gridFile}
	for _, in := range nativeInputs(r) {
		n := reachNative(t, r, "await-hello")
		mustReceive(t, n, reference.Export{Address: 1, Descriptor: []byte{1}}.Encode())
		got := in.apply(n)
		if got.message != nil || got.event != None || n.State() != HandedOver && n.State() != Failed {
			t.Errorf("%s: %+v in %s", in.name, got, n.State())
		}
		checkNativeError(t, wiretest.GridKey{r.String(), "handed-over", in.name}, n, got.err)
	}
}

func checkNativeError(t *testing.T, key wiretest.GridKey, n *Session, err error) {
	t.Helper()
	if failure := new(wire.Error); err != nil && (!errors.As(err, &failure) || failure.State == nil) {
		t.Errorf("%v: %v does not say in which state", key, err)
	}
	if n.State() != Failed {
		return
	}
	for _, msg := range [][]byte{AppendAbort(nil, 1, ""), AppendBeat(nil, Beat{}), nil} {
		if step, err := n.Receive(msg); err != error(n.machine.Failure) || step.Reply != nil || step.Event != None {
			t.Errorf("%v: a failed session answered % x with %+v, %v", key, msg, step, err)
		}
	}
}
