package service

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// randomService is a service session in which a script decides which requests the command makes, what the daemon
// answers, and in which order messages arrive. Every message must be the event that its sender meant.
type randomService struct {
	t        testing.TB
	ends     [2]*Session
	script   []byte
	queues   [2][]meant // by receiver
	requests int
	list     []Listed // what the daemon still has to list
	sent     [2]int   // messages of the native session, by sender
	got      [2]int   // those that were passed on to the receiver, by sender
}

// meant is a message under way and what it is for the receiver.
type meant struct {
	msg   []byte
	event Event
	value any // of the Step; nil: not compared
}

func newRandomService(t testing.TB, script []byte) *randomService {
	return &randomService{t: t, ends: greeted(t).ends, script: script}
}

// chance returns the next decision of the script, below n; 0 at the end of the script.
func (r *randomService) chance(n int) int {
	if len(r.script) == 0 {
		return 0
	}
	octet := r.script[0]
	r.script = r.script[1:]
	return int(octet) % n
}

// run makes requests until the end of the script.
func (r *randomService) run() {
	for turns := 0; len(r.script) > 0 || !r.quiet(); turns++ {
		if turns > 100_000 {
			r.t.Fatalf("the command is in %s, the daemon in %s, and nothing moves", r.ends[Command].State(),
				r.ends[Daemon].State())
		}
		move := turns
		if len(r.script) > 0 {
			move = r.chance(4)
		}
		switch move % 4 {
		case 0:
			r.deliver(Command)
		case 1:
			r.deliver(Daemon)
		case 2:
			r.command()
		case 3:
			r.daemon()
		}
	}
	for _, s := range r.ends {
		if err := s.Disconnected(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// quiet reports whether no request is running.
func (r *randomService) quiet() bool {
	return len(r.queues[Command])+len(r.queues[Daemon]) == 0 && r.ends[Command].State() == Ready &&
		r.ends[Daemon].State() == Ready
}

func (r *randomService) send(from Role, event Event, value any) func(msg []byte, err error) {
	return func(msg []byte, err error) {
		if err != nil {
			r.t.Fatalf("%s: %v", from, err)
		}
		r.queues[from.Other()] = append(r.queues[from.Other()], meant{msg, event, value})
	}
}

func (r *randomService) deliver(to Role) {
	if len(r.queues[to]) == 0 {
		return
	}
	next := r.queues[to][0]
	r.queues[to] = r.queues[to][1:]
	before := r.ends[to].State()
	step, err := r.ends[to].Receive(next.msg)
	if err != nil {
		r.t.Fatalf("%s: %v", to, err)
	}
	if ignored := next.event == PeerNative && before == Closing; ignored {
		next = meant{next.msg, None, nil}
	}
	if next.event == PeerNative {
		r.got[to.Other()]++
	}
	if step.Event != next.event || step.Reply != nil {
		r.t.Fatalf("%s: %s instead of %s, answers % x", to, step.Event, next.event, step.Reply)
	}
	if next.value != nil && !reflect.DeepEqual(valueOf(step), next.value) {
		r.t.Fatalf("%s: %s with %+v instead of %+v", to, step.Event, valueOf(step), next.value)
	}
	if step.Event == PeerClosed && before == Copying && r.got[to.Other()] != r.sent[to.Other()] {
		r.t.Fatalf("%s: %d messages of the native session arrived, %d were sent", to, r.got[to.Other()],
			r.sent[to.Other()])
	}
}

// valueOf returns the part of a step that its event sets.
func valueOf(step Step) any {
	switch step.Event {
	case Refused:
		return *step.Refusal
	case PeerItems:
		return append([]Item(nil), step.Items...)
	case CopyRequested:
		return step.Copy
	case CopyAccepted:
		return step.Accepted
	case PeerNative:
		return string(step.Native)
	case ListRequested:
		return step.List
	case PeerListed:
		return append([]Listed(nil), step.Listed...)
	case PeerListEnd:
		return step.ListEnd
	case RemoveRequested:
		return fmt.Sprint(step.Remove)
	case PeerRemoved:
		return append([]Removal(nil), step.Removed...)
	case Pinged, RoundTrip:
		return fmt.Sprint(step.Ping)
	case PeerWorking:
		return step.Ahead
	case MeasureRequested:
		return step.Measure
	case MakeDirRequested:
		return step.MakeDir
	}
	return nil
}

// command acts for the command: it makes a request, or its part of a copy.
func (r *randomService) command() {
	s := r.ends[Command]
	switch s.State() {
	case Ready:
		if len(r.script) > 0 {
			r.request()
		}
	case Preparing:
		if r.chance(2) == 1 {
			r.items()
			return
		}
		c := pullRequest
		c.Flags, c.Links = CopyOnly|CopyXAttr, CopyLinks(r.chance(3))
		r.send(Command, CopyRequested, c)(s.Copy(nil, c))
	case Copying, PeerClosing:
		r.copying(Command)
	}
}

func (r *randomService) request() {
	s := r.ends[Command]
	r.requests++
	r.sent, r.got = [2]int{}, [2]int{}
	switch r.chance(8) {
	case 0:
		r.items()
	case 1:
		c := with(pushRequest, "target")
		c.Flags = CopyFlags(r.chance(2)) * (CopyOverwrite | CopyMakePath)
		r.send(Command, CopyRequested, c)(s.Copy(nil, c))
	case 2:
		l := ListRequest{ListRecursive, inbox}
		r.send(Command, ListRequested, l)(s.List(nil, l))
	case 3:
		remove := RemoveRequest{Place: inbox, Paths: []string{"a", "b/c", fmt.Sprint(r.chance(256))}}
		msg, _, err := s.Remove(nil, remove)
		r.send(Command, RemoveRequested, fmt.Sprint(remove))(msg, err)
	case 7:
		m := measureRequest
		m.Direction = CopyPush + CopyDirection(r.chance(2))
		r.send(Command, MeasureRequested, m)(s.Measure(nil, m))
	case 4:
		r.send(Command, MakeDirRequested, makeDirRequest)(s.MakeDir(nil, makeDirRequest))
	default:
		p := Ping{s.pings, PingKind(r.chance(2)), []byte{1, byte(r.chance(256))}}
		r.send(Command, Pinged, fmt.Sprint(p))(s.Ping(nil, p.Payload, p.Kind))
	}
}

func (r *randomService) items() {
	items := []Item{
		{Kind: ItemExclude, Text: fmt.Sprint(r.chance(256))}, {Kind: ItemPath, Text: "a"},
		{Kind: ItemInclude, Text: "*"},
	}[:1+r.chance(3)]
	msg, _, err := r.ends[Command].Items(nil, items)
	r.send(Command, PeerItems, items)(msg, err)
}

// copying sends a message of the native session, or CLOSE.
func (r *randomService) copying(role Role) {
	s := r.ends[role]
	if r.chance(4) == 0 {
		r.send(role, PeerClosed, nil)(s.Close(nil))
		return
	}
	r.sent[role]++
	msg := native.AppendBeat(nil, native.Beat{Phase: 1, Work: uint64(r.sent[role])})
	r.send(role, PeerNative, string(msg))(msg, s.Native(msg))
}

// daemon acts for the daemon: it answers a request, refuses it, or says that it works on it.
func (r *randomService) daemon() {
	s := r.ends[Daemon]
	if ruleOf(Daemon, wire.TypeWorking).sent.Has(s.State()) && r.chance(5) == 1 {
		ahead := uint32(r.chance(3))
		r.send(Daemon, PeerWorking, ahead)(s.Working(nil, ahead))
		return
	}
	if refusedStates.Has(s.State()) && r.chance(5) == 1 {
		refusal := Refusal{Code: wire.AbortLimit, Text: "no"}
		r.send(Daemon, Refused, refusal)(s.Refuse(nil, refusal))
		return
	}
	switch s.State() {
	case Requested:
		accepted := Accepted{Path: "a"}
		if s.direction == CopyPull {
			accepted.Kind = CopyTree
		}
		r.send(Daemon, CopyAccepted, accepted)(s.Accept(nil, accepted))
	case Copying, PeerClosing:
		r.copying(Daemon)
	case Listing:
		r.answerList()
	case Removing:
		results := make([]Removal, s.removals)
		results[r.chance(s.removals)] = Removal{wire.AbortTarget, "in use"}
		r.send(Daemon, PeerRemoved, results)(s.Removed(nil, results))
	case Pinging:
		p := s.ping
		if p.Kind == PingText {
			p.Payload = []byte("answer")
		}
		r.send(Daemon, RoundTrip, fmt.Sprint(p))(s.Pong(nil, p.Payload))
	case Making:
		r.send(Daemon, PeerMade, nil)(s.Made(nil))
	}
}

// answerList lists a few entries, or ends the list.
func (r *randomService) answerList() {
	s := r.ends[Daemon]
	if s.list.order.Next == 0 {
		r.list = listedRoot()
		for i := range r.chance(20) {
			r.list = append(r.list, listedAt(1, wire.EntryDirectory, fmt.Sprintf("d%02d", i)), listedAt(2,
				wire.EntryFile, "f"))
		}
	}
	if len(r.list) == 0 {
		end := ListEnd{Count: s.list.order.Next, Code: wire.AbortSource, Text: "denied"}
		r.send(Daemon, PeerListEnd, end)(s.ListEnd(nil, end.Code, end.Text))
		return
	}
	some := r.list[:1+r.chance(len(r.list))]
	msg, used, err := s.Listed(nil, some)
	r.list = r.list[used:]
	r.send(Daemon, PeerListed, some[:used])(msg, err)
}

// randomServiceScript returns a script from a seed.
func randomServiceScript(seed uint64, length int) []byte {
	random := rand.New(rand.NewPCG(seed, 40))
	script := make([]byte, length)
	for i := range script {
		script[i] = byte(random.Uint32())
	}
	return script
}

func TestRandomServiceSessions(t *testing.T) {
	requests := 0
	for seed := range uint64(300) {
		r := newRandomService(t, randomServiceScript(seed, 600))
		r.run()
		requests += r.requests
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if requests < 3000 {
		t.Errorf("only %d requests", requests)
	}
}

func FuzzRandomService(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(randomServiceScript(seed, 200))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) < 10_000 {
			newRandomService(t, script).run()
		}
	})
}
