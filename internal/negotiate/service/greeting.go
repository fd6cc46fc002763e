package service

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Supported is the range of versions of the service protocol that this package speaks.
var Supported = wire.Versions{Min: 1, Max: boundsVersion}

// MaxGreeting is how many bytes the longest GREETING of the service has. The channel's messages must not be
// shorter.
const MaxGreeting = greetingSize + wire.MaxSoftwareName + maxNames

const (
	greetingSize = 12 // without software and name
	maxNames     = 2*wire.MaxSoftwareName + 1
	refusedSize  = 12 // without the text
)

// Greeting is the content of a GREETING of the service: who a side is.
type Greeting struct {
	Versions      wire.Versions // that the side speaks; New sets it
	Version       uint8         // that the daemon has chosen; 0 from the command. The Session sets it
	Authenticates bool          // the daemon accepts trusted keys only; false from the command
	Software      string        // name and version of the program: printable ASCII, at most MaxSoftwareName bytes
	Name          string        // of the machine, for the peer's user: printable ASCII, at most MaxSoftwareName bytes
	User          string        // of the program, likewise
}

// names returns the names of machine and user as one text.
func (g Greeting) names() string {
	if g.User == "" {
		return g.Name
	}
	return g.Name + "\x00" + g.User
}

// AppendGreeting appends a GREETING of the service without checking it.
func AppendGreeting(dst []byte, g Greeting) []byte {
	return wire.Encode(dst, wire.TypeGreeting, &g, (*Greeting).fields)
}

func (g *Greeting) fields(c wire.Codec) wire.Codec {
	versionFields(&c, &g.Versions)
	wire.Integer(&c, &g.Version)
	c.Bit(&g.Authenticates, "authenticates")
	both := g.names()
	software := wire.Length[uint16](&c, len(g.Software))
	names := wire.Length[uint16](&c, len(both))
	c.Text(&g.Software, software)
	c.Text(&both, names)
	var separated bool
	if g.Name, g.User, separated = strings.Cut(both, "\x00"); separated && g.User == "" {
		c.Fail("an empty name of a user")
	}
	c.Verify(g.check)
	return c
}

func versionFields(c *wire.Codec, v *wire.Versions) {
	wire.Integer(c, &v.Min)
	wire.Integer(c, &v.Max)
}

// check checks everything that does not depend on the peer.
func (g Greeting) check() error {
	if !g.Versions.Valid() {
		return wire.Malformed(wire.TypeGreeting, "versions %d to %d", g.Versions.Min, g.Versions.Max)
	}
	return wire.FirstError(
		wire.CheckPrintable(wire.TypeGreeting, "software", g.Software, wire.MaxSoftwareName),
		wire.CheckPrintable(wire.TypeGreeting, "machine", g.Name, wire.MaxSoftwareName),
		wire.CheckPrintable(wire.TypeGreeting, "user", g.User, wire.MaxSoftwareName),
	)
}

// decodeVersions returns the range of versions of a GREETING of the service, which every version has at the same
// place. It fails with ErrMalformed.
func decodeVersions(msg []byte) (v wire.Versions, err error) {
	c := wire.Receiving(msg, wire.TypeGreeting)
	if versionFields(&c, &v); !v.Valid() {
		c.Fail("versions %d to %d", v.Min, v.Max)
	}
	return v, c.Failure()
}

// Refusal is the daemon's REFUSED, and the error of a command's session that it has ended.
type Refusal struct {
	Code  wire.AbortCode // one of the constants
	Text  string         // as received, at most MaxAbortText bytes; may contain any bytes
	Final bool           // it ends the session, not only the request
}

// Error quotes the text in ASCII, so that it cannot control a terminal or start a line in a log.
func (r *Refusal) Error() string {
	return fmt.Sprintf("the daemon refused with code %d: %s", r.Code, strconv.QuoteToASCII(r.Text))
}

// ExitCode returns the code with which the program ends.
func (r *Refusal) ExitCode() int { return int(r.Code) }

// Hint returns nothing: the text has the next step.
func (r *Refusal) Hint() string { return "" }

// AppendRefused appends a REFUSED of at most maxMessage bytes. It truncates the text and replaces invalid UTF-8.
func AppendRefused(dst []byte, r Refusal, maxMessage int) []byte {
	r.Text = wire.TruncateText(r.Text, min(wire.MaxAbortText, maxMessage-refusedSize))
	return wire.Encode(dst, wire.TypeRefused, &r, (*Refusal).fields)
}

// DecodeRefused decodes a REFUSED. It fails with ErrMalformed.
func DecodeRefused(msg []byte) (*Refusal, error) {
	r, err := wire.Decode(msg, wire.TypeRefused, (*Refusal).fields)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

func (r *Refusal) fields(c wire.Codec) wire.Codec {
	r.Code = r.Code.Known()
	wire.Integer(&c, &r.Code)
	c.Bit(&r.Final, "final")
	c.Zeros(2)
	text := wire.Length[uint16](&c, len(r.Text))
	c.Zeros(2)
	c.LimitedText(&r.Text, text, wire.MaxAbortText)
	r.Code = r.Code.Known()
	return c
}

// AppendWorking appends a WORKING. ahead is the number of requests that the daemon serves first; 0: it serves this one.
func AppendWorking(dst []byte, ahead uint32) []byte {
	c := wire.Sending(dst, wire.TypeWorking)
	wire.Integer(&c, &ahead)
	return c.Bytes()
}

// DecodeWorking decodes a WORKING. It fails with ErrMalformed.
func DecodeWorking(msg []byte) (ahead uint32, err error) {
	c := wire.Receiving(msg, wire.TypeWorking)
	wire.Integer(&c, &ahead)
	return ahead, c.End()
}

// The reasons for the end of a Session, in addition to the other sessions' reasons and a *Refusal.
var (
	// ErrVersion is a command and a daemon that have no version of the service protocol in common.
	ErrVersion = wire.DetailedReason(wire.AbortProtocol,
		"run releases of dma-copy with a common version of it on both sides",
		"no common version of the service protocol")
	// ErrLost is the end of the connection before a request's end, or before the daemon's GREETING.
	ErrLost = errors.New("the connection was lost before the request ended")
)

func noCommonVersion(role Role, own, peer wire.Versions) *wire.Error {
	return &wire.Error{Message: wire.TypeGreeting, Err: ErrVersion,
		Detail: fmt.Sprintf("the %s supports %s, the %s %s", role, own, role.Other(), peer)}
}
