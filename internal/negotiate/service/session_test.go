package service

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// serviceLimit is that of the channel in these tests.
const serviceLimit = 4080

var (
	daemonGreeting  = Greeting{Authenticates: true, Software: "dma-copy 2.0", Name: "bf3"}
	commandGreeting = Greeting{Software: "dma-copy 2.1"}
	inbox           = Place{Share: "inbox", Path: "a"}
	pushRequest     = CopyRequest{Direction: CopyPush, Kind: CopyFile, Place: inbox, Size: 5}
	pullRequest     = CopyRequest{Direction: CopyPull, Place: inbox}
	pushAccepted    = Accepted{Path: "a"}
	pullAccepted    = Accepted{Kind: CopyFile, Size: 5, Path: "a"}
	removeRequest   = RemoveRequest{Place: inbox, Paths: []string{"d/f", "d"}}
	makeDirRequest  = MakeDirRequest{Place: inbox}
	measureRequest  = MeasureRequest{CopyPull, wire.PathFast, 2, wire.MinChunk, 8, 1 << 20}
	nativeMessages  = [][]byte{native.AppendBeat(nil, native.Beat{Phase: 1, Work: 1}), native.AppendAbort(nil,
		wire.AbortSource, "")}
)

// listedRoot returns the first entry of a list of a directory, with those below it.
func listedRoot(below ...Listed) []Listed {
	return append([]Listed{{Kind: wire.EntryDirectory, Mode: 0o755}}, below...)
}

func listedAt(depth int, kind wire.EntryKind, name string) Listed {
	return Listed{Kind: kind, Depth: depth, Name: name}
}

// serviceLink is both sides of one session, without what is under way between them.
type serviceLink struct {
	t    testing.TB
	ends [2]*Session // by role
}

func newService(t testing.TB, role Role) *Session {
	t.Helper()
	greeting := commandGreeting
	if role == Daemon {
		greeting = daemonGreeting
	}
	greeting.Authenticates = true // of a command it is ignored
	s, err := New(role, greeting, wire.Limits{MaxMessage: serviceLimit})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// greeted returns a session in which both sides are Ready.
func greeted(t testing.TB) *serviceLink {
	t.Helper()
	l := &serviceLink{t, [2]*Session{newService(t, Command), newService(t, Daemon)}}
	if msg := l.ends[Daemon].Start(); msg != nil {
		t.Fatalf("the daemon begins with % x", msg)
	}
	step := l.pass(Command, Greeted)(l.ends[Command].Start(), nil)
	l.pass(Daemon, Greeted)(step.Reply, nil)
	return l
}

// pass lets the peer receive what a call on this side has returned, and checks the event.
func (l *serviceLink) pass(from Role, event Event) func(msg []byte, err error) Step {
	l.t.Helper()
	return func(msg []byte, err error) Step {
		l.t.Helper()
		if err != nil {
			l.t.Fatalf("%s: %v", from, err)
		}
		step, err := l.ends[from.Other()].Receive(msg)
		if err != nil || step.Event != event {
			l.t.Fatalf("%s: %s, %v; want %s", from.Other(), step.Event, err, event)
		}
		return step
	}
}

// passSome is pass for a call that returns how much of a list was sent.
func (l *serviceLink) passSome(from Role, event Event, want int) func([]byte, int, error) Step {
	l.t.Helper()
	return func(msg []byte, used int, err error) Step {
		l.t.Helper()
		if used != want {
			l.t.Fatalf("%s: sent %d of %d, %v", from, used, want, err)
		}
		return l.pass(from, event)(msg, err)
	}
}

func (l *serviceLink) want(command, daemon State) {
	l.t.Helper()
	if l.ends[Command].State() != command || l.ends[Daemon].State() != daemon {
		l.t.Fatalf("the command is in %s, the daemon in %s; want %s and %s", l.ends[Command].State(),
			l.ends[Daemon].State(), command, daemon)
	}
}

func TestServiceGreetings(t *testing.T) {
	l := greeted(t)
	l.want(Ready, Ready)
	latest := Supported.Max
	if peer := l.ends[Command].Peer(); peer.Name != "bf3" || !peer.Authenticates || peer.Version != latest {
		t.Errorf("the command knows %+v", peer)
	}
	if peer := l.ends[Daemon].Peer(); peer.Software != "dma-copy 2.1" || peer.Authenticates {
		t.Errorf("the daemon knows %+v", peer)
	}
	for _, s := range l.ends {
		if s.Version() != latest || s.Start() != nil || s.Disconnected() != nil || s.State() != Done {
			t.Errorf("%s: version %d, state %s", s.role, s.Version(), s.State())
		}
	}
}

// The daemon chooses the highest version that both speak, and both ranges are in the error if there is none.
func TestServiceVersions(t *testing.T) {
	for _, c := range []struct {
		command, daemon wire.Versions
		want            uint8
	}{
		{versions(1, 1), versions(1, 1), 1}, {versions(1, 4), versions(2, 3), 3}, {versions(3, 9), versions(1, 3), 3},
		{versions(1, 1), versions(2, 3), 0}, {versions(2, 255), versions(1, 1), 0},
	} {
		t.Run(fmt.Sprintf("%s, %s", c.command, c.daemon), func(t *testing.T) {
			command, daemon := newService(t, Command), newService(t, Daemon)
			command.own.Versions, daemon.own.Versions = c.command, c.daemon
			daemon.Start()
			step, err := daemon.Receive(command.Start())
			if c.want == 0 {
				wantNoServiceVersion(t, c.command, c.daemon, command, step, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = command.Receive(step.Reply)
			if err != nil || command.Version() != c.want || daemon.Version() != c.want {
				t.Errorf("version %d and %d, %v", command.Version(), daemon.Version(), err)
			}
		})
	}
}

func wantNoServiceVersion(t *testing.T, own, peer wire.Versions, command *Session, step Step, err error) {
	t.Helper()
	want := fmt.Sprintf("the daemon supports %s, the command %s", peer, own)
	if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), want) {
		t.Errorf("the daemon fails with %v, want %q", err, want)
	}
	_, err = command.Receive(step.Reply)
	refusal, refused := errors.AsType[*Refusal](err)
	if !refused || refusal.Code != wire.AbortProtocol || !strings.Contains(refusal.Text, want) {
		t.Errorf("the command fails with %v", err)
	}
}

// A daemon of another version may answer itself, in any form.
func TestServiceGreetingOfAnotherVersion(t *testing.T) {
	for _, length := range []int{8, 9, 100} {
		msg := make([]byte, length)
		copy(msg, []byte{0x40, 0, 0, 0, 4, 5, 4, 0xff})
		for _, role := range []Role{Command, Daemon} {
			s := newService(t, role)
			s.Start()
			_, err := s.Receive(msg)
			want := fmt.Sprintf("the %s supports versions 1 to 3, the %s versions 4 to 5", role, role.Other())
			if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), want) {
				t.Errorf("%d bytes: %v", length, err)
			}
		}
	}
}

// The daemon must not choose a version that is not the highest common one, and the command chooses none.
func TestServiceChosenVersion(t *testing.T) {
	for _, chosen := range []uint8{0, 1, Supported.Max + 1} {
		g := daemonGreeting
		g.Versions, g.Version = versions(1, Supported.Max+1), chosen
		s := newService(t, Command)
		s.Start()
		_, err := s.Receive(AppendGreeting(nil, g))
		wiretest.WantMalformed(t, nil, err)
	}
	for _, g := range []Greeting{{Version: 1}, {Authenticates: true}} {
		g.Versions = Supported
		s := newService(t, Daemon)
		s.Start()
		_, err := s.Receive(AppendGreeting(nil, g))
		wiretest.WantMalformed(t, nil, err)
	}
}

// greetedAs returns both sides of a session whose command speaks up to a version.
func greetedAs(t *testing.T, last uint8) (command, daemon *Session) {
	t.Helper()
	command, daemon = newService(t, Command), newService(t, Daemon)
	command.own.Versions = versions(1, last)
	daemon.Start()
	step, err := daemon.Receive(command.Start())
	if err == nil {
		_, err = command.Receive(step.Reply)
	}
	if err != nil {
		t.Fatal(err)
	}
	return command, daemon
}

// A peer of the first version is not asked to measure, and may not ask.
func TestMeasureNeedsItsVersion(t *testing.T) {
	for last := range uint8(2) {
		command, daemon := greetedAs(t, last+1)
		knows := last+1 == measureVersion
		_, asks := command.Measure(nil, measureRequest)
		_, hears := daemon.Receive(encodeMeasure(measureRequest))
		if command.Measures() != knows || (asks == nil) != knows || (hears == nil) != knows {
			t.Errorf("%d: %v, %v", last+1, asks, hears)
		}
	}
}

// A peer of an earlier version is not told bounds, and may not tell any. No bound is told twice.
func TestBoundsNeedTheirVersion(t *testing.T) {
	for last := range uint8(boundsVersion) {
		command, daemon := greetedAs(t, last+1)
		items, knows := []Item{{Kind: ItemMaxSize, Bound: 7}}, last+1 == boundsVersion
		_, _, tells := command.Items(nil, items)
		_, hears := daemon.Receive(encodeItems(items))
		if command.Bounds() != knows || (tells == nil) != knows || (hears == nil) != knows {
			t.Errorf("%d: %v, %v", last+1, tells, hears)
		}
		_, _, tells = command.Items(nil, items)
		_, hears = daemon.Receive(encodeItems(items))
		if tells == nil || hears == nil {
			t.Errorf("%d: a second %s: %v, %v", last+1, items[0].Kind, tells, hears)
		}
	}
}

func TestNewServiceRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		greeting Greeting
		limit    int
		want     error
	}{
		"shortest channel":  {daemonGreeting, MaxGreeting, nil},
		"too short channel": {daemonGreeting, MaxGreeting - 1, wire.ErrTooLarge},
		"long software":     {Greeting{Software: strings.Repeat("x", 65)}, serviceLimit, wire.ErrMalformed},
		"long name":         {Greeting{Name: strings.Repeat("x", 65)}, serviceLimit, wire.ErrMalformed},
		"not ASCII":         {Greeting{Name: "ö"}, serviceLimit, wire.ErrMalformed},
	} {
		_, err := New(Daemon, c.greeting, wire.Limits{MaxMessage: c.limit})
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A copy in both directions: messages of the native session pass unchanged and without a copy.
func TestServiceCopies(t *testing.T) {
	l := greeted(t)
	command, daemon := l.ends[Command], l.ends[Daemon]
	for range 2 {
		for _, c := range []struct {
			request  CopyRequest
			accepted Accepted
		}{{pushRequest, pushAccepted}, {pullRequest, pullAccepted}} {
			if got := l.pass(Command, CopyRequested)(command.Copy(nil, c.request)).Copy; got != c.request {
				t.Fatalf("got %+v, want %+v", got, c.request)
			}
			if got := l.pass(Daemon, PeerWorking)(daemon.Working(nil, 3)).Ahead; got != 3 {
				t.Fatalf("%d requests ahead", got)
			}
			if got := l.pass(Daemon, CopyAccepted)(daemon.Accept(nil, c.accepted)).Accepted; got != c.accepted {
				t.Fatalf("got %+v, want %+v", got, c.accepted)
			}
			for _, from := range []Role{Command, Daemon} {
				for _, msg := range nativeMessages {
					got := l.pass(from, PeerNative)(msg, l.ends[from].Native(msg)).Native
					if !bytes.Equal(got, msg) || &got[0] != &msg[0] {
						t.Fatalf("% x became % x", msg, got)
					}
				}
			}
			l.pass(Command, PeerClosed)(command.Close(nil))
			l.want(Closing, PeerClosing)
			l.pass(Daemon, None)(nativeMessages[0], daemon.Native(nativeMessages[0]))
			l.pass(Daemon, PeerClosed)(daemon.Close(nil))
			l.want(Ready, Ready)
		}
	}
}

// Both sides may close at the same time, with messages of the native session before that.
func TestServiceClosesCross(t *testing.T) {
	l := greeted(t)
	l.pass(Command, CopyRequested)(l.ends[Command].Copy(nil, pushRequest))
	l.pass(Daemon, CopyAccepted)(l.ends[Daemon].Accept(nil, pushAccepted))
	var sent [2][][]byte
	for role, s := range l.ends {
		if err := s.Native(nativeMessages[0]); err != nil {
			t.Fatal(err)
		}
		sent[role] = [][]byte{nativeMessages[0], wiretest.Must(t)(s.Close(nil))}
		if err := s.Native(nativeMessages[0]); !errors.Is(err, wire.ErrOutOfOrder) {
			t.Errorf("%s: sends after its CLOSE: %v", s.role, err)
		}
	}
	for role, s := range l.ends {
		for i, event := range []Event{None, PeerClosed} {
			if step, err := s.Receive(sent[Role(role).Other()][i]); err != nil || step.Event != event {
				t.Errorf("%s: %s, %v; want %s", s.role, step.Event, err, event)
			}
		}
	}
	l.want(Ready, Ready)
}

func TestServiceNativeMessages(t *testing.T) {
	l := greeted(t)
	l.pass(Command, CopyRequested)(l.ends[Command].Copy(nil, pushRequest))
	l.pass(Daemon, CopyAccepted)(l.ends[Daemon].Accept(nil, pushAccepted))
	for name, c := range map[string]struct {
		msg  []byte
		want error
	}{
		"the lowest type":    {wiretest.AppendType(nil, 1), nil},
		"the highest type":   {wiretest.AppendType(nil, wire.TypeGreeting-1), nil},
		"of the service":     {wire.AppendEmpty(nil, wire.TypeClose), wire.ErrMalformed},
		"type 0":             {wiretest.AppendType(nil, 0), wire.ErrMalformed},
		"a negative type":    {wiretest.AppendType(nil, -1), wire.ErrMalformed},
		"too short":          {[]byte{1, 0, 0}, wire.ErrMalformed},
		"the longest":        {append(wiretest.AppendType(nil, 1), make([]byte, serviceLimit-4)...), nil},
		"longer than that":   {append(wiretest.AppendType(nil, 1), make([]byte, serviceLimit-3)...), wire.ErrTooLarge},
		"beyond the service": {wiretest.AppendType(nil, 0x4e), wire.ErrMalformed},
	} {
		err := l.ends[Command].Native(c.msg)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if c.want == nil {
			l.pass(Command, PeerNative)(c.msg, nil)
		}
	}
	l.want(Copying, Copying)
}

func TestServiceItems(t *testing.T) {
	l := greeted(t)
	command, daemon := l.ends[Command], l.ends[Daemon]
	items := []Item{{Kind: ItemInclude, Text: "*.jpg"}, {Kind: ItemExclude, Text: "*"}, {Kind: ItemPath, Text: "a/b"}}
	for range 2 {
		got := l.passSome(Command, PeerItems, 3)(command.Items(nil, items)).Items
		if fmt.Sprint(got) != fmt.Sprint(items) {
			t.Errorf("got %v, want %v", got, items)
		}
	}
	l.want(Preparing, Preparing)
	for name, c := range map[string]CopyRequest{
		"a push":       pushRequest,
		"without only": pullRequest,
	} {
		_, err := command.Copy(nil, c)
		wiretest.WantCheck(t, name, err, wire.ErrMalformed)
	}
	only := pullRequest
	only.Flags = CopyOnly
	l.pass(Command, CopyRequested)(command.Copy(nil, only))
	l.pass(Daemon, Refused)(daemon.Refuse(nil, Refusal{Code: wire.AbortSource, Text: "no such file"}))
	l.pass(Command, CopyRequested)(command.Copy(nil, pushRequest)) // the items are forgotten
}

// The daemon refuses a COPY that does not go with its ITEMS.
func TestServiceItemsForAnotherCopy(t *testing.T) {
	for name, c := range map[string]struct {
		item Item
		copy CopyRequest
	}{
		"a push":       {Item{Kind: ItemExclude, Text: "*"}, pushRequest},
		"without only": {Item{Kind: ItemPath, Text: "a"}, pullRequest},
	} {
		l := greeted(t)
		l.passSome(Command, PeerItems, 1)(l.ends[Command].Items(nil, []Item{c.item}))
		_, err := l.ends[Daemon].Receive(AppendCopy(nil, c.copy))
		wiretest.WantCheck(t, name, err, wire.ErrMalformed)
	}
}

func TestServiceLists(t *testing.T) {
	l := greeted(t)
	command, daemon := l.ends[Command], l.ends[Daemon]
	entries := listedRoot(listedAt(1, wire.EntryDirectory, "a"), listedAt(2, wire.EntryFile, "b"), listedAt(1,
		wire.EntryFile, "c"))
	for _, request := range []ListRequest{{ListRecursive, inbox}, {ListRecursive, Place{Share: "inbox"}}} {
		if got := l.pass(Command, ListRequested)(command.List(nil, request)).List; got != request {
			t.Errorf("got %+v, want %+v", got, request)
		}
		l.pass(Daemon, PeerWorking)(daemon.Working(nil, 0))
		var got []Listed
		for i := range entries {
			got = append(got, l.passSome(Daemon, PeerListed, 1)(daemon.Listed(nil, entries[i:i+1])).Listed...)
		}
		if fmt.Sprint(got) != fmt.Sprint(entries) {
			t.Errorf("got %v, want %v", got, entries)
		}
		end := l.pass(Daemon, PeerListEnd)(daemon.ListEnd(nil, wire.AbortSource, "a: denied")).ListEnd
		if want := (ListEnd{4, wire.AbortSource, "a: denied"}); end != want {
			t.Errorf("got %+v, want %+v", end, want)
		}
		l.want(Ready, Ready)
	}
}

func TestServiceRemovals(t *testing.T) {
	l := greeted(t)
	got := l.passSome(Command, RemoveRequested, 2)(l.ends[Command].Remove(nil, removeRequest)).Remove
	if fmt.Sprint(got) != fmt.Sprint(removeRequest) {
		t.Errorf("got %v, want %v", got, removeRequest)
	}
	for _, n := range []int{0, 1, 3} {
		_, err := l.ends[Daemon].Removed(nil, make([]Removal, n))
		wiretest.WantCheck(t, fmt.Sprintf("%d results", n), err, wire.ErrMalformed)
	}
	results := []Removal{{}, {wire.AbortTarget, "not empty"}}
	removed := l.pass(Daemon, PeerRemoved)(l.ends[Daemon].Removed(nil, results)).Removed
	if fmt.Sprint(removed) != fmt.Sprint(results) {
		t.Errorf("got %v, want %v", removed, results)
	}
	l.want(Ready, Ready)
}

func TestServiceRemovalsOfAnotherNumber(t *testing.T) {
	for _, n := range []int{1, 3} {
		l := greeted(t)
		l.passSome(Command, RemoveRequested, 2)(l.ends[Command].Remove(nil, removeRequest))
		_, err := l.ends[Command].Receive(AppendRemoved(nil, make([]Removal, n), serviceLimit))
		wiretest.WantMalformed(t, nil, err)
	}
}

func TestServicePings(t *testing.T) {
	l := greeted(t)
	command, daemon := l.ends[Command], l.ends[Daemon]
	for number := range uint32(3) {
		payload := []byte{1, 2, byte(number)}
		got := l.pass(Command, Pinged)(command.Ping(nil, payload, PingBytes)).Ping
		payload[0] = 9 // the session has a copy
		l.pass(Daemon, PeerWorking)(daemon.Working(nil, 0))
		_, err := daemon.Pong(nil, []byte{1, 2})
		wiretest.WantCheck(t, "another payload", err, ErrPayload)
		got = l.pass(Daemon, RoundTrip)(daemon.Pong(nil, got.Payload)).Ping
		if got.Number != number || got.Kind != PingBytes {
			t.Errorf("got %+v", got)
		}
	}
	text := l.pass(Command, Pinged)(command.Ping(nil, []byte("hello"), PingText)).Ping
	answer := l.pass(Daemon, RoundTrip)(daemon.Pong(nil, []byte("and you"))).Ping
	if text.Kind != PingText || string(text.Payload) != "hello" ||
		answer.Kind != PingText || string(answer.Payload) != "and you" {
		t.Errorf("%+v, %+v", text, answer)
	}
}

// The sides tell each other their consumers, and the size that both agree on. From then on longer PINGs are possible,
// of that size at most.
func TestServicePingsApart(t *testing.T) {
	l := greeted(t)
	command, daemon := l.ends[Command], l.ends[Daemon]
	large := make([]byte, serviceLimit)
	size := uint32(len(large))
	asked := l.pass(Command, Pinged)(command.Ping(nil, Consumer{7, size}.Append(nil), PingConsumer)).Ping
	if asked.Consumer() != (Consumer{7, size}) {
		t.Errorf("%+v", asked.Consumer())
	}
	for name, answer := range map[string][]byte{
		"another size": Consumer{8, size + 1}.Append(nil), "cut short": Consumer{8, size}.Append(nil)[:7],
	} {
		_, err := daemon.Pong(nil, answer)
		wiretest.WantCheck(t, name, err, wire.ErrMalformed)
	}
	answer := l.pass(Daemon, RoundTrip)(daemon.Pong(nil, Consumer{8, size}.Append(nil))).Ping
	if answer.Consumer() != (Consumer{8, size}) {
		t.Errorf("%+v", answer.Consumer())
	}
	_, err := command.Ping(nil, large, PingBytes)
	wiretest.WantCheck(t, "before Apart", err, wire.ErrTooLarge)
	command.Apart(size)
	daemon.Apart(size)
	l.pass(Command, Pinged)(command.Ping(nil, large, PingBytes))
	l.pass(Daemon, RoundTrip)(daemon.Pong(nil, large))
	_, err = command.Ping(nil, append(large, 0), PingBytes)
	wiretest.WantCheck(t, "larger", err, wire.ErrTooLarge)
	_, err = daemon.Receive(AppendPing(nil, Ping{Number: 2, Payload: append(large, 0)}))
	wiretest.WantMalformed(t, nil, err)
}

// Every part of a PONG is compared with its PING.
func TestServicePongChanged(t *testing.T) {
	pong := AppendPong(nil, Ping{Payload: []byte{1, 2, 3}})
	for at := wire.TypeSize; at < len(pong); at++ {
		l := greeted(t)
		l.pass(Command, Pinged)(l.ends[Command].Ping(nil, []byte{1, 2, 3}, PingBytes))
		changed := bytes.Clone(pong)
		changed[at] ^= 1
		want := wire.ErrMalformed
		if at >= PingHeader {
			want = ErrPayload
		}
		_, err := l.ends[Command].Receive(changed)
		wiretest.WantCheck(t, fmt.Sprintf("byte %d", at), err, want)
	}
}

func TestServicePingNumbers(t *testing.T) {
	for _, number := range []uint32{0, 2} {
		l := greeted(t)
		l.pass(Command, Pinged)(l.ends[Command].Ping(nil, nil, PingBytes))
		l.pass(Daemon, RoundTrip)(l.ends[Daemon].Pong(nil, nil))
		_, err := l.ends[Daemon].Receive(AppendPing(nil, Ping{Number: number}))
		wiretest.WantMalformed(t, nil, err)
	}
}

// A final refusal ends the session in every state of the daemon, and the command hears of it in every state.
func TestServiceFinalRefusal(t *testing.T) {
	for _, situation := range serviceSituations[1 : len(serviceSituations)-2] {
		daemon, command := reachService(t, Daemon, situation), reachService(t, Command, situation)
		msg, err := daemon.Refuse(nil, Refusal{Code: wire.AbortLimit, Text: "stopping", Final: true})
		if err != nil || daemon.State() != Done || daemon.Disconnected() != nil {
			t.Errorf("%s: the daemon is in %s, %v", situation, daemon.State(), err)
			continue
		}
		if step, err := daemon.Receive([]byte{1}); err != nil || step.Event != None {
			t.Errorf("%s: the daemon still listens: %s, %v", situation, step.Event, err)
		}
		_, err = command.Receive(msg)
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok || refusal.Code != wire.AbortLimit || refusal.Text != "stopping" {
			t.Errorf("%s: the command fails with %v", situation, err)
		}
		if command.State() != Failed || !errors.Is(command.Disconnected(), err) {
			t.Errorf("%s: the command is in %s", situation, command.State())
		}
	}
}

// What the peer sends is shown only as plain text on one line.
func TestServiceTextIsEscaped(t *testing.T) {
	for _, text := range []string{"\x1b[2J", "a\u0085b\u202ec", "\r\n"} {
		s := newService(t, Command)
		s.Start()
		_, err := s.Receive(encodeRefused(Refusal{Code: wire.AbortRefused, Text: text, Final: true}))
		for _, octet := range []byte(err.Error()) {
			if octet < ' ' || octet > '~' {
				t.Errorf("byte %#x in %q", octet, err.Error())
			}
		}
	}
}

// A daemon tells the command which error it was, and only a daemon has a message for that.
func TestServiceErrorsAreSent(t *testing.T) {
	for _, c := range []struct {
		msg  []byte
		code wire.AbortCode
	}{
		{wire.AppendEmpty(nil, wire.TypeClose), wire.AbortProtocol}, {make([]byte, serviceLimit+1), wire.AbortProtocol},
		{nil,
			wire.AbortProtocol},
		{encodeItems([]Item{{Kind: ItemPath, Text: strings.Repeat("n/", 2000) + "n"}}), wire.AbortLimit},
	} {
		l := greeted(t)
		l.ends[Daemon].items.bytes = MaxItemsTogether - 4000
		step, err := l.ends[Daemon].Receive(c.msg)
		_, got := l.ends[Command].Receive(step.Reply)
		refusal, ok := errors.AsType[*Refusal](got)
		if err == nil || !ok || refusal.Text != err.Error() || refusal.Code != c.code {
			t.Errorf("the daemon fails with %v, the command with %v", err, got)
		}
		if step, err = l.ends[Daemon].Receive(c.msg); err == nil || step.Reply != nil {
			t.Errorf("a failed session answers % x, %v", step.Reply, err)
		}
		l = greeted(t)
		if step, err = l.ends[Command].Receive(encodeListEnd(ListEnd{})); err == nil || step.Reply != nil {
			t.Errorf("the command answers % x, %v", step.Reply, err)
		}
	}
}

func versions(first, last uint8) wire.Versions { return wire.Versions{Min: first, Max: last} }
