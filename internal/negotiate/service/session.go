package service

import (
	"bytes"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// ErrPayload is a PONG that does not have the payload of its PING.
var ErrPayload = wire.DetailedReason(wire.AbortDigest, "check the memory of both sides and the device",
	"a payload came back changed")

// ServerName is the Comch server name of a daemon on the DPU, for commands on the host.
const ServerName = "dma copy service"

// CommandNames returns the Comch server names of commands on the DPU, for a daemon on the host. Only one process at a
// time can offer a name to a host function, and not let go of it while it is connected, so that this is how many
// commands can be served at once. Each takes the first name that is free.
func CommandNames() []string {
	return []string{"dma copy command", "dma copy command 2", "dma copy command 3", "dma copy command 4"}
}

// Role is what a program does in a Session.
type Role uint8

// The roles. Either may be on the host or on the DPU.
const (
	Command Role = 0 // push, pull, sync, ls, ping: makes requests
	Daemon  Role = 1 // serve: serves them
)

var roleNames = []string{Command: "command", Daemon: "daemon"}

// String returns "command" or "daemon".
func (r Role) String() string { return wire.NameOf(roleNames, r, "role") }

// Other returns the peer's role.
func (r Role) Other() Role { return Command + Daemon - r }

// Step is the result of a received message. Its slices are valid until the next call of Receive; its strings
// stay valid.
type Step struct {
	Reply []byte // to be sent to the peer first, even together with an error; may be nil
	Event Event

	Native   []byte         // with PeerNative: the message that was passed to Receive, without a copy
	Refusal  *Refusal       // with Refused
	Items    []Item         // with PeerItems
	Copy     CopyRequest    // with CopyRequested
	Accepted Accepted       // with CopyAccepted
	List     ListRequest    // with ListRequested
	Listed   []Listed       // with PeerListed: in the order of the list, depth first and sorted by name
	ListEnd  ListEnd        // with PeerListEnd
	Remove   RemoveRequest  // with RemoveRequested
	Removed  []Removal      // with PeerRemoved: one for each path of the REMOVE
	Ping     Ping           // with Pinged: call Pong; with RoundTrip: the answer. The payload is part of the message
	Ahead    uint32         // with PeerWorking: number of requests that the daemon serves first
	MakeDir  MakeDirRequest // with MakeDirRequested
	Measure  MeasureRequest // with MeasureRequested
}

// Session is one side of what a command and a daemon have over one connection, from GREETING to the disconnect: one
// request at a time, each of the command. It is not safe for concurrent use.
//
// Call Start, pass every received message to Receive, and do what the Step requires. All other methods except
// the accessors report this side's own progress and return the message to send, appended to dst. A call that the state
// or its arguments do not allow returns dst with an *Error and changes nothing; a failed session returns the error that
// it failed with.
//
// While a copy is running, the messages of its native session pass through: call Native before one is sent, and Receive
// passes on the peer's. CLOSE ends this: each side sends it behind the last one of its own.
//
// A Session keeps the payload of one PING, the elements of the last list that it received, in at most 12 times the
// bytes of a message, and about 12 KiB for the path of the last entry of a list.
type Session struct {
	machine machine
	role    Role
	own     Greeting
	peer    Greeting

	items     itemTotals
	direction CopyDirection // of the copy
	list      listing
	removals  int // number of results that REMOVED has
	ping      Ping
	pings     uint32 // number of the next PING
	apart     int    // bytes of the largest payload of a PING that does not go over the channel; 0: all do

	reused reused
}

// listing is how far the list of the running request has come.
type listing struct {
	flags ListFlags
	order wire.Order
	name  []byte // of the entry that is being checked
}

// reused has what a Step refers to.
type reused struct {
	items   []Item
	listed  []Listed
	paths   []string
	removed []Removal
	payload []byte // of the own PING
}

// New returns a session in state Idle. Versions and Version of own are ignored, and so is Authenticates of a
// command. It fails with ErrMalformed for a GREETING that a peer would refuse, and with ErrTooLarge if the channel's
// messages are shorter than MaxGreeting. Only MaxMessage of limits has an effect.
func New(role Role, own Greeting, limits wire.Limits) (*Session, error) {
	own.Versions, own.Version = Supported, 0
	own.Authenticates = own.Authenticates && role == Daemon
	if err := own.check(); err != nil {
		return nil, err
	}
	if limits.MaxMessage < MaxGreeting {
		return nil, wire.TooLarge(wire.TypeGreeting, "the message may have", MaxGreeting,
			uint64(max(0, limits.MaxMessage)))
	}
	return &Session{machine: machine{Limits: limits, State: Idle, Failed: Failed}, role: role, own: own}, nil
}

// State returns the session's state.
func (s *Session) State() State { return s.machine.State }

// Reached returns State, or of a failed session the state in which it failed.
func (s *Session) Reached() State { return s.machine.Reached() }

// Peer returns the peer's GREETING; it is zero before Greeted.
func (s *Session) Peer() Greeting { return s.peer }

// Version returns the version that both sides speak; it is 0 before Greeted.
func (s *Session) Version() uint8 {
	if s.role == Daemon {
		return s.own.Version
	}
	return s.peer.Version
}

// Start begins the session. It returns the command's GREETING to send. On the daemon, which waits for it, and after the
// first call it returns nil.
func (s *Session) Start() []byte {
	if s.machine.State != Idle {
		return nil
	}
	s.machine.State = AwaitGreeting
	if s.role == Daemon {
		return nil
	}
	return AppendGreeting(nil, s.own)
}

// Native reports with its error whether a message of this side's native session may be sent now: while a copy is
// running, until this side's CLOSE. It fails with ErrOutOfOrder, and with ErrMalformed for a message that is not of a
// native session, or too long. The message is sent as it is.
func (s *Session) Native(msg []byte) error {
	t := wire.TypeOf(msg)
	err := s.machine.CheckFits(t, len(msg))
	switch {
	case !copySent.Has(s.machine.State):
		err = wire.OutOfOrder(t)
	case !isNative(t):
		err = wire.Malformed(t, "not a message of a native session")
	}
	if err != nil {
		return s.machine.Refuse(err)
	}
	return nil
}

// Items appends an ITEMS with as many of the items as fit into a message, and returns their number. It is called on the
// command in Ready before Copy, as often as necessary. It fails with ErrMalformed, with ErrTooLarge for more than
// MaxPatterns, MaxListedPaths or MaxItemsTogether since the last copy, and with ErrOutOfOrder.
func (s *Session) Items(dst []byte, items []Item) (msg []byte, used int, err error) {
	head, allowed := wire.ListHead(dst, wire.TypeItems), s.mayCall(wire.TypeItems)
	msg, used, err = wire.SendSome(&s.machine, allowed, head, items, (*Item).fields, s.addItem)
	if used > 0 {
		s.machine.State = Preparing
	}
	return msg, used, err
}

// Copy appends a COPY. It is called on the command in Ready, or after Items. It fails with ErrMalformed, also after
// Items unless the copy is a pull, and after paths without CopyOnly; with ErrTooLarge if place and name do not fit into
// a message; and with ErrOutOfOrder.
func (s *Session) Copy(dst []byte, c CopyRequest) ([]byte, error) {
	c.Local = wire.CutPath(c.Local, s.machine.Limits.MaxMessage-copySize-len(c.Place.Share)-len(c.Place.Path))
	return s.send(dst, AppendCopy(dst, c), func() error { return s.beginCopy(c) })
}

func (s *Session) beginCopy(c CopyRequest) error {
	if c.Flags.Has(CopyPrivileged) && !s.Bounds() {
		return wire.Malformed(wire.TypeCopy, "flags %#x in version %d", uint32(c.Flags), s.Version())
	}
	if err := wire.FirstError(c.check(), s.items.checkFor(c)); err != nil {
		return err
	}
	s.direction, s.items, s.machine.State = c.Direction, itemTotals{}, Requested
	return nil
}

// Accept appends an ACCEPTED. It is called on the daemon after CopyRequested; the native session of the copy begins. It
// fails with ErrMalformed, ErrTooLarge or ErrOutOfOrder.
func (s *Session) Accept(dst []byte, a Accepted) ([]byte, error) {
	return s.send(dst, wire.Encode(dst, wire.TypeAccepted, &a, (*Accepted).fields), func() error { return s.accept(a) })
}

func (s *Session) accept(a Accepted) error {
	if err := a.checkFor(s.direction); err != nil {
		return err
	}
	s.machine.State = Copying
	return nil
}

// Refuse appends a REFUSED. It is called on the daemon. Unless it is final it ends the request, before ACCEPTED. A
// final one ends the session, also instead of the GREETING, between two requests and during a copy; the state is Done
// then. It fails with ErrOutOfOrder.
func (s *Session) Refuse(dst []byte, r Refusal) ([]byte, error) {
	allowed := refusedStates
	if r.Final {
		allowed = begun
	}
	if s.role != Daemon || !allowed.Has(s.machine.State) {
		return dst, s.machine.Refuse(wire.OutOfOrder(wire.TypeRefused))
	}
	s.machine.State = Ready
	if r.Final {
		s.machine.State = Done
	}
	return AppendRefused(dst, r, s.machine.Limits.MaxMessage), nil
}

// Close appends a CLOSE. Each side calls it once in a copy, when its native session has ended. The copy has ended when
// both sides have, and the state is Ready. It fails with ErrOutOfOrder.
func (s *Session) Close(dst []byte) ([]byte, error) {
	return s.send(dst, wire.AppendEmpty(dst, wire.TypeClose), func() error { return s.close(Closing, PeerClosing) })
}

// close is the effect of a CLOSE, which leads to the state own unless the other side has closed before.
func (s *Session) close(own, other State) error {
	if s.machine.State == other {
		own = Ready
	}
	s.machine.State = own
	return nil
}

// List appends a LIST. It is called on the command in Ready. It fails with ErrMalformed, ErrTooLarge or ErrOutOfOrder.
func (s *Session) List(dst []byte, l ListRequest) ([]byte, error) {
	return s.send(dst, AppendList(dst, l), func() error { return s.beginList(l) })
}

func (s *Session) beginList(l ListRequest) error {
	if err := l.check(); err != nil {
		return err
	}
	s.machine.State, s.list.flags = Listing, l.Flags
	s.list.order.Message = wire.TypeListed
	s.list.order.Reset()
	return nil
}

// Listed appends a LISTED with as many of the entries as fit into a message, and returns their number. It is called on
// the daemon after ListRequested, at least once. An entry that does not fit into a message of its own fails with
// ErrTooLarge: it is to be left out, with all below it, and ListEnd to say so. It also fails with ErrMalformed, for
// example for the wrong order, and with ErrOutOfOrder.
func (s *Session) Listed(dst []byte, entries []Listed) (msg []byte, used int, err error) {
	head, allowed := wire.ListHead(dst, wire.TypeListed), s.mayCall(wire.TypeListed)
	return wire.SendSome(&s.machine, allowed, head, entries, (*Listed).fields, s.list.add)
}

// add adds a further entry.
func (l *listing) add(e *Listed) error {
	if err := e.check(); err != nil {
		return err
	}
	l.name = append(l.name[:0], e.Name...)
	entry := wire.Entry{Kind: e.Kind, Depth: e.Depth, Name: l.name}
	switch {
	case e.Depth > l.flags.depth():
		return wire.Malformed(wire.TypeListed, "an entry at depth %d, limit %d", e.Depth, l.flags.depth())
	case !l.flags.Has(ListAll) && (e.Kind == wire.EntrySpecial || e.Mounted):
		return wire.Malformed(wire.TypeListed, "a %s with what was not asked for", e.Kind)
	}
	if err := l.order.Check(&entry); err != nil {
		return err
	}
	l.order.Add(&entry)
	return nil
}

// ListEnd appends a LIST END. It is called on the daemon when all entries are listed, with code 0, or all but those
// that cannot be, with the first reason for that. It fails with ErrMalformed if none is listed, and with ErrOutOfOrder.
func (s *Session) ListEnd(dst []byte, code wire.AbortCode, text string) ([]byte, error) {
	e := ListEnd{Count: s.list.order.Next, Code: code, Text: text}
	msg := appendListEnd(dst, e, min(wire.MaxAbortText, s.machine.Limits.MaxMessage-listEndSize))
	return s.send(dst, msg, func() error { return s.endList(e) })
}

func (s *Session) endList(e ListEnd) error {
	switch listed := s.list.order.Next; {
	case e.Count == 0:
		return wire.Malformed(wire.TypeListEnd, "an empty list")
	case e.Count != listed:
		return wire.Malformed(wire.TypeListEnd, "%d entries instead of %d", e.Count, listed)
	}
	s.machine.State = Ready
	return nil
}

// Remove appends a REMOVE with as many of the paths as fit into a message, and returns their number. It is called on
// the command in Ready. It fails with ErrMalformed, ErrTooLarge or ErrOutOfOrder.
func (s *Session) Remove(dst []byte, r RemoveRequest) (msg []byte, used int, err error) {
	allowed := s.mayCall(wire.TypeRemove)
	if allowed == nil {
		allowed = r.Place.check(wire.TypeRemove)
	}
	paths := r.Paths
	r.Paths = nil
	head, results := codecOfRemove(dst, r), 0
	msg, used, err = wire.SendSome(&s.machine, allowed, head, paths, removePathFields, func(path *string) error {
		results++
		return wire.FirstError(checkRemovePath(*path), s.machine.CheckFits(wire.TypeRemoved,
			wire.ListSize+removedSize*results))
	})
	if used > 0 {
		s.machine.State, s.removals = Removing, used
	}
	return msg, used, err
}

// Removed appends a REMOVED with one result for each path, in their order. It is called on the daemon after
// RemoveRequested. Texts are truncated to what fits. It fails with ErrMalformed for another number of results, and with
// ErrOutOfOrder.
func (s *Session) Removed(dst []byte, results []Removal) ([]byte, error) {
	msg := AppendRemoved(dst, results, s.machine.Limits.MaxMessage)
	return s.send(dst, msg, func() error { return s.endRemoval(results) })
}

func (s *Session) endRemoval(results []Removal) error {
	if len(results) != s.removals {
		return wire.Malformed(wire.TypeRemoved, "%d results instead of %d", len(results), s.removals)
	}
	s.machine.State = Ready
	return nil
}

// Ping appends a PING with a payload that the PONG brings back, with text for the daemon's user, which it answers with
// its own, or with a Consumer. It is called on the command in Ready. It fails with ErrMalformed for a payload of more
// than MaxPingSize bytes, or a text of more than MaxPingText; with ErrTooLarge if it does not fit into a message; and
// with ErrOutOfOrder.
func (s *Session) Ping(dst, payload []byte, kind PingKind) ([]byte, error) {
	p := Ping{Number: s.pings, Kind: kind, Payload: payload}
	err := s.mayCall(wire.TypePing)
	if err == nil {
		err = wire.FirstError(p.check(wire.TypePing), s.checkPingFits(p))
	}
	if err != nil {
		return dst, s.machine.Refuse(err)
	}
	s.beginPing(p)
	return AppendPing(dst, p), nil
}

// checkPingFits checks the length of a message, unless the session has another path for it.
func (s *Session) checkPingFits(p Ping) error {
	if p.Kind == PingBytes && len(p.Payload) <= s.apart {
		return nil
	}
	return s.machine.CheckFits(wire.TypePing, PingHeader+len(p.Payload))
}

// Apart permits PINGs of payloads up to size bytes that are longer than a message of the channel: from now on they and
// their PONGs do not go over it.
func (s *Session) Apart(size uint32) { s.apart = int(size) }

func (s *Session) beginPing(p Ping) {
	s.reused.payload = append(s.reused.payload[:0], p.Payload...)
	p.Payload = s.reused.payload
	s.machine.State, s.ping = Pinging, p
	s.pings++
}

// checkPong checks the answer to the PING that is under way.
func (s *Session) checkPong(p Ping) error {
	switch {
	case p.Number != s.ping.Number || p.Kind != s.ping.Kind:
		return wire.Malformed(wire.TypePong, "number %d, %s, instead of number %d, %s", p.Number, p.Kind,
			s.ping.Number, s.ping.Kind)
	case p.Kind == PingConsumer && p.Consumer().Size != s.ping.Consumer().Size:
		return wire.Malformed(wire.TypePong, "payloads of %d bytes instead of %d", p.Consumer().Size,
			s.ping.Consumer().Size)
	case p.Kind == PingBytes && !bytes.Equal(p.Payload, s.ping.Payload):
		return &wire.Error{Message: wire.TypePong, Err: ErrPayload, Detail: fmt.Sprintf("round trip %d", p.Number+1)}
	}
	return nil
}

// Pong appends a PONG. It is called on the daemon after Pinged: with the payload of the PING, with a Consumer for a
// Consumer, or if the payload is text, with text for the command's user, which is truncated to MaxPingText bytes and to
// what fits into a message, with invalid UTF-8 replaced. It fails with ErrPayload for another payload, with
// ErrMalformed for another size, and with ErrOutOfOrder.
func (s *Session) Pong(dst, payload []byte) ([]byte, error) {
	p := Ping{Number: s.ping.Number, Kind: s.ping.Kind, Payload: payload}
	if p.Kind == PingText {
		p.Payload = []byte(wire.TruncateText(string(payload), min(MaxPingText, s.machine.Limits.MaxMessage-PingHeader)))
	}
	err := s.mayCall(wire.TypePong)
	if err == nil {
		err = p.check(wire.TypePong)
	}
	if err == nil {
		err = s.checkPong(p)
	}
	if err != nil {
		return dst, s.machine.Refuse(err)
	}
	s.machine.State = Ready
	return AppendPong(dst, p), nil
}

// Working appends a WORKING, a sign of life. It is called on the daemon in a request, but not in a copy after Accept.
// ahead is the number of requests that the daemon serves first. It fails with ErrOutOfOrder.
func (s *Session) Working(dst []byte, ahead uint32) ([]byte, error) {
	return s.send(dst, AppendWorking(dst, ahead), func() error { return nil })
}

// Disconnected reports the end of the connection. It returns nil between two requests and after a final refusal of this
// side, otherwise ErrLost, or the error with which the session had failed.
func (s *Session) Disconnected() error {
	switch s.machine.State {
	case Failed:
		return s.machine.Failure
	case Ready, Done:
		s.machine.State = Done
		return nil
	}
	return s.machine.Fail(&wire.Error{Err: ErrLost})
}

// mayCall checks that this side sends such a message in this state.
func (s *Session) mayCall(t wire.Type) error {
	if !ruleOf(s.role, t).sent.Has(s.machine.State) {
		return wire.OutOfOrder(t)
	}
	return nil
}

// send returns a message that was appended to dst, if this side may send it and its effect does not fail.
func (s *Session) send(dst, msg []byte, effect func() error) ([]byte, error) {
	return s.machine.SendIf(s.mayCall(wire.TypeOf(msg[len(dst):])), dst, msg, effect)
}
