// Package exchange lets two commands of this program, one on each side, ask each other questions over Comch.
//
//	Meet ── Turns ──┬─ Ask: a question, at most MaxQuestion bytes ──► the peer's handler
//	                └─ the handler's answer, at most MaxAnswer bytes, in pieces ◄── as many requests
//	  └──── Swap: Turns in which each side hands a named report to the other
//
// The messages are the PINGs of the service protocol with texts, so that a question and each piece of an answer is one
// round trip. The side whose turn it is makes all requests: the DPU first, then the host. The package must not know
// what is asked.
package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// The limits of what one side takes from the other, in bytes. Questions and answers are valid UTF-8.
const (
	MaxQuestion = 900
	MaxAnswer   = 256 << 10
)

// SameRelease is the hint where the other side's command has sent what this release does not send.
const SameRelease = "run the same release of dma-copy on both sides"

// Limit is the time that a conversation takes at most, once the peer is there.
const Limit = time.Minute

const (
	pieceHeader = 16 // bytes that a piece may have in front of its text
	leastPiece  = 64 // bytes of each piece but the last
	errorHeader = "error"
)

// Options describe one side.
type Options struct {
	Side        wire.Side
	Device      *doca.Device
	Representor string        // on the DPU: the host function to serve
	Name        string        // of the Comch server, which no other command has
	Wait        time.Duration // for the peer to appear
	Idle        time.Duration // for each message and each whole answer of the peer, and so for the work behind it
	Log         zerolog.Logger
}

// Handler returns the answer to a question of the peer, which is any text. The peer gets an error as a PeerError.
type Handler func(ctx context.Context, question string) (answer []byte, err error)

// PeerError is the peer's answer that it has none, in its words.
type PeerError struct{ Text string }

// Error quotes the text in ASCII.
func (e *PeerError) Error() string { return "the peer answered: " + quote.Printable(e.Text) }

// Conversation is one side of the questions over one connection. It is used by one goroutine at a time. Its turns:
//
//	DPU:   asking ── pass ──► answering ── the peer passes ──► over
//	host:  answering ── the peer passes ──► asking ── pass ──► over
//
// A pass is an empty question. Each turn has a session of its own, which begins with GREETINGs and keeps the order.
type Conversation struct {
	options Options
	conn    comch.Conn
	end     func() error
	session *service.Session
	trace   job.Trace
	over    bool
}

// Meet waits for the peer and connects to it. Errors come from comch, negotiate and doca.
func Meet(ctx context.Context, o Options) (*Conversation, error) {
	if o.Side == wire.Host {
		return dial(ctx, o)
	}
	conn, disconnect, err := comch.Offer{
		Device: o.Device, Representor: o.Representor, Names: []string{o.Name},
	}.AcceptOne(ctx, comch.Within(o.Wait))
	if err != nil {
		return nil, err
	}
	return begin(ctx, o, conn, disconnect)
}

// dial is Meet on the host. A DPU that serves another host disconnects this one, which then tries again.
func dial(ctx context.Context, o Options) (*Conversation, error) {
	dialer := comch.NewDialer(o.Device, o.Name, comch.Within(o.Wait))
	conn, err := dialer.Dial(ctx)
	for err == nil {
		c, failed := begin(ctx, o, conn, conn.Close)
		if !errors.Is(failed, comch.ErrPeerLost) {
			return c, failed
		}
		conn, err = dialer.Redial(ctx)
	}
	return nil, err
}

// begin begins the first turn.
func begin(ctx context.Context, o Options, conn comch.Conn, end func() error) (*Conversation, error) {
	c := &Conversation{options: o, conn: conn, end: end}
	role := service.Command
	if o.Side == wire.Host {
		role = service.Daemon
	}
	if err := c.greet(ctx, role); err != nil {
		return nil, errors.Join(err, end())
	}
	return c, nil
}

// greet begins the session of a turn: the side that asks is the command.
func (c *Conversation) greet(ctx context.Context, role service.Role) (err error) {
	limits := wire.Limits{MaxMessage: c.conn.MaxMessage()}
	if c.session, err = service.New(role, service.Greeting{}, limits); err != nil {
		return err
	}
	c.trace = job.Trace{Log: c.options.Log.With().Stringer("as", role).Logger(), Protocol: "service"}
	if greeting := c.session.Start(); greeting != nil {
		err = c.send(ctx, greeting, nil)
	}
	if err == nil {
		_, err = c.receive(ctx, service.Greeted)
	}
	return err
}

// send sends a message, unless the session has refused to make it.
func (c *Conversation) send(ctx context.Context, message []byte, err error) error {
	if err != nil {
		return err
	}
	c.trace.Sent(message, c.session.State())
	waiting, cancel := c.waiting(ctx, "message")
	defer cancel()
	return c.conn.Send(waiting, message)
}

// waiting returns the context of a wait for something from the peer.
func (c *Conversation) waiting(ctx context.Context, noun string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.options.Idle, job.NewError(job.ErrIdle, nil, "check the other side",
		"timeout: no %s from the %s for %s", noun, c.options.Side.Other(), c.options.Idle))
}

// receive returns the text of the next message of the peer, which must be of one kind.
func (c *Conversation) receive(ctx context.Context, want service.Event) ([]byte, error) {
	waiting, cancel := c.waiting(ctx, "message")
	defer cancel()
	if ctx.Err() != nil { // Recv prefers a message that waits
		return nil, context.Cause(ctx)
	}
	message, err := c.conn.Recv(waiting)
	if err != nil {
		return nil, err
	}
	step, err := c.session.Receive(message)
	c.trace.Received(message, c.session.State())
	if step.Reply != nil {
		err = errors.Join(err, c.send(ctx, step.Reply, nil))
	}
	if err == nil && (step.Event != want || want != service.Greeted && step.Ping.Kind != service.PingText) {
		err = &wire.Error{
			State: c.session.State(), Message: wire.TypeOf(message), Err: wire.ErrOutOfOrder,
		}
	}
	return step.Ping.Payload, err
}

// Turns calls ask in this side's turn, in which it may call Ask, and handle for each question in the peer's turn. Both
// sides call it, once, and only Close after it. An error ends it, such as one after Limit; then the peer has one, too,
// after Close.
func (c *Conversation) Turns(ctx context.Context, ask func(context.Context) error, handle Handler) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Limit, job.NewError(job.ErrIdle, nil, "check the other side",
		"timeout: the exchange with the %s took more than %s", c.options.Side.Other(), Limit))
	defer cancel()
	roles := []service.Role{service.Command, service.Daemon}
	if c.options.Side == wire.Host {
		slices.Reverse(roles)
	}
	for i, role := range roles {
		if i > 0 {
			if err := c.greet(ctx, role); err != nil {
				return err
			}
		}
		var err error
		if role == service.Daemon {
			err = c.answer(ctx, handle)
		} else if err = ask(ctx); err == nil {
			_, err = c.request(ctx, "")
		}
		if err != nil {
			return err
		}
	}
	c.over = true
	return nil
}

// Swap hands own, a report of at most MaxAnswer bytes, to the peer, and returns the peer's. Both sides call it, with
// the same name of at most MaxQuestion bytes and instead of Turns, each when its report is complete: until then the
// peer waits, for Options.Idle at most. "dma-copy bundle --peer" uses it.
func (c *Conversation) Swap(ctx context.Context, name string, own []byte) (peers []byte, err error) {
	err = c.Turns(ctx, func(ctx context.Context) error {
		peers, err = c.Ask(ctx, name)
		return err
	}, func(_ context.Context, question string) ([]byte, error) {
		if question != name {
			return nil, fmt.Errorf("no report is called %s", quote.Text(question))
		}
		return own, nil
	})
	return peers, err
}

// Ask asks the peer and returns its answer, any text of at most MaxAnswer bytes. A *PeerError is an answer, too: other
// questions may follow. Any other error ends the conversation.
func (c *Conversation) Ask(ctx context.Context, question string) ([]byte, error) {
	if question == "" || len(question) > MaxQuestion {
		return nil, fmt.Errorf("a question of %d bytes, not 1 to %d", len(question), MaxQuestion)
	}
	ctx, cancel := c.waiting(ctx, "complete answer")
	defer cancel()
	var answer []byte
	for total := -1; len(answer) != total; {
		piece, err := c.request(ctx, strconv.Itoa(len(answer))+" "+question)
		if err != nil {
			return nil, err
		}
		head, text, _ := bytes.Cut(piece, []byte("\n"))
		if string(head) == errorHeader {
			return nil, &PeerError{string(text)}
		}
		announced, err := strconv.Atoi(string(head))
		if err != nil || announced < 0 || announced > MaxAnswer || total >= 0 && announced != total ||
			len(text) > announced-len(answer) || len(text) < min(leastPiece, announced-len(answer)) {
			return nil, exit.Errorf(exit.Protocol, SameRelease,
				"a piece of %d bytes at %d of an answer that has %s: %w",
				len(text), len(answer), quote.Text(string(head)), wire.ErrMalformed)
		}
		total, answer = announced, append(answer, text...)
	}
	return answer, nil
}

// request makes one round trip.
func (c *Conversation) request(ctx context.Context, text string) ([]byte, error) {
	message, err := c.session.Ping(nil, []byte(text), service.PingText)
	if err := c.send(ctx, message, err); err != nil {
		return nil, err
	}
	return c.receive(ctx, service.RoundTrip)
}

// answer serves the questions of the peer until it passes.
func (c *Conversation) answer(ctx context.Context, handle Handler) error {
	last := given{limit: min(service.MaxPingText, c.conn.MaxMessage()-service.PingHeader) - pieceHeader}
	for {
		text, err := c.receive(ctx, service.Pinged)
		if err != nil {
			return err
		}
		var reply string
		passes := len(text) == 0
		if !passes {
			reply = last.piece(ctx, string(text), handle)
		}
		message, err := c.session.Pong(nil, []byte(reply))
		if err := c.send(ctx, message, err); err != nil || passes {
			return err
		}
	}
}

// given is the answer to the last question.
type given struct {
	limit    int // bytes of a piece
	question string
	answer   []byte
	sent     int // bytes of answer
}

// piece returns the reply to a request: the length of the whole answer, and its next piece.
func (g *given) piece(ctx context.Context, request string, handle Handler) string {
	offset, question, _ := strings.Cut(request, " ")
	if offset == "0" {
		answer, err := handle(ctx, question)
		if err == nil && (len(answer) > MaxAnswer || !utf8.Valid(answer)) {
			err = fmt.Errorf("the answer has %d bytes, limit %d, or is no text", len(answer), MaxAnswer)
		}
		if err != nil {
			return errorHeader + "\n" + err.Error()
		}
		g.question, g.answer, g.sent = question, answer, 0
	} else if question != g.question || offset != strconv.Itoa(g.sent) || g.sent == len(g.answer) {
		return errorHeader + "\nnot the rest of the last answer"
	}
	start, end := g.sent, min(g.sent+g.limit, len(g.answer))
	for end < len(g.answer) && !utf8.RuneStart(g.answer[end]) {
		end--
	}
	g.sent = end
	return fmt.Sprintf("%d\n%s", len(g.answer), g.answer[start:end])
}

// Close ends the connection. After Turns the host, which has the last answer, ends it first.
func (c *Conversation) Close() error {
	if c.over && c.options.Side == wire.DPU {
		select {
		case <-c.conn.Done():
		case <-time.After(job.PartingTime):
		}
	}
	return c.end()
}
