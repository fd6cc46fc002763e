package serve

import (
	"errors"
	"io"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/service"
)

// sessionLog logs what a daemon does, and prints the texts of pings.
type sessionLog struct {
	log    zerolog.Logger
	stdout io.Writer
}

var _ service.Observer = (*sessionLog)(nil)

func (l *sessionLog) with(e *zerolog.Event, s service.Session) *zerolog.Event {
	return e.Uint64("connection", s.ID).Str("function", s.Function).Str("key", s.KeyName)
}

// of is with for a request. The name that a command gives itself is an unchecked claim.
func (l *sessionLog) of(e *zerolog.Event, r service.Record) *zerolog.Event {
	e = l.with(e, r.Session).Uint64("request", r.Request).Str("operation", string(r.Operation)).
		Str("share", quote.Printable(r.Share)).Str("path", quote.Printable(r.Path)).
		Str("claimed_machine", r.Session.Machine).Str("claimed_user", r.Session.User)
	if r.Local != "" {
		e = e.Str("claimed_file", quote.Printable(r.Local))
	}
	if r.DryRun {
		e = e.Bool("dry_run", true)
	}
	return e
}

func (l *sessionLog) Connected(s service.Session) {
	l.with(l.log.Debug(), s).Msg("a peer has connected")
}

func (l *sessionLog) Authenticated(s service.Session) {
	l.with(l.log.Info(), s).Str("fingerprint", s.Fingerprint).Str("software", s.Software).
		Str("claimed_machine", s.Machine).Str("claimed_user", s.User).Msg("a peer is connected")
}

func (l *sessionLog) Refused(s service.Session, code int, reason error) {
	l.with(l.log.Warn(), s).Str("fingerprint", s.Fingerprint).Int("code", code).AnErr("error", printable(reason)).
		Msg("a peer was refused")
}

func (l *sessionLog) Began(r service.Record) {
	l.of(l.log.Debug(), r).Msg("request received")
}

func (l *sessionLog) Ended(r service.Record) {
	if r.Text != "" {
		l.print(r.Session, r.Text)
	}
	event := l.log.Info()
	switch {
	case r.Err != nil:
		event = l.log.Warn()
	case r.Lookup:
		event = l.log.Debug()
	}
	l.of(event, r).Int64("bytes", r.Bytes).Int64("entries", r.Entries).
		Dur("duration", r.Duration).Int("code", r.Code).AnErr("error", printable(r.Err)).Msg("request")
}

// print prints the text of a ping for the daemon's user.
func (l *sessionLog) print(s service.Session, text string) {
	who := s.KeyName
	if who == "" {
		who = "a peer"
	}
	if _, err := io.WriteString(l.stdout, who+" on "+s.Function+" says: "+quote.Printable(text)+"\n"); err != nil {
		l.log.Warn().Err(err).Msg("the text of a ping could not be printed")
	}
}

// printable returns an error without the control characters that a peer may have put into its text; nil for nil.
func printable(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(quote.Printable(err.Error()))
}

func (l *sessionLog) Disconnected(s service.Session, reason error) {
	l.with(l.log.Info(), s).AnErr("error", printable(reason)).Msg("a peer has disconnected")
}

func (l *sessionLog) Bug(s service.Session, value any, stack []byte) {
	l.with(l.log.Error(), s).Interface("panic", value).Bytes("stack", stack).
		Msg("a defect of dma-copy has ended a connection")
}
