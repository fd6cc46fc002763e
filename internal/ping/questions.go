package ping

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
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

// Limit is the time that questions take at most, once the peer is there.
const Limit = time.Minute

const (
	pieceHeader = 16 // bytes that a piece may have in front of its text
	leastPiece  = 64 // bytes of each piece but the last
	errorHeader = "error"
)

// Handler returns the answer to a question of the peer, which is any text. The peer gets an error as a PeerError.
type Handler func(ctx context.Context, question string) (answer []byte, err error)

// PeerError is the peer's answer that it has none, in its words.
type PeerError struct{ Text string }

// Error quotes the text in ASCII.
func (e *PeerError) Error() string { return "the peer answered: " + quote.Printable(e.Text) }

// Turns calls ask in this side's turn, in which it may call Ask, and handle for each question in the peer's turn. Both
// sides call it, once, and only Close after it. An error ends it, such as one after Limit, and the peer is told.
func (c *Conversation) Turns(ctx context.Context, ask func(context.Context) error, handle Handler) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Limit, job.NewError(job.ErrIdle, nil, "check the other side",
		"timeout: the exchange with the %s took more than %s", c.Side.Other(), Limit))
	defer cancel()
	last := given{limit: min(service.MaxPingText, c.conn.MaxMessage()-service.PingHeader) - pieceHeader}
	err := c.turns(ctx, ask, func(ctx context.Context, p service.Ping) ([]byte, error) {
		if p.Kind != service.PingText {
			return nil, c.outOfOrder(wire.TypePing)
		}
		return []byte(last.piece(ctx, string(p.Payload), handle)), nil
	})
	if err != nil {
		c.tell(err)
	}
	return err
}

// Swap hands own, a report of at most MaxAnswer bytes, to the peer, and returns the peer's. Both sides call it, with
// the same name of at most MaxQuestion bytes and instead of Turns, each when its report is complete: until then the
// peer waits, for IdleTimeout at most. "dma-copy bundle --peer" uses it.
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
		request := strconv.Itoa(len(answer)) + " " + question
		piece, err := c.roundTrip(ctx, service.PingText, []byte(request))
		if err != nil {
			return nil, err
		}
		head, text, _ := bytes.Cut(piece.Payload, []byte("\n"))
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
