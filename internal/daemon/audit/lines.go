package audit

import (
	"bytes"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/service"
)

var _ service.Observer = (*Log)(nil)

// version is the version of docs/audit.schema.json. Within it fields are only added.
const version = 1

// line queues a line of one type with the fields that add adds.
func (l *Log) line(kind string, add func(*zerolog.Event)) { l.append(l.encode(kind, add)) }

func (l *Log) encode(kind string, add func(*zerolog.Event)) []byte {
	var text bytes.Buffer
	encoder := zerolog.New(&text)
	line := encoder.Log().Int("v", version).Str("type", kind).Str("time", l.now().UTC().Format(time.RFC3339Nano))
	add(line)
	line.Send()
	return text.Bytes()
}

func (l *Log) lostLine(lost int64) []byte {
	return l.encode("lost", func(line *zerolog.Event) { line.Int64("lines", lost) })
}

// Connected implements service.Observer. Connections have no line: Authenticated or Refused follows.
func (l *Log) Connected(service.Session) {}

// Authenticated implements service.Observer.
func (l *Log) Authenticated(s service.Session) {
	l.line("session", func(line *zerolog.Event) {
		addSession(line, s)
		line.Str("software", quote.Printable(s.Software))
		addClaim(line, "claimed_machine", s.Machine)
		addClaim(line, "claimed_user", s.User)
	})
}

// Refused implements service.Observer.
func (l *Log) Refused(s service.Session, code int, reason error) {
	l.line("refused", func(line *zerolog.Event) {
		addSession(line, s)
		line.Int("code", code)
		addError(line, reason)
	})
}

// Began implements service.Observer. A request has its line when it has ended.
func (l *Log) Began(service.Record) {}

// Ended implements service.Observer.
func (l *Log) Ended(r service.Record) {
	l.line("request", func(line *zerolog.Event) {
		addSession(line, r.Session)
		line.Uint64("request", r.Request).Str("operation", string(r.Operation))
		if r.Operation.HasPlace() {
			line.Str("share", quote.Path(r.Share)).Str("path", quote.Path(r.Path))
		}
		addClaim(line, "claimed_machine", r.Session.Machine)
		addClaim(line, "claimed_user", r.Session.User)
		addClaim(line, "claimed_file", r.Local)
		if r.DryRun {
			line.Bool("dry_run", true)
		}
		line.Int64("bytes", r.Bytes).Int64("entries", r.Entries)
		if r.Operation == service.Remove {
			line.Strs("removed", quotePaths(r.Removed))
		}
		if r.DataPath != "" {
			line.Str("data_path", r.DataPath).Bool("encrypted", r.Encrypted)
		}
		if r.Summary.Sum.Algorithm() != digest.None {
			line.Stringer("digest", r.Summary.Sum)
		}
		line.Float64("seconds", r.Duration.Seconds()).Float64("waited_seconds", r.Waited.Seconds()).Int("code", r.Code)
		addError(line, r.Err)
	})
}

// quotePaths is quote.Path for each of the paths. It never returns nil, which would be null.
func quotePaths(paths []string) []string {
	quoted := make([]string, len(paths))
	for i, path := range paths {
		quoted[i] = quote.Path(path)
	}
	return quoted
}

// Disconnected implements service.Observer.
func (l *Log) Disconnected(s service.Session, reason error) {
	l.line("end", func(line *zerolog.Event) {
		addSession(line, s)
		addError(line, reason)
	})
}

// Bug implements service.Observer. The stack is for the program's log, not for this one.
func (l *Log) Bug(s service.Session, _ any, _ []byte) {
	l.line("bug", func(line *zerolog.Event) { addSession(line, s) })
}

// addSession adds who the peer is, as far as that is known.
func addSession(line *zerolog.Event, s service.Session) {
	line.Uint64("session", s.ID).Str("function", quote.Printable(s.Function))
	if s.Fingerprint != "" {
		line.Str("fingerprint", quote.Printable(s.Fingerprint))
	}
	if s.KeyName != "" {
		line.Str("key", quote.Printable(s.KeyName))
	}
}

// addClaim adds what the command says about itself, which nobody has checked; empty: nothing.
func addClaim(line *zerolog.Event, name, text string) {
	if text != "" {
		line.Str(name, quote.Path(text))
	}
}

// addError adds the reason of a failure, whose text may quote the peer.
func addError(line *zerolog.Event, err error) {
	if err != nil {
		line.Str("error", quote.Printable(err.Error()))
	}
}
