package service

import (
	"fmt"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// awaited is the answer of the daemon that a Client waits for. Its methods are safe for concurrent use.
type awaited struct {
	mu           sync.Mutex
	waiting      bool
	operation    Operation // of the request; empty: the greeting
	place        protocol.Place
	asked, heard time.Time
}

// begin notes a request until end is called.
func (a *awaited) begin(o Operation, p protocol.Place) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting, a.operation, a.place, a.asked = true, o, p, time.Now()
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.waiting = false
	}
}

// received notes a message of the daemon.
func (a *awaited) received() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = time.Now()
}

// outsideCopy reports whether the request is one that copies nothing.
func (a *awaited) outsideCopy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting && !a.operation.Copies()
}

// describe returns the line about the request, empty without one.
func (a *awaited) describe() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.waiting {
		return ""
	}
	heard := a.heard
	if heard.IsZero() {
		heard = a.asked
	}
	return fmt.Sprintf("the command waits for the daemon to %s; asked %s ago, last message of the daemon %s ago",
		answering(a.operation, a.place), job.Age(time.Since(a.asked)), job.Age(time.Since(heard)))
}

// Waits returns what the Client waits for outside of a copy, in one line; empty: for nothing. Unlike most methods it
// may be called by any goroutine.
func (c *Client) Waits() string {
	if !c.awaited.outsideCopy() {
		return ""
	}
	return c.awaited.describe()
}

// answering says what is to be done with a request.
func answering(o Operation, p protocol.Place) string {
	switch {
	case o == "":
		return "send its greeting"
	case p.Share == "":
		return "answer " + string(o)
	case p.Path == "":
		return fmt.Sprintf("answer %s of %s", o, quote.Path(p.Share))
	default:
		return fmt.Sprintf("answer %s of %s", o, quote.Path(p.Share+"/"+p.Path))
	}
}

// logStall says that the running request is given up because the share does not answer.
func (c *connection) logStall(calls *job.Calls) {
	c.mu.Lock()
	request := *c.request
	c.mu.Unlock()
	_, still := calls.Calling()
	c.log.Warn().Msgf("%sthe daemon waits for the file system of the share to %s; asked %s ago, last progress %s ago",
		job.Stall, answering(request.Operation, protocol.Place{Share: request.Share, Path: request.Path}),
		job.Age(time.Since(request.Began)), job.Age(still))
}
