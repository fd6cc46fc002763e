package negotiate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// These tests try every message and every call in every state of a native session, in all four roles. The expected
// results are in testdata/native-states.txt, which docs/PROTOCOL.md quotes and explains.

// gridChunk is the whole file of the grid: one chunk, so that one record more or less makes a difference.
const gridChunk = MinChunk

var nativeErrors = map[string]error{
	"both-have-file":   ErrBothHaveFile,
	"neither-has-file": ErrNeitherHasFile,
	"peer-failed":      ErrPeerFailed,
	"peer-lost":        ErrPeerLost,
	"outcome-unknown":  ErrOutcomeUnknown,
}

// nativeRole is one of the four tables.
type nativeRole struct {
	side  Side
	sends bool
}

func (r nativeRole) String() string {
	if r.sends {
		return r.side.String() + "-sends"
	}
	return r.side.String() + "-receives"
}

func (r nativeRole) hello() Hello {
	if r.sends {
		h := senderHello()
		h.Size = gridChunk
		return h
	}
	return receiverHello()
}

func (r nativeRole) peer() nativeRole { return nativeRole{r.side.Other(), !r.sends} }

var nativeRoles = []nativeRole{{Host, true}, {Host, false}, {DPU, true}, {DPU, false}}

// nativeColumns returns the situations of a role in their order. The text after a plus is what happened in the state.
// The last ones are reached by failures.
func nativeColumns(r nativeRole) []string {
	columns := []string{"idle", "await-hello"}
	switch r {
	case nativeRole{Host, true}:
		columns = append(columns, "await-ready", "await-ready+window")
	case nativeRole{DPU, true}:
		columns = append(columns, "await-ready", "await-ready+window", "await-ready+ready")
	case nativeRole{Host, false}:
		columns = append(columns, "preparing", "preparing+window", "preparing+ready")
	default:
		columns = append(columns, "preparing", "preparing+window")
	}
	if r.sends {
		columns = append(columns, "sending", "sending+1", "sending+all", "await-prepared", "deciding", "await-done")
	} else {
		columns = append(columns,
			"receiving", "receiving+1", "receiving+all", "verifying", "await-commit", "committing", "await-disconnect")
	}
	columns = append(columns, "done", "failed")
	if r.side == DPU {
		columns = append(columns, "handed-over")
	}
	return columns
}

// reachNative returns a new session in the given situation.
func reachNative(t *testing.T, r nativeRole, column string) *NativeSession {
	t.Helper()
	n := handedOver(t, r)
	steps := []func(){
		func() { n.Start() },
		func() { mustReceive(t, n, helloOf(r.peer())) },
	}
	window := func() {
		if r.side == Host {
			must(t)(n.Window(nativeAddress, nativeDescriptor))
			return
		}
		mustReceive(t, n, gridWindow(2*gridChunk))
	}
	ready := func() {
		if r.sends {
			mustReceive(t, n, AppendReady(nil, 0))
			return
		}
		must(t)(n.Ready(0))
	}
	switch column {
	case "preparing+ready", "await-ready+ready":
		steps = append(steps, ready)
	case "failed":
		steps = []func(){func() { n.Abort(AbortFailure, "") }}
	case "handed-over":
		steps = nil
		n = reachNative(t, nativeRole{DPU, false}, "await-hello")
		mustReceive(t, n, Export{Address: 1, Descriptor: []byte{1}}.Encode())
	default:
		steps = append(append(steps, window, ready), nativeCourse(t, n, r)...)
	}
	for _, step := range steps {
		if column == situation(n) {
			break
		}
		step()
	}
	if got := situation(n); got != column {
		t.Fatalf("%s: wanted to get to %s, and got to %s", r, column, got)
	}
	return n
}

// nativeCourse has the steps after the beginning of the records.
func nativeCourse(t *testing.T, n *NativeSession, r nativeRole) []func() {
	total := Total{DigestCRC32C, gridChunk, nativeDigest}
	if r.sends {
		return []func(){
			func() { must(t)(n.Chunks(nil, []Record{data(0, 0, gridChunk)})) },
			func() { mustReceive(t, n, AppendAcks(nil, good(0))) },
			func() { must(t)(n.End(gridChunk, nativeDigest)) },
			func() { mustReceive(t, n, AppendPrepared(nil, total)) },
			func() { must(t)(n.Commit()) },
			func() { mustReceive(t, n, AppendDone(nil, DurabilityFull)) },
		}
	}
	return []func(){
		func() { mustReceive(t, n, AppendChunks(nil, []Record{data(0, 0, gridChunk)})) },
		func() { must(t)(n.Acks(nil, good(0))) },
		func() { mustReceive(t, n, AppendEnd(nil, total)) },
		func() { must(t)(n.Prepared(nativeDigest)) },
		func() { mustReceive(t, n, AppendCommit(nil)) },
		func() { must(t)(n.Done(DurabilityFull)) },
		func() { _ = n.Disconnected() },
	}
}

// handedOver returns a native session that a Session has created, as in a transfer.
func handedOver(t *testing.T, r nativeRole) *NativeSession {
	t.Helper()
	own := r.hello()
	s := NewSession(r.side, Local{HasFile: r.sends, Size: own.Size, Native: &own}, nativeLimits)
	s.Start()
	heard := Direction{FileInHost: r.side == DPU && !r.sends, Size: own.Size, Offer: [3]byte{offerMark, 1, 1}}
	step, err := s.Receive(heard.Encode())
	if err != nil || step.Event != ToNative {
		t.Fatalf("%s: %s, %v", r, step.Event, err)
	}
	return step.Native
}

func mustReceive(t *testing.T, n *NativeSession, msg []byte) {
	t.Helper()
	if _, err := n.Receive(msg); err != nil {
		t.Fatal(err)
	}
}

// situation returns the column of a session.
func situation(n *NativeSession) string {
	name := n.State().String()
	switch n.State() {
	case Preparing, AwaitReady:
		if n.window {
			name += "+window"
		}
		if n.ready {
			name += "+ready"
		}
	case Sending, Receiving:
		if n.slots.outstanding > 0 {
			name += "+1"
		} else if n.slots.acknowledged > 0 {
			name += "+all"
		}
	}
	return name
}

func helloOf(r nativeRole) []byte {
	h := r.hello()
	h.Version = 1
	return AppendHello(nil, h)
}

func gridWindow(length uint64) []byte {
	return AppendWindow(nil, Window{Address: nativeAddress, Length: length, Descriptor: nativeDescriptor})
}

type nativeOutcome struct {
	event   Event
	message []byte // to be sent
	err     error
}

type nativeInput struct {
	name  string
	apply func(*NativeSession) nativeOutcome
}

func nativeReceived(name string, messages ...[]byte) []nativeInput {
	var inputs []nativeInput
	for _, msg := range messages {
		inputs = append(inputs, nativeInput{name, func(n *NativeSession) nativeOutcome {
			step, err := n.Receive(msg)
			return nativeOutcome{step.Event, step.Reply, err}
		}})
	}
	return inputs
}

func nativeCall(name string, call func(*NativeSession) ([]byte, error)) nativeInput {
	return nativeInput{name, func(n *NativeSession) nativeOutcome {
		message, err := call(n)
		return nativeOutcome{None, message, err}
	}}
}

// nativeInputs returns the rows. Some have several inputs with the same result.
func nativeInputs(r nativeRole) []nativeInput {
	inputs := append(nativeMessages(r), referenceMessages()...)
	inputs = append(inputs, nativeReceived("malformed",
		nil, []byte{0x14, 0, 0}, []byte{4, 0, 0, 0}, []byte{0x1c, 0, 0, 0}, make([]byte, nativeLimits.MaxMessage+1))...)
	return append(inputs, nativeCalls()...)
}

func nativeMessages(r nativeRole) []nativeInput {
	one, total := []Record{data(0, 0, gridChunk)}, Total{DigestCRC32C, gridChunk, nativeDigest}
	outside := []Record{data(2, 0, gridChunk)}
	var inputs []nativeInput
	for _, row := range []struct {
		name     string
		messages [][]byte
	}{
		{"HELLO", [][]byte{helloOf(r.peer())}},
		{"HELLO,alike", [][]byte{helloOf(r)}},
		{"HELLO,malformed", [][]byte{helloOf(r.peer())[:87], AppendHello(nil, r.peer().hello())}},
		{"WINDOW", [][]byte{gridWindow(2 * gridChunk)}},
		{"WINDOW,malformed", [][]byte{gridWindow(2*gridChunk - 1), gridWindow(0), gridWindow(2 * gridChunk)[:32]}},
		{"READY", [][]byte{AppendReady(nil, 0), AppendReady(nil, gridChunk)}},
		{"READY,malformed", [][]byte{AppendReady(nil, gridChunk+1), AppendReady(nil, 0)[:15]}},
		{"CHUNKS", [][]byte{AppendChunks(nil, one)}},
		{"CHUNKS,malformed", [][]byte{AppendChunks(nil, outside), AppendChunks(nil, nil), AppendChunks(nil, one)[:39]}},
		{"ACKS", [][]byte{AppendAcks(nil, good(0))}},
		{"ACKS,malformed", [][]byte{AppendAcks(nil, good(2)), AppendAcks(nil, nil), AppendAcks(nil, good(0))[:15]}},
		{"HEARTBEAT", [][]byte{AppendBeat(nil, Beat{1, 2})}},
		{"HEARTBEAT,malformed", [][]byte{AppendBeat(nil, Beat{1, 2})[:15]}},
		{"METADATA", [][]byte{AppendMetadata(nil, Metadata{5, 0, []byte("12345")})}},
		{"METADATA,malformed", [][]byte{
			AppendMetadata(nil, Metadata{5, 1, []byte("2345")}), AppendMetadata(nil, Metadata{}),
		}},
		{"END", [][]byte{AppendEnd(nil, total)}},
		{"END,malformed", [][]byte{
			AppendEnd(nil, Total{DigestXXH3, gridChunk, make([]byte, 9)}), AppendEnd(nil, total)[:19],
		}},
		{"PREPARED", [][]byte{AppendPrepared(nil, total)}},
		{"PREPARED,malformed", [][]byte{
			AppendPrepared(nil, Total{DigestCRC32C, 1, nativeDigest}), AppendPrepared(nil, total)[:19],
		}},
		{"COMMIT", [][]byte{AppendCommit(nil)}},
		{"COMMIT,malformed", [][]byte{AppendCommit(nil)[:7]}},
		{"DONE", [][]byte{AppendDone(nil, DurabilityFull)}},
		{"DONE,malformed", [][]byte{AppendDone(nil, 3), AppendDone(nil, 0)[:7]}},
		{"ABORT", [][]byte{AppendAbort(nil, AbortDigest, "no"), AppendAbort(nil, AbortFailure, "")}},
		{"ABORT,malformed", [][]byte{AppendAbort(nil, AbortDigest, "no")[:13]}},
	} {
		inputs = append(inputs, nativeReceived(row.name, row.messages...)...)
	}
	return inputs
}

func referenceMessages() []nativeInput {
	export := Export{Address: nativeAddress, Descriptor: nativeDescriptor}.Encode()
	inputs := nativeReceived("DIRECTION", Direction{}.Encode())
	inputs = append(inputs, nativeReceived("EXPORT", export)...)
	inputs = append(inputs, nativeReceived("EXPORT,malformed", export[:24])...)
	inputs = append(inputs, nativeReceived("STATUS(0)", Status{}.Encode())...)
	return append(inputs, nativeReceived("STATUS(1)", Status{Success: true}.Encode())...)
}

func nativeCalls() []nativeInput {
	return []nativeInput{
		nativeCall("Start()", func(n *NativeSession) ([]byte, error) { return n.Start(), nil }),
		nativeCall("Window()", func(n *NativeSession) ([]byte, error) {
			return n.Window(nativeAddress, nativeDescriptor)
		}),
		nativeCall("Ready()", func(n *NativeSession) ([]byte, error) { return n.Ready(gridChunk) }),
		nativeCall("Chunks()", func(n *NativeSession) ([]byte, error) {
			return n.Chunks(nil, []Record{data(0, 0, gridChunk)})
		}),
		nativeCall("Acks()", func(n *NativeSession) ([]byte, error) { return n.Acks(nil, good(0)) }),
		nativeCall("Beat()", func(n *NativeSession) ([]byte, error) { return n.Beat(nil, Beat{1, 2}) }),
		nativeCall("Metadata()", func(n *NativeSession) ([]byte, error) {
			return n.Metadata(Metadata{5, 0, []byte("12345")})
		}),
		nativeCall("End()", func(n *NativeSession) ([]byte, error) { return n.End(gridChunk, nativeDigest) }),
		nativeCall("Prepared()", func(n *NativeSession) ([]byte, error) { return n.Prepared(nativeDigest) }),
		nativeCall("Commit()", func(n *NativeSession) ([]byte, error) { return n.Commit() }),
		nativeCall("Done()", func(n *NativeSession) ([]byte, error) { return n.Done(DurabilityFull) }),
		nativeCall("Abort()", func(n *NativeSession) ([]byte, error) { return n.Abort(AbortTarget, "full"), nil }),
		nativeCall("Disconnected()", func(n *NativeSession) ([]byte, error) { return nil, n.Disconnected() }),
	}
}

// nativeCell formats the result of an input like the grid. usual is the row's usual result.
func nativeCell(before State, failure error, n *NativeSession, got nativeOutcome, usual string) string {
	silent := got.message == nil && got.event == None
	switch {
	case before == Failed && n.State() == Failed && silent && (got.err == nil || got.err == failure):
		return "="
	case got.err == nil && n.State() == before && silent:
		return "."
	case got.err != nil && n.State() == before && silent:
		return "-"
	case got.err != nil:
		return errorCell(got)
	}
	cell := n.State().String()
	if n.State() == before {
		cell = "ok"
	}
	if brings := brings(got); brings != usual {
		cell += "(" + brings + ")"
	}
	return cell
}

func brings(got nativeOutcome) string {
	text := ""
	if got.event != None {
		text = got.event.String()
	}
	if got.message != nil {
		text += ">" + typeOf(got.message).String()
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
		return name + ">" + typeOf(got.message).String()
	case notice.Code != AbortProtocol || notice.Text != got.err.Error():
		return fmt.Sprintf("%s>ABORT(%d,%s)", name, notice.Code, notice.Text)
	}
	return "!" + name
}

// errorName returns short names for the two most frequent errors.
func errorName(err error) string {
	var aborted *PeerAborted
	switch {
	case errors.Is(err, ErrOutOfOrder):
		return "x"
	case errors.Is(err, ErrMalformed):
		return "m"
	case errors.As(err, &aborted):
		return "peer-aborted"
	}
	for name, sentinel := range nativeErrors {
		if errors.Is(err, sentinel) {
			return name
		}
	}
	return err.Error()
}

func TestNativeEveryInputInEveryState(t *testing.T) {
	grid := readGridFile(t, "native-states.txt")
	used := map[gridKey]bool{}
	for _, r := range nativeRoles {
		for _, in := range nativeInputs(r) {
			usual := gridKey{r.String(), "brings", in.name}
			used[usual] = true
			for _, column := range nativeColumns(r) {
				key := gridKey{r.String(), column, in.name}
				used[key] = true
				n := reachNative(t, r, column)
				before, failure := n.State(), error(n.failure)
				got := in.apply(n)
				if cell := nativeCell(before, failure, n, got, grid[usual]); cell != grid[key] {
					t.Errorf("%v: got %s, want %q (%v)", key, cell, grid[key], got.err)
				}
				checkNativeError(t, key, n, got.err)
			}
		}
	}
	for key := range grid {
		if !used[key] {
			t.Errorf("native-states.txt speaks of %v, which does not exist", key)
		}
	}
}

func checkNativeError(t *testing.T, key gridKey, n *NativeSession, err error) {
	t.Helper()
	if failure := new(Error); err != nil && (!errors.As(err, &failure) || failure.State == 0) {
		t.Errorf("%v: %v does not say in which state", key, err)
	}
	if n.State() != Failed {
		return
	}
	for _, msg := range [][]byte{AppendAbort(nil, 1, ""), AppendBeat(nil, Beat{}), nil} {
		if step, err := n.Receive(msg); err != error(n.failure) || step.Reply != nil || step.Event != None {
			t.Errorf("%v: a failed session answered % x with %+v, %v", key, msg, step, err)
		}
	}
}

func TestSpecificationQuotesTheNativeGrid(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "native-states.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(readProtocol(t), string(text)) {
		t.Error("docs/PROTOCOL.md does not quote testdata/native-states.txt as it is")
	}
}
