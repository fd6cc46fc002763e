package service

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// serviceSituations are the columns of the tables: states, and in listed the first entry of the list was sent.
var serviceSituations = []string{
	"idle", "await-greeting", "ready", "preparing", "requested", "copying", "closing", "peer-closing", "listing",
	"listed", "removing", "pinging", "making", "done", "failed",
}

// reachService returns a session in a situation. The copy is a pull.
func reachService(t testing.TB, role Role, situation string) *Session {
	t.Helper()
	l := &serviceLink{t, [2]*Session{newService(t, Command), newService(t, Daemon)}}
	switch situation {
	case "idle":
		return l.ends[role]
	case "await-greeting":
		l.ends[role].Start()
		return l.ends[role]
	}
	l = greeted(t)
	command, daemon := l.ends[Command], l.ends[Daemon]
	switch situation {
	case "preparing":
		l.passSome(Command, PeerItems, 1)(command.Items(nil, []Item{{Kind: ItemExclude, Text: "*.o"}}))
	case "requested", "copying", "closing", "peer-closing":
		l.pass(Command, CopyRequested)(command.Copy(nil, pullRequest))
		if situation != "requested" {
			l.pass(Daemon, CopyAccepted)(daemon.Accept(nil, pullAccepted))
		}
		if closes := role; situation != "requested" && situation != "copying" {
			if situation == "peer-closing" {
				closes = role.Other()
			}
			l.pass(closes, PeerClosed)(l.ends[closes].Close(nil))
		}
	case "listing", "listed":
		l.pass(Command, ListRequested)(command.List(nil, ListRequest{Place: inbox}))
		if situation == "listed" {
			l.passSome(Daemon, PeerListed, 1)(daemon.Listed(nil, listedRoot()))
		}
	case "removing":
		l.passSome(Command, RemoveRequested, 2)(command.Remove(nil, removeRequest))
	case "pinging":
		l.pass(Command, Pinged)(command.Ping(nil, []byte{1}, PingBytes))
	case "making":
		l.pass(Command, MakeDirRequested)(command.MakeDir(nil, makeDirRequest))
	case "done":
		_ = l.ends[role].Disconnected()
	case "failed":
		_, _ = l.ends[role].Receive(nil)
	}
	return l.ends[role]
}

// serviceInput is a row of the tables: a message of the peer, or a call.
type serviceInput struct {
	name  string
	apply func(*Session) (Step, error)
}

func hears(name string, msg []byte) serviceInput {
	return serviceInput{name, func(s *Session) (Step, error) { return s.Receive(msg) }}
}

func calls(name string, call func(*Session) ([]byte, error)) serviceInput {
	return serviceInput{name, func(s *Session) (Step, error) {
		msg, err := call(s)
		return Step{Reply: msg}, err
	}}
}

// serviceInputs returns the rows of the table of a role.
func serviceInputs(role Role) []serviceInput {
	greeting := Greeting{Versions: Supported, Version: Supported.Max}
	if role == Daemon {
		greeting.Version = 0
	}
	later := greeting
	later.Versions, later.Version = wire.Versions{Min: 4, Max: 4}, 4
	return append([]serviceInput{
		hears("GREETING", AppendGreeting(nil, greeting)),
		hears("GREETING,4", AppendGreeting(nil, later)),
		hears("REFUSED", encodeRefused(Refusal{Code: wire.AbortRefused})),
		hears("REFUSED,final", encodeRefused(Refusal{Code: wire.AbortLimit, Final: true})),
		hears("ITEMS", encodeItems([]Item{{Kind: ItemExclude, Text: "*.o"}})),
		hears("COPY,push", AppendCopy(nil, pushRequest)),
		hears("COPY,pull", AppendCopy(nil, pullRequest)),
		hears("ACCEPTED,push", encodeAccepted(pushAccepted)),
		hears("ACCEPTED,pull", encodeAccepted(pullAccepted)),
		hears("HEARTBEAT", nativeMessages[0]),
		hears("CLOSE", wire.AppendEmpty(nil, wire.TypeClose)),
		hears("LIST", AppendList(nil, ListRequest{Place: inbox})),
		hears("LISTED,root", encodeListed(listedRoot())),
		hears("LISTED,below", encodeListed([]Listed{listedAt(1, wire.EntryFile, "a")})),
		hears("LIST END", encodeListEnd(ListEnd{Count: 1})),
		hears("REMOVE", encodeRemove(removeRequest)),
		hears("REMOVED", AppendRemoved(nil, make([]Removal, 2), serviceLimit)),
		hears("PING", AppendPing(nil, Ping{Payload: []byte{1}})),
		hears("PONG", AppendPong(nil, Ping{Payload: []byte{1}})),
		hears("WORKING", AppendWorking(nil, 0)),
		hears("MKDIR", encodeMakeDir(makeDirRequest)),
		hears("MADE", wire.AppendEmpty(nil, wire.TypeMade)),
		hears("MEASURE", encodeMeasure(measureRequest)),
		hears("type 0x4e", wiretest.AppendType(nil, 0x4e)),
		hears("type 0x54", wiretest.AppendType(nil, 0x54)),
	}, serviceCalls()...)
}

func serviceCalls() []serviceInput {
	return []serviceInput{
		calls("start()", func(s *Session) ([]byte, error) { return s.Start(), nil }),
		calls("items()", func(s *Session) ([]byte, error) {
			msg, _, err := s.Items(nil, []Item{{Kind: ItemExclude, Text: "*.o"}})
			return msg, err
		}),
		calls("copy(push)", func(s *Session) ([]byte, error) { return s.Copy(nil, pushRequest) }),
		calls("copy(pull)", func(s *Session) ([]byte, error) { return s.Copy(nil, pullRequest) }),
		calls("accept(push)", func(s *Session) ([]byte, error) { return s.Accept(nil, pushAccepted) }),
		calls("accept(pull)", func(s *Session) ([]byte, error) { return s.Accept(nil, pullAccepted) }),
		calls("refuse()", func(s *Session) ([]byte, error) { return s.Refuse(nil, Refusal{Code: wire.AbortLimit}) }),
		calls("refuse(final)", func(s *Session) ([]byte, error) {
			return s.Refuse(nil, Refusal{Code: wire.AbortLimit, Final: true})
		}),
		calls("native()", func(s *Session) ([]byte, error) { return nil, s.Native(nativeMessages[0]) }),
		calls("close()", func(s *Session) ([]byte, error) { return s.Close(nil) }),
		calls("list()", func(s *Session) ([]byte, error) { return s.List(nil, ListRequest{Place: inbox}) }),
		calls("listed(root)", func(s *Session) ([]byte, error) {
			msg, _, err := s.Listed(nil, listedRoot())
			return msg, err
		}),
		calls("listed(below)", func(s *Session) ([]byte, error) {
			msg, _, err := s.Listed(nil, []Listed{listedAt(1, wire.EntryFile, "a")})
			return msg, err
		}),
		calls("list-end()", func(s *Session) ([]byte, error) { return s.ListEnd(nil, 0, "") }),
		calls("remove()", func(s *Session) ([]byte, error) {
			msg, _, err := s.Remove(nil, removeRequest)
			return msg, err
		}),
		calls("removed()", func(s *Session) ([]byte, error) { return s.Removed(nil, make([]Removal, 2)) }),
		calls("ping()", func(s *Session) ([]byte, error) { return s.Ping(nil, []byte{1}, PingBytes) }),
		calls("pong()", func(s *Session) ([]byte, error) { return s.Pong(nil, []byte{1}) }),
		calls("working()", func(s *Session) ([]byte, error) { return s.Working(nil, 0) }),
		calls("make-dir()", func(s *Session) ([]byte, error) { return s.MakeDir(nil, makeDirRequest) }),
		calls("measure()", func(s *Session) ([]byte, error) { return s.Measure(nil, measureRequest) }),
		calls("made()", func(s *Session) ([]byte, error) { return s.Made(nil) }),
		calls("disconnected()", func(s *Session) ([]byte, error) { return nil, s.Disconnected() }),
	}
}

// updateStates is for the tables that the test renders.
var updateStates = flag.Bool("update", false, "rewrite testdata/states.txt")

// TestEveryServiceInputInEverySituation renders the tables of testdata/states.txt.
func TestEveryServiceInputInEverySituation(t *testing.T) {
	text := renderServiceTable(t, Command) + "\n" + renderServiceTable(t, Daemon)
	file := filepath.Join("testdata", "states.txt")
	if *updateStates {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("differs from %s (accept it with go test -update):\n%s", file, text)
	}
}

func renderServiceTable(t *testing.T, role Role) string {
	t.Helper()
	rows := [][]string{append([]string{role.String()}, serviceSituations...)}
	for _, input := range serviceInputs(role) {
		row := []string{input.name}
		for _, situation := range serviceSituations {
			row = append(row, serviceCell(t, role, situation, input))
		}
		if !outOfOrderEverywhere(row) {
			rows = append(rows, row)
		}
	}
	return alignColumns(rows)
}

// outOfOrderEverywhere reports whether the row is left out: a message that this role sends, or a call of the other one.
func outOfOrderEverywhere(row []string) bool {
	for _, cell := range row[1:] {
		if cell != ".x" && cell != "refused" && cell != "-" && cell != "=" {
			return false
		}
	}
	return row[0] != "native()"
}

// serviceCell returns what an input does in a situation.
func serviceCell(t *testing.T, role Role, situation string, input serviceInput) string {
	t.Helper()
	s := reachService(t, role, situation)
	before, failure := serviceSnapshotOf(s), s.machine.Failure
	step, err := input.apply(s)
	isCall := strings.HasSuffix(input.name, ")")
	switch {
	case err != nil && failure != nil && err == error(failure):
		return "="
	case err != nil && isCall && input.name != "disconnected()":
		if !reflect.DeepEqual(serviceSnapshotOf(s), before) || step.Reply != nil {
			t.Errorf("%s in %s is refused and changes something", input.name, situation)
		}
		return "refused"
	case err != nil:
		if s.State() != Failed || step.Event != None || (step.Reply != nil) != (role == Daemon && !isCall) {
			t.Errorf("%s in %s: %s, %+v, %v", input.name, situation, s.State(), step, err)
		}
		return "." + serviceErrorName(err)
	}
	cell := "-"
	if s.State() != before.state {
		cell = s.State().String()
	}
	if step.Event != None {
		cell += ":" + step.Event.String()
	}
	if step.Reply != nil {
		cell += ">" + wire.TypeOf(step.Reply).String()
	}
	return cell
}

func serviceErrorName(err error) string {
	for name, known := range map[string]error{
		"x": wire.ErrOutOfOrder, "m": wire.ErrMalformed, "v": ErrVersion, "lost": ErrLost,
	} {
		if errors.Is(err, known) {
			return name
		}
	}
	if _, refused := errors.AsType[*Refusal](err); refused {
		return "r"
	}
	return err.Error()
}

// serviceSnapshot has what a refused call must not change.
type serviceSnapshot struct {
	state     State
	items     itemTotals
	direction CopyDirection
	listed    string
	removals  int
	ping      Ping
	pings     uint32
}

func serviceSnapshotOf(s *Session) serviceSnapshot {
	ping := s.ping
	ping.Payload = slices.Clone(ping.Payload)
	return serviceSnapshot{s.machine.State, s.items, s.direction, fmt.Sprint(s.list.order), s.removals, ping, s.pings}
}

// The situations have the names of their states.
func TestServiceSituations(t *testing.T) {
	for _, role := range []Role{Command, Daemon} {
		for _, situation := range serviceSituations {
			want := strings.Replace(situation, "listed", "listing", 1)
			if got := reachService(t, role, situation).State().String(); got != want {
				t.Errorf("%s: %s is in %s", role, situation, got)
			}
		}
	}
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
