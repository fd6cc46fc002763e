package negotiate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// updateStates is for the tables that tests render.
var updateStates = flag.Bool("update", false, "rewrite testdata/ping-states.txt and service-states.txt")

// pingMessageLimit is that of the control channel in these tests.
const pingMessageLimit = 256

// pingPair is both sides of one conversation, and what is under way between them.
type pingPair struct {
	t        *testing.T
	sessions [2]*PingSession
	queues   [2][]pingWire // by receiver
	events   [2][]Event
	texts    [2][]string
	mangle   func(message []byte) []byte // nil: nothing
}

// pingWire is a message, and whether it goes over producers and consumers.
type pingWire struct {
	message []byte
	fast    bool
}

func pingLocal(side Side, count, size uint32) PingLocal {
	return PingLocal{
		Greeting: Greeting{Count: count, Size: size, Fast: MaxPingSize}, Text: "from the " + side.String(),
	}
}

func newPingPair(t *testing.T, host, dpu PingLocal) *pingPair {
	return &pingPair{t: t, sessions: [2]*PingSession{
		Host: NewPing(Host, host, pingMessageLimit), DPU: NewPing(DPU, dpu, pingMessageLimit),
	}}
}

func (p *pingPair) send(from Side, message []byte, fast bool) {
	if p.mangle != nil {
		message = p.mangle(bytes.Clone(message))
	}
	p.queues[from.Other()] = append(p.queues[from.Other()], pingWire{message, fast})
}

// run passes messages on until both sides wait or one has failed, with whose error it ends.
func (p *pingPair) run() (Side, error) {
	p.t.Helper()
	for side, s := range p.sessions {
		p.send(Side(side), s.Start(), false)
	}
	for len(p.queues[Host])+len(p.queues[DPU]) > 0 {
		for side := range p.sessions {
			if err := p.deliver(Side(side)); err != nil {
				return Side(side), err
			}
		}
	}
	return 0, nil
}

// deliver lets one side receive a message.
func (p *pingPair) deliver(side Side) error {
	s := p.sessions[side]
	if len(p.queues[side]) == 0 {
		return nil
	}
	wire := p.queues[side][0]
	p.queues[side] = p.queues[side][1:]
	receive := s.Receive
	if wire.fast {
		receive = s.ReceiveFast
	}
	step, err := receive(wire.message, nil)
	if err != nil {
		return err
	}
	p.events[side] = append(p.events[side], step.Event)
	if step.Event == PeerText {
		p.texts[side] = append(p.texts[side], step.Text)
	}
	if step.Reply != nil {
		p.send(side, step.Reply, step.OnPath && s.fast)
	}
	if step.Fast {
		message, err := s.Consumer(uint32(side) + 1)
		if err != nil {
			return err
		}
		p.send(side, message, false)
	}
	for message := s.Next(nil); message != nil; message = s.Next(nil) {
		p.send(side, message, s.fast)
	}
	return nil
}

func countEvents(events []Event, wanted Event) (n uint32) {
	for _, e := range events {
		if e == wanted {
			n++
		}
	}
	return n
}

func TestPings(t *testing.T) {
	for _, fast := range []bool{false, true} {
		for _, count := range []uint32{1, 2, 300} {
			t.Run(fmt.Sprintf("fast %t, %d", fast, count), func(t *testing.T) {
				locals := [2]PingLocal{pingLocal(Host, count, 0), pingLocal(DPU, 7, pingMessageLimit-PingHeader)}
				locals[DPU].Greeting.WantsFast = fast
				p := newPingPair(t, locals[Host], locals[DPU])
				if side, err := p.run(); err != nil {
					t.Fatalf("%s: %v", side, err)
				}
				for side, s := range p.sessions {
					events, other := p.events[side], Side(side).Other()
					trips, pinged := countEvents(events, RoundTrip), countEvents(events, Pinged)
					if trips != locals[side].Greeting.Count || pinged != locals[other].Greeting.Count {
						t.Errorf("%s: %d round trips, answered %d", Side(side), trips, pinged)
					}
					if got := p.texts[side]; len(got) != 1 || got[0] != locals[other].Text {
						t.Errorf("%s: texts %q", Side(side), got)
					}
					ended := s.State() == Done && s.Disconnected() == nil && s.Abort(AbortFailure, "") == nil
					if !ended || s.fast != fast {
						t.Errorf("%s: state %s, fast %t", Side(side), s.State(), s.fast)
					}
				}
			})
		}
	}
}

// Over the control channel the figures of one side are not disturbed by the other's round trips.
func TestPingSeries(t *testing.T) {
	p := newPingPair(t, pingLocal(Host, 3, 8), pingLocal(DPU, 3, 8))
	if _, err := p.run(); err != nil {
		t.Fatal(err)
	}
	want := []Event{Greeted, RoundTrip, RoundTrip, RoundTrip, PeerText, Pinged, Pinged, Pinged, PeerDone}
	if got := p.events[Host]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the host had %v, want %v", got, want)
	}
}

// Both sides refuse the same pairs, with the same error.
func TestPingRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		change func(host, dpu *PingLocal)
		want   error
		detail string
	}{
		"the DPU has no fast path": {
			func(h, d *PingLocal) { h.Greeting.WantsFast, d.Greeting.Fast = true, 0 }, ErrNoPath, "the DPU cannot"},
		"the host has no fast path": {
			func(h, d *PingLocal) { h.Greeting.Fast, d.Greeting.WantsFast = 0, true }, ErrNoPath, "the host cannot"},
		"too large for the control channel": {
			func(_, d *PingLocal) { d.Greeting.Size = pingMessageLimit - PingHeader + 1 }, ErrPingSize,
			"the DPU wants 241 bytes, limit 240 over the control channel"},
		"too large for the other side's device": {
			func(h, d *PingLocal) {
				h.Greeting.WantsFast, h.Greeting.Size, d.Greeting.Fast = true, 5000, 4999
			}, ErrPingSize, "the host wants 5000 bytes, limit 4999 over producers and consumers"},
	} {
		t.Run(name, func(t *testing.T) {
			host, dpu := pingLocal(Host, 1, 8), pingLocal(DPU, 1, 8)
			test.change(&host, &dpu)
			p := newPingPair(t, host, dpu)
			_, _ = p.run()
			for side, s := range p.sessions {
				for s.State() == AwaitGreeting {
					_ = p.deliver(Side(side))
				}
				err := s.Disconnected()
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.detail) {
					t.Errorf("%s: %v", Side(side), err)
				}
			}
		})
	}
}

func TestPingTextTooLong(t *testing.T) {
	host := pingLocal(Host, 1, 8)
	host.Text = strings.Repeat("x", pingMessageLimit-textSize+1)
	if side, err := newPingPair(t, host, pingLocal(DPU, 1, 8)).run(); side != Host || !errors.Is(err, ErrPingSize) {
		t.Errorf("%s: %v", side, err)
	}
	host.Greeting.WantsFast = true
	if side, err := newPingPair(t, host, pingLocal(DPU, 1, 8)).run(); err != nil {
		t.Errorf("over producers and consumers: %s: %v", side, err)
	}
}

// What is larger than the protocol permits is malformed, also in a message that is otherwise well-formed.
func TestPingLimits(t *testing.T) {
	text := AppendText(nil, strings.Repeat("x", MaxPingText))
	longer := append(bytes.Clone(text), 'x')
	binary.BigEndian.PutUint32(longer[4:], MaxPingText+1)
	payload := make([]byte, MaxPingSize+1)
	for name, test := range map[string]struct {
		decode          func(msg []byte) error
		largest, beyond []byte
	}{
		"TEXT": {func(msg []byte) error { return second(DecodeText(msg)) }, text, longer},
		"PING": {func(msg []byte) error { return second(DecodePing(msg)) },
			AppendPing(nil, Ping{Payload: payload[1:]}), AppendPing(nil, Ping{Payload: payload})},
		"PONG": {func(msg []byte) error { return second(DecodePong(msg)) },
			AppendPong(nil, Ping{Payload: payload[1:]}), AppendPong(nil, Ping{Payload: payload})},
	} {
		if err := test.decode(test.largest); err != nil {
			t.Errorf("%s of the largest size: %v", name, err)
		}
		if err := test.decode(test.beyond); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s of one byte more: %v", name, err)
		}
	}
}

// Buffers have to hold the largest message of either side, and a TEXT.
func TestLargestPing(t *testing.T) {
	for _, test := range []struct{ host, dpu, want uint32 }{
		{0, 8, PingHeader + MaxPingText}, {5000, 8, PingHeader + 5000}, {8, 5000, PingHeader + 5000},
	} {
		host, dpu := pingLocal(Host, 1, test.host), pingLocal(DPU, 1, test.dpu)
		host.Greeting.WantsFast = true
		p := newPingPair(t, host, dpu)
		if _, err := p.run(); err != nil {
			t.Fatal(err)
		}
		for side, s := range p.sessions {
			if got := s.Largest(); got != int(test.want) {
				t.Errorf("%d and %d bytes: %s: got %d, want %d", test.host, test.dpu, Side(side), got, test.want)
			}
		}
	}
}

// Every byte of a payload is compared.
func TestPingPayloadChanged(t *testing.T) {
	for at := range 8 {
		p := newPingPair(t, pingLocal(Host, 2, 8), pingLocal(DPU, 2, 8))
		p.mangle = func(message []byte) []byte {
			if typeOf(message) == TypePong && message[7] == 1 {
				message[PingHeader+at] ^= 1
			}
			return message
		}
		side, err := p.run()
		const detail = "round trip 2 of 2 with the DPU"
		if !errors.Is(err, ErrPayload) || side != Host || !strings.Contains(err.Error(), detail) {
			t.Errorf("byte %d: %s: %v", at, side, err)
		}
	}
}

// The payload of a PING is not that of the one before.
func TestPingPayloadsDiffer(t *testing.T) {
	p := newPingPair(t, pingLocal(Host, 3, 64), pingLocal(DPU, 1, 8))
	var before []byte
	p.mangle = func(message []byte) []byte {
		if typeOf(message) == TypePing && len(message) == PingHeader+64 {
			if bytes.Equal(message[PingHeader:], before) {
				t.Error("twice the same payload")
			}
			before = message[PingHeader:]
		}
		return message
	}
	if _, err := p.run(); err != nil || before == nil {
		t.Fatal(err)
	}
}

// What a later version sends after its version field is not looked at.
func TestPingOfAnotherVersion(t *testing.T) {
	for _, size := range []int{5, 20, 100} {
		message := make([]byte, size)
		copy(message, []byte{0x30, 0, 0, 0, 2})
		s := NewPing(Host, pingLocal(Host, 1, 8), pingMessageLimit)
		s.Start()
		if _, err := s.Receive(message, nil); !errors.Is(err, ErrPingVersion) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestPingWrongSize(t *testing.T) {
	for _, size := range []int{7, 9} {
		s := pingIn(t, DPU, false, strings.Fields("idle await-greeting their-text their-ping"))
		_, err := s.Receive(AppendPing(nil, Ping{Payload: make([]byte, size)}), nil)
		wantMalformed(t, nil, err)
	}
}

func TestPingAbortFitsAMessage(t *testing.T) {
	s := NewPing(Host, pingLocal(Host, 1, 8), pingMessageLimit)
	s.Start()
	if message := s.Abort(AbortDevice, strings.Repeat("x", 1000)); len(message) != pingMessageLimit {
		t.Errorf("%d bytes", len(message))
	}
}

// The situations of one side, in the order in which they are reached with one round trip of each side.
var pingSituations = map[string]string{
	"host": "idle await-greeting text ping in-flight their-text their-ping their-end done failed",
	"DPU":  "idle await-greeting their-text their-ping their-end text ping in-flight done failed",
	"fast": "idle await-greeting ready await-consumer text ping in-flight their-text their-ping their-end done failed",
}

// pingInputs are the rows of the tables.
var pingInputs = []struct {
	name  string
	apply func(*PingSession) (PingStep, error)
}{
	{"GREETING", overChannel(AppendGreeting(nil, Greeting{Version: 1, Count: 1, Size: 8, Fast: MaxPingSize}))},
	{"CONSUMER", overChannel(AppendConsumer(nil, 1))},
	{"TEXT", overChannel(AppendText(nil, "x"))},
	{"TEXT@fast", overFast(AppendText(nil, "x"))},
	{"PING", overChannel(pingOf(TypePing, 0))},
	{"PING@fast", overFast(pingOf(TypePing, 0))},
	{"PING+1", overChannel(pingOf(TypePing, 1))},
	{"PING+1@fast", overFast(pingOf(TypePing, 1))},
	{"PONG", overChannel(pingOf(TypePong, 0))},
	{"PONG@fast", overFast(pingOf(TypePong, 0))},
	{"PONG+1", overChannel(pingOf(TypePong, 1))},
	{"PONG+1@fast", overFast(pingOf(TypePong, 1))},
	{"DONE", overChannel(AppendDone(nil))},
	{"DONE@fast", overFast(AppendDone(nil))},
	{"ABORT", overChannel(AppendAbort(nil, AbortDevice, ""))},
	{"ABORT@fast", overFast(AppendAbort(nil, AbortDevice, ""))},
	{"HELLO", overChannel(AppendHello(nil, senderHello()))},
	{"start()", func(s *PingSession) (PingStep, error) { return PingStep{Reply: s.Start()}, nil }},
	{"next()", func(s *PingSession) (PingStep, error) { return PingStep{Reply: s.Next(nil)}, nil }},
	{"consumer()", callConsumer},
	{"abort()", func(s *PingSession) (PingStep, error) { return PingStep{Reply: s.Abort(AbortDevice, "")}, nil }},
	{"disconnected()", func(s *PingSession) (PingStep, error) { return PingStep{}, s.Disconnected() }},
}

func overChannel(message []byte) func(*PingSession) (PingStep, error) {
	return func(s *PingSession) (PingStep, error) { return s.Receive(message, nil) }
}

func overFast(message []byte) func(*PingSession) (PingStep, error) {
	return func(s *PingSession) (PingStep, error) { return s.ReceiveFast(message, nil) }
}

func callConsumer(s *PingSession) (PingStep, error) {
	message, err := s.Consumer(1)
	return PingStep{Reply: message}, err
}

// pingOf returns a PING or a PONG with the payload that a session of these tests sends.
func pingOf(t Type, number uint32) []byte {
	s := NewPing(Host, pingLocal(Host, 1, 8), pingMessageLimit)
	s.begin()
	return appendPing(nil, t, Ping{number, s.payload(number)})
}

// TestEveryPingInputInEverySituation renders the tables of docs/PROTOCOL.md.
func TestEveryPingInputInEverySituation(t *testing.T) {
	var text strings.Builder
	for _, table := range []string{"host", "DPU", "fast"} {
		if text.Len() > 0 {
			text.WriteString("\n")
		}
		text.WriteString(renderPingTable(t, table))
	}
	file := filepath.Join("testdata", "ping-states.txt")
	if *updateStates {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("differs from %s (accept it with go test -update):\n%s", file, text.String())
	}
	if !strings.Contains(readProtocol(t), string(want)) {
		t.Errorf("docs/PROTOCOL.md does not quote %s as it is", file)
	}
}

func renderPingTable(t *testing.T, table string) string {
	t.Helper()
	situations := strings.Fields(pingSituations[table])
	rows := [][]string{append([]string{table}, situations...)}
	for _, input := range pingInputs {
		row := []string{input.name}
		for i := range situations {
			row = append(row, pingCell(t, table, situations[:i+1], input.apply))
		}
		rows = append(rows, row)
	}
	return alignColumns(rows)
}

func alignColumns(rows [][]string) string {
	var text strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for column, cell := range row {
			width := 0
			for _, other := range rows {
				width = max(width, len(other[column]))
			}
			fmt.Fprintf(&line, "%-*s  ", width, cell)
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return text.String()
}

// pingCell returns what an input does in the last of the situations.
func pingCell(t *testing.T, table string, way []string, apply func(*PingSession) (PingStep, error)) string {
	t.Helper()
	var cell string
	for _, side := range []Side{Host, DPU} {
		if table != "fast" && table != side.String() {
			continue
		}
		s := pingIn(t, side, table == "fast", way)
		before, failure := s.State(), s.failure
		step, err := apply(s)
		got := describePing(s, before, failure, step, err)
		if cell != "" && cell != got {
			t.Errorf("%s: %s on one side, %s on the other", way[len(way)-1], cell, got)
		}
		cell = got
	}
	return cell
}

// pingIn returns a session in the last of the situations.
func pingIn(t *testing.T, side Side, fast bool, way []string) *PingSession {
	t.Helper()
	if last := way[len(way)-1]; last == "failed" {
		s := NewPing(side, pingLocal(side, 1, 8), pingMessageLimit)
		_, _ = s.Receive(nil, nil)
		return s
	}
	local := pingLocal(side, 1, 8)
	local.Greeting.WantsFast = fast
	s := NewPing(side, local, pingMessageLimit)
	on := s.Receive
	if fast {
		on = s.ReceiveFast
	}
	for i, situation := range way[1:] {
		if err := stepFrom(s, on, way[i]); err != nil {
			t.Fatalf("from %s to %s: %v", way[i], situation, err)
		}
	}
	return s
}

// stepFrom takes a session from a situation to the next one.
func stepFrom(s *PingSession, on func(msg, dst []byte) (PingStep, error), from string) error {
	switch from {
	case "idle":
		s.Start()
	case "await-greeting":
		return second(pingInputs[0].apply(s))
	case "ready":
		return second(s.Consumer(1))
	case "await-consumer":
		return second(s.Receive(AppendConsumer(nil, 1), nil))
	case "text", "ping":
		s.Next(nil)
	case "in-flight":
		return second(on(pingOf(TypePong, 0), nil))
	case "their-text":
		return second(on(AppendText(nil, "x"), nil))
	case "their-ping":
		return second(on(pingOf(TypePing, 0), nil))
	case "their-end":
		return second(s.Receive(AppendDone(nil), nil))
	}
	return nil
}

func describePing(s *PingSession, before State, failure *Error, step PingStep, err error) string {
	switch {
	case err != nil && failure != nil && err == error(failure):
		return "="
	case err != nil && s.State() == before:
		return "refused"
	case err != nil:
		return "." + pingErrorName(err)
	}
	cell := "-"
	if s.State() != before {
		cell = s.State().String()
	}
	if step.Event != None {
		cell += ":" + step.Event.String()
	}
	if step.Reply != nil {
		cell += ">" + typeOf(step.Reply).String()
	}
	return cell
}

func pingErrorName(err error) string {
	switch {
	case errors.Is(err, ErrOutOfOrder):
		return "x"
	case errors.Is(err, ErrPingLost):
		return "lost"
	}
	if _, aborted := errors.AsType[*PeerAborted](err); aborted {
		return "a"
	}
	return err.Error()
}

// FuzzPing sends arbitrary messages to a session of either side, in every situation.
func FuzzPing(f *testing.F) {
	for _, input := range [][]byte{
		{0}, AppendGreeting(nil, Greeting{Version: 1, Count: 1, Size: 8}), pingOf(TypePing, 0), pingOf(TypePong, 0),
		AppendText(nil, "x"), AppendDone(nil), AppendConsumer(nil, 1), AppendAbort(nil, AbortDevice, "no"),
	} {
		for situation := range byte(10) {
			f.Add(input, situation)
		}
	}
	f.Fuzz(func(t *testing.T, message []byte, situation byte) {
		for _, table := range []string{"host", "DPU", "fast"} {
			all := strings.Fields(pingSituations[table])
			way := all[:1+int(situation)%(len(all)-1)] // failed sessions ignore everything
			side := Host
			if table == "DPU" {
				side = DPU
			}
			s := pingIn(t, side, table == "fast", way)
			_, _ = s.Receive(message, nil)
			step, err := pingIn(t, side, table == "fast", way).ReceiveFast(message, nil)
			if len(step.Reply) > len(message) || len(step.Text) > MaxPingText || err != nil && step.Event != None {
				t.Errorf("%+v, %v", step, err)
			}
		}
	})
}
