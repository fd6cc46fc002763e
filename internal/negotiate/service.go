package negotiate

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrPayload is a PONG that does not have the payload of its PING.
var ErrPayload = errors.New("a payload came back changed")

// ServiceName is the Comch server name of a daemon on the DPU, for commands on the host.
const ServiceName = "dma copy service"

// CommandNames returns the Comch server names of commands on the DPU, for a daemon on the host. Only one process at a
// time can offer a name to a host function, and not let go of it while it is connected, so that this is how many
// commands can be served at once. Each takes the first name that is free.
func CommandNames() []string {
	return []string{"dma copy command", "dma copy command 2", "dma copy command 3", "dma copy command 4"}
}

// ServiceRole is what a program does in a Service.
type ServiceRole uint8

// The roles. Either may be on the host or on the DPU.
const (
	Command ServiceRole = iota // push, pull, sync, ls, ping: makes requests
	Daemon                     // serve: serves them
)

// String returns "command" or "daemon".
func (r ServiceRole) String() string {
	if r == Command {
		return "command"
	}
	return "daemon"
}

// Other returns the peer's role.
func (r ServiceRole) Other() ServiceRole {
	if r == Command {
		return Daemon
	}
	return Command
}

// ServiceStep is the result of a received message. Its slices are valid until the next call of Receive; its strings
// stay valid.
type ServiceStep struct {
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
	Ping     ServicePing    // with Pinged: call Pong; with RoundTrip: the answer. The payload is part of the message
	Ahead    uint32         // with PeerWorking: number of requests that the daemon serves first
	MakeDir  MakeDirRequest // with MakeDirRequested
}

// Service is one side of what a command and a daemon have over one connection, from GREETING to the disconnect: one
// request at a time, each of the command. It is not safe for concurrent use.
//
//	Idle ─► AwaitGreeting ─► Ready ─┬─► Preparing ─┐
//	                           ▲    ├──────────────┴─► Requested ─► Copying ─┬─► Closing ─────┬─► Ready
//	                           │    │                                        └─► PeerClosing ─┘
//	                           └────┴─► Listing, Removing, Making, Pinging
//
// A refused request leads back to Ready from Requested, Listing, Removing, Making and Pinging. A disconnect in Ready
// leads to Done, and so does a final refusal on the daemon. Every state can change to Failed, which is final.
//
// Call Start, pass every received message to Receive, and do what the ServiceStep requires. All other methods except
// the accessors report this side's own progress and return the message to send, appended to dst. A call that the state
// or its arguments do not allow returns dst with an *Error and changes nothing; a failed session returns the error that
// it failed with.
//
// While a copy is running, the messages of its native session pass through: call Native before one is sent, and Receive
// passes on those of the peer. CLOSE ends this: each side sends it behind the last one of its own.
//
// A Service keeps the payload of one PING, the elements of the last list that it received, in at most 12 times the
// bytes of a message, and about 12 KiB for the path of the last entry of a list.
type Service struct {
	role    ServiceRole
	own     ServiceGreeting
	peer    ServiceGreeting
	limits  Limits
	state   State
	failure *Error // why the state is Failed

	items     itemTotals
	direction CopyDirection // of the copy
	list      listing
	removals  int // number of results that REMOVED has
	ping      ServicePing
	pings     uint32 // number of the next PING
	apart     int    // bytes of the largest payload of a PING that does not go over the channel; 0: all do

	reused serviceReused
}

// listing is how far the list of the running request has come.
type listing struct {
	flags ListFlags
	order entryOrder
	name  []byte // of the entry that is being checked
}

// serviceReused has what a ServiceStep refers to.
type serviceReused struct {
	items   []Item
	listed  []Listed
	paths   []string
	removed []Removal
	payload []byte // of the own PING
}

// NewService returns a session in state Idle. Versions and Version of own are ignored, and so is Authenticates of a
// command. It fails with ErrMalformed for a GREETING that a peer would refuse, and with ErrTooLarge if the channel's
// messages are shorter than MaxServiceGreeting. Of limits only MaxMessage has an effect.
func NewService(role ServiceRole, own ServiceGreeting, limits Limits) (*Service, error) {
	own.Versions, own.Version = ServiceVersions, 0
	own.Authenticates = own.Authenticates && role == Daemon
	if err := own.check(); err != nil {
		return nil, err
	}
	if limits.MaxMessage < MaxServiceGreeting {
		return nil, tooLarge(TypeServiceGreeting, "the message may have", MaxServiceGreeting,
			uint64(max(0, limits.MaxMessage)))
	}
	return &Service{role: role, own: own, limits: limits, state: Idle}, nil
}

// State returns the session's state.
func (s *Service) State() State { return s.state }

// Reached returns State, or of a failed session the state in which it failed.
func (s *Service) Reached() State {
	if s.state == Failed {
		return s.failure.State
	}
	return s.state
}

// Role returns the role that NewService was called with.
func (s *Service) Role() ServiceRole { return s.role }

// Peer returns the peer's GREETING; it is zero before Greeted.
func (s *Service) Peer() ServiceGreeting { return s.peer }

// Version returns the version that both sides speak; it is 0 before Greeted.
func (s *Service) Version() uint8 {
	if s.role == Daemon {
		return s.own.Version
	}
	return s.peer.Version
}

// Start begins the session. It returns the command's GREETING to send. On the daemon, which waits for it, and after the
// first call it returns nil.
func (s *Service) Start() []byte {
	if s.state != Idle {
		return nil
	}
	s.state = AwaitGreeting
	if s.role == Daemon {
		return nil
	}
	return AppendServiceGreeting(nil, s.own)
}

// Native reports with its error whether a message of this side's native session may be sent now: while a copy is
// running, until this side's CLOSE. It fails with ErrOutOfOrder, and with ErrMalformed for a message that is not of a
// native session, or too long. The message is sent as it is.
func (s *Service) Native(msg []byte) error {
	switch t := typeOf(msg); {
	case !copySent.has(s.state):
		return s.refuse(outOfOrder(t))
	case !isNative(t):
		return s.refuse(malformed(t, "not a message of a native session"))
	default:
		if err := s.checkFits(t, len(msg)); err != nil {
			return s.refuse(err)
		}
	}
	return nil
}

// Items appends an ITEMS with as many of the items as fit into a message, and returns their number. It is called on the
// command in Ready before Copy, as often as necessary. It fails with ErrMalformed, with ErrTooLarge for more than
// MaxPatterns, MaxListedPaths or MaxItemsTogether since the last copy, and with ErrOutOfOrder.
func (s *Service) Items(dst []byte, items []Item) (msg []byte, used int, err error) {
	err = s.mayCall(TypeItems)
	if err == nil && len(items) == 0 {
		err = malformed(TypeItems, "an empty list")
	}
	totals, length := s.items, listSize
	for used < len(items) && err == nil {
		length += itemSize + len(items[used].Text)
		err = firstError(items[used].check(), s.checkFits(TypeItems, length))
		if err == nil {
			err = totals.add(items[used])
		}
		if err == nil {
			used++
		}
	}
	if used == 0 {
		return dst, 0, s.refuse(err)
	}
	s.items, s.state = totals, Preparing
	return AppendItems(dst, items[:used]), used, nil
}

// Copy appends a COPY. It is called on the command in Ready, or after Items. It fails with ErrMalformed, also after
// Items unless the copy is a pull, and after paths without CopyOnly; with ErrTooLarge if place and name do not fit into
// a message; and with ErrOutOfOrder.
func (s *Service) Copy(dst []byte, c CopyRequest) ([]byte, error) {
	length := copySize + len(c.Place.Share) + len(c.Place.Path)
	c.Local = cutPath(c.Local, s.limits.MaxMessage-length)
	err := s.mayCall(TypeCopy)
	if err == nil {
		err = firstError(c.check(), s.items.checkFor(c), s.checkFits(TypeCopy, length))
	}
	if err != nil {
		return dst, s.refuse(err)
	}
	s.beginCopy(c)
	return AppendCopy(dst, c), nil
}

func (s *Service) beginCopy(c CopyRequest) {
	s.direction, s.items, s.state = c.Direction, itemTotals{}, Requested
}

// Accept appends an ACCEPTED. It is called on the daemon after CopyRequested; the native session of the copy begins. It
// fails with ErrMalformed, ErrTooLarge or ErrOutOfOrder.
func (s *Service) Accept(dst []byte, a Accepted) ([]byte, error) {
	err := s.mayCall(TypeAccepted)
	if err == nil {
		err = firstError(a.checkFor(s.direction), s.checkFits(TypeAccepted, acceptedSize+len(a.Path)))
	}
	if err != nil {
		return dst, s.refuse(err)
	}
	s.state = Copying
	return AppendAccepted(dst, a), nil
}

// Refuse appends a REFUSED. It is called on the daemon. Unless it is final it ends the request, before ACCEPTED. A
// final one ends the session, also in place of the GREETING, between two requests and during a copy; the state is Done
// then. It fails with ErrOutOfOrder.
func (s *Service) Refuse(dst []byte, r Refusal) ([]byte, error) {
	allowed := refusedStates
	if r.Final {
		allowed = begun
	}
	if s.role != Daemon || !allowed.has(s.state) {
		return dst, s.refuse(outOfOrder(TypeRefused))
	}
	s.state = Ready
	if r.Final {
		s.state = Done
	}
	return s.appendRefused(dst, r), nil
}

func (s *Service) appendRefused(dst []byte, r Refusal) []byte {
	return appendRefused(dst, r, min(MaxAbortText, s.limits.MaxMessage-refusedSize))
}

// Close appends a CLOSE. Each side calls it once in a copy, when its native session has ended. The copy has ended when
// both sides have, and the state is Ready. It fails with ErrOutOfOrder.
func (s *Service) Close(dst []byte) ([]byte, error) {
	if err := s.mayCall(TypeClose); err != nil {
		return dst, s.refuse(err)
	}
	if s.state == PeerClosing {
		s.state = Ready
	} else {
		s.state = Closing
	}
	return AppendClose(dst), nil
}

// List appends a LIST. It is called on the command in Ready. It fails with ErrMalformed, ErrTooLarge or ErrOutOfOrder.
func (s *Service) List(dst []byte, l ListRequest) ([]byte, error) {
	err := s.mayCall(TypeList)
	if err == nil {
		err = firstError(l.check(),
			s.checkFits(TypeList, placeRequestSize+len(l.Place.Share)+len(l.Place.Path)))
	}
	if err != nil {
		return dst, s.refuse(err)
	}
	s.beginList(l)
	return AppendList(dst, l), nil
}

func (s *Service) beginList(l ListRequest) {
	s.state, s.list.flags = Listing, l.Flags
	if s.list.order.path == nil {
		s.list.order = newEntryOrder(TypeListed)
	}
	s.list.order.reset()
}

// Listed appends a LISTED with as many of the entries as fit into a message, and returns their number. It is called on
// the daemon after ListRequested, at least once. An entry that does not fit into a message of its own fails with
// ErrTooLarge: it is to be left out, with all below it, and ListEnd to say so. It also fails with ErrMalformed, for
// example for the wrong order, and with ErrOutOfOrder.
func (s *Service) Listed(dst []byte, entries []Listed) (msg []byte, used int, err error) {
	err = s.mayCall(TypeListed)
	if err == nil && len(entries) == 0 {
		err = malformed(TypeListed, "an empty list")
	}
	length := listSize
	for used < len(entries) && err == nil {
		e := &entries[used]
		length += listedSize + len(e.Name) + len(e.Link)
		err = firstError(e.check(), s.checkFits(TypeListed, length))
		if err == nil {
			err = s.list.add(e)
		}
		if err == nil {
			used++
		}
	}
	if used == 0 {
		return dst, 0, s.refuse(err)
	}
	return AppendListed(dst, entries[:used]), used, nil
}

// add checks a further entry, which is valid by itself.
func (l *listing) add(e *Listed) error {
	l.name = append(l.name[:0], e.Name...)
	entry := Entry{Kind: e.Kind, Depth: e.Depth, Name: l.name}
	switch {
	case e.Depth > l.flags.depth():
		return malformed(TypeListed, "an entry at depth %d, limit %d", e.Depth, l.flags.depth())
	case !l.flags.Has(ListAll) && (e.Kind == EntrySpecial || e.Mounted):
		return malformed(TypeListed, "a %s with what was not asked for", e.Kind)
	}
	if err := l.order.check(&entry); err != nil {
		return err
	}
	l.order.add(&entry)
	return nil
}

// ListEnd appends a LIST END. It is called on the daemon when all entries are listed, with code 0, or all but those
// that cannot be, with the first reason for that. It fails with ErrMalformed if none is listed, and with ErrOutOfOrder.
func (s *Service) ListEnd(dst []byte, code AbortCode, text string) ([]byte, error) {
	e := ListEnd{Count: s.list.order.next, Code: code, Text: text}
	err := s.mayCall(TypeListEnd)
	if err == nil {
		err = s.list.checkEnd(e)
	}
	if err != nil {
		return dst, s.refuse(err)
	}
	s.state = Ready
	return appendListEnd(dst, e, min(MaxAbortText, s.limits.MaxMessage-listEndSize)), nil
}

func (l *listing) checkEnd(e ListEnd) error {
	switch {
	case e.Count == 0:
		return malformed(TypeListEnd, "an empty list")
	case e.Count != l.order.next:
		return malformed(TypeListEnd, "%d entries instead of %d", e.Count, l.order.next)
	}
	return nil
}

// Remove appends a REMOVE with as many of the paths as fit into a message, and returns their number. It is called on
// the command in Ready. It fails with ErrMalformed, ErrTooLarge or ErrOutOfOrder.
func (s *Service) Remove(dst []byte, r RemoveRequest) (msg []byte, used int, err error) {
	err = s.mayCall(TypeRemove)
	if err == nil && len(r.Paths) == 0 {
		err = malformed(TypeRemove, "an empty list")
	}
	if err == nil {
		err = r.Place.check(TypeRemove)
	}
	length := removeSize + len(r.Place.Share) + len(r.Place.Path)
	for used < len(r.Paths) && err == nil {
		length += removePathSize + len(r.Paths[used])
		if err = firstError(checkRemovePath(r.Paths[used]), s.checkFits(TypeRemove, length),
			s.checkFits(TypeRemoved, listSize+removedSize*(used+1))); err == nil {
			used++
		}
	}
	if used == 0 {
		return dst, 0, s.refuse(err)
	}
	r.Paths = r.Paths[:used]
	s.beginRemoval(r)
	return AppendRemove(dst, r), used, nil
}

func (s *Service) beginRemoval(r RemoveRequest) { s.state, s.removals = Removing, len(r.Paths) }

// Removed appends a REMOVED with one result for each path, in their order. It is called on the daemon after
// RemoveRequested. Texts are truncated to what fits. It fails with ErrMalformed for another number of results, and with
// ErrOutOfOrder.
func (s *Service) Removed(dst []byte, results []Removal) ([]byte, error) {
	err := s.mayCall(TypeRemoved)
	if err == nil {
		err = s.checkRemoved(results)
	}
	if err != nil {
		return dst, s.refuse(err)
	}
	s.state = Ready
	return AppendRemoved(dst, results, s.limits.MaxMessage), nil
}

func (s *Service) checkRemoved(results []Removal) error {
	if len(results) != s.removals {
		return malformed(TypeRemoved, "%d results instead of %d", len(results), s.removals)
	}
	return nil
}

// Ping appends a PING with a payload that the PONG brings back, with text for the daemon's user, which it answers with
// its own, or with a Consumer. It is called on the command in Ready. It fails with ErrMalformed for a payload of more
// than MaxPingSize bytes, or a text of more than MaxPingText; with ErrTooLarge if it does not fit into a message; and
// with ErrOutOfOrder.
func (s *Service) Ping(dst, payload []byte, kind PingKind) ([]byte, error) {
	p := ServicePing{Number: s.pings, Kind: kind, Payload: payload}
	err := s.mayCall(TypeServicePing)
	if err == nil {
		err = firstError(p.check(TypeServicePing), s.checkPingFits(p))
	}
	if err != nil {
		return dst, s.refuse(err)
	}
	s.beginPing(p)
	return AppendServicePing(dst, p), nil
}

// checkPingFits checks the length of a message, unless the session has another path for it.
func (s *Service) checkPingFits(p ServicePing) error {
	if p.Kind == PingBytes && len(p.Payload) <= s.apart {
		return nil
	}
	return s.checkFits(TypeServicePing, ServicePingHeader+len(p.Payload))
}

// Apart permits PINGs of payloads up to size bytes that are longer than a message of the channel: from now on they and
// their PONGs do not go over it.
func (s *Service) Apart(size uint32) { s.apart = int(size) }

func (s *Service) beginPing(p ServicePing) {
	s.reused.payload = append(s.reused.payload[:0], p.Payload...)
	p.Payload = s.reused.payload
	s.state, s.ping = Pinging, p
	s.pings++
}

// checkPong checks the answer to the PING that is under way.
func (s *Service) checkPong(p ServicePing) error {
	switch {
	case p.Number != s.ping.Number || p.Kind != s.ping.Kind:
		return malformed(TypeServicePong, "number %d, %s, instead of number %d, %s", p.Number, p.Kind,
			s.ping.Number, s.ping.Kind)
	case p.Kind == PingConsumer && p.Consumer().Size != s.ping.Consumer().Size:
		return malformed(TypeServicePong, "payloads of %d bytes instead of %d", p.Consumer().Size,
			s.ping.Consumer().Size)
	case p.Kind == PingBytes && !bytes.Equal(p.Payload, s.ping.Payload):
		return &Error{Message: TypeServicePong, Err: ErrPayload, Detail: fmt.Sprintf("round trip %d", p.Number+1)}
	}
	return nil
}

// Pong appends a PONG. It is called on the daemon after Pinged: with the payload of the PING, with a Consumer for a
// Consumer, or if the payload is text, with text for the command's user, which is truncated to MaxPingText bytes and to
// what fits into a message, and of which invalid UTF-8 is replaced. It fails with ErrPayload for another payload, with
// ErrMalformed for another size, and with ErrOutOfOrder.
func (s *Service) Pong(dst, payload []byte) ([]byte, error) {
	p := ServicePing{Number: s.ping.Number, Kind: s.ping.Kind, Payload: payload}
	if p.Kind == PingText {
		p.Payload = []byte(truncateText(string(payload), min(MaxPingText, s.limits.MaxMessage-ServicePingHeader)))
	}
	err := s.mayCall(TypeServicePong)
	if err == nil {
		err = p.check(TypeServicePong)
	}
	if err == nil {
		err = s.checkPong(p)
	}
	if err != nil {
		return dst, s.refuse(err)
	}
	s.state = Ready
	return AppendServicePong(dst, p), nil
}

// Working appends a WORKING, a sign of life. It is called on the daemon in a request, but not in a copy after Accept.
// ahead is the number of requests that the daemon serves first. It fails with ErrOutOfOrder.
func (s *Service) Working(dst []byte, ahead uint32) ([]byte, error) {
	if err := s.mayCall(TypeWorking); err != nil {
		return dst, s.refuse(err)
	}
	return AppendWorking(dst, ahead), nil
}

// Disconnected reports the end of the connection. It returns nil between two requests and after a final refusal of this
// side, otherwise ErrServiceLost, or the error with which the session had failed.
func (s *Service) Disconnected() error {
	switch s.state {
	case Failed:
		return s.failure
	case Ready, Done:
		s.state = Done
		return nil
	}
	return s.fail(&Error{Err: ErrServiceLost})
}

// mayCall checks that this side sends such a message in this state.
func (s *Service) mayCall(t Type) error {
	if !serviceRuleOf(s.role, t).sent.has(s.state) {
		return outOfOrder(t)
	}
	return nil
}

func (s *Service) checkFits(t Type, length int) error {
	if length > s.limits.MaxMessage {
		return tooLarge(t, "the message would have", uint64(length), uint64(s.limits.MaxMessage))
	}
	return nil
}

func (s *Service) fail(failure *Error) error {
	failure.State = s.state
	s.failure, s.state = failure, Failed
	return failure
}

// refuse returns the error for a call that is not possible. Nothing was sent, so the state stays.
func (s *Service) refuse(err error) error {
	if s.state == Failed {
		return s.failure
	}
	misuse := asError(err)
	misuse.State = s.state
	return misuse
}
