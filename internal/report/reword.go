package report

import (
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// reword returns the failure that found explains in the user's words, without its side, if the errors have only those
// for logs.
func (e *SideError) reword(found exit.Coder) (words string, is bool) {
	if said, is := errors.AsType[*native.PeerAborted](found); is {
		return abortReason(e, said.Text), true
	}
	if said, is := errors.AsType[*service.Refusal](found); is {
		return refusalReason(e.Side, said.Text), true
	}
	reworder, is := found.(exit.Reworder)
	if !is {
		return "", false
	}
	text := e.Err.Error()
	words = reworder.Reword(text, e.Side.Other().String())
	return words, words != text
}

// abortReason returns the reason in the peer's abort message.
func abortReason(failed *SideError, text string) string {
	if _, is := errors.AsType[unbegun](failed.Err); is {
		return refusalReason(failed.Side, text)
	}
	if text == "" {
		return fmt.Sprintf("the %s aborted without a reason", failed.Side.Other())
	}
	return fmt.Sprintf("the %s aborted: %s", failed.Side.Other(), quote.Printable(text))
}

// refusalReason returns the reason for which a daemon refused.
func refusalReason(side wire.Side, text string) string {
	daemon := "the daemon on the " + side.Other().String()
	if side == wire.Client {
		daemon = "the daemon"
	}
	if text == "" {
		return daemon + " refused without a reason"
	}
	return daemon + " refused: " + quote.Printable(text)
}

// requestLost is the loss of the connection during a request to a daemon other than a copy.
type requestLost struct {
	error
	request string
}

var _ exit.Reworder = (*requestLost)(nil)

// InRequest names the request in an error that has a side, so that it does not speak of a copy: "list" or "ping".
func InRequest(request string, err error) error {
	sided, is := errors.AsType[*SideError](err)
	if !is {
		return err
	}
	found := exit.Find(sided.Err)
	for _, lost := range []error{comch.ErrPeerLost, wire.ErrPeerLost, service.ErrLost} {
		if errors.Is(found, lost) {
			sided.Err = &requestLost{sided.Err, request}
			break
		}
	}
	return err
}

// Unwrap returns the error itself.
func (r *requestLost) Unwrap() error { return r.error }

// ExitCode implements exit.Coder.
func (r *requestLost) ExitCode() int { return exit.Peer }

// Hint implements exit.Coder.
func (r *requestLost) Hint() string { return "check the other side and try again" }

// Reword implements exit.Reworder.
func (r *requestLost) Reword(_, peer string) string {
	return fmt.Sprintf("the connection to the %s was lost before the %s ended", peer, r.request)
}
