package negotiate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ServiceVersions is the range of versions of the service protocol that this package speaks.
var ServiceVersions = Versions{Min: 1, Max: measureVersion}

// MaxServiceGreeting is how many bytes the longest GREETING of the service has. The channel's messages must not be
// shorter.
const MaxServiceGreeting = serviceGreetingSize + MaxSoftwareName + maxNames

const (
	serviceGreetingSize = 12 // without software and name
	maxNames            = 2*MaxSoftwareName + 1
	refusedSize         = 12 // without the text
)

// ServiceGreeting is the content of a GREETING of the service: who a side is.
type ServiceGreeting struct {
	Versions      Versions // that the side speaks; NewService sets it
	Version       uint8    // that the daemon has chosen; 0 from the command. The Service sets it
	Authenticates bool     // the daemon accepts trusted keys only; false from the command
	Software      string   // name and version of the program: printable ASCII, at most MaxSoftwareName bytes
	Name          string   // of the machine, for the peer's user: printable ASCII, at most MaxSoftwareName bytes
	User          string   // of the program, likewise
}

// names returns the names of machine and user as one text.
func (g ServiceGreeting) names() string {
	if g.User == "" {
		return g.Name
	}
	return g.Name + "\x00" + g.User
}

// AppendServiceGreeting appends a GREETING of the service without checking it.
func AppendServiceGreeting(dst []byte, g ServiceGreeting) []byte {
	return encode(dst, TypeServiceGreeting, &g, (*ServiceGreeting).fields)
}

// DecodeServiceGreeting decodes a GREETING of the service, of a version that this package speaks. It fails with
// ErrMalformed.
func DecodeServiceGreeting(msg []byte) (ServiceGreeting, error) {
	return decode(msg, TypeServiceGreeting, (*ServiceGreeting).fields)
}

func (g *ServiceGreeting) fields(c codec) codec {
	versionFields(&c, &g.Versions)
	integer(&c, &g.Version)
	c.bit(&g.Authenticates, "authenticates")
	both := g.names()
	software := length[uint16](&c, len(g.Software))
	names := length[uint16](&c, len(both))
	c.text(&g.Software, software)
	c.text(&both, names)
	var separated bool
	if g.Name, g.User, separated = strings.Cut(both, "\x00"); separated && g.User == "" {
		c.fail("an empty name of a user")
	}
	c.verify(g.check)
	return c
}

func versionFields(c *codec, v *Versions) {
	integer(c, &v.Min)
	integer(c, &v.Max)
}

// check checks everything that does not depend on the peer.
func (g ServiceGreeting) check() error {
	if !g.Versions.valid() {
		return malformed(TypeServiceGreeting, "versions %d to %d", g.Versions.Min, g.Versions.Max)
	}
	return firstError(
		checkPrintable(TypeServiceGreeting, "software", g.Software, MaxSoftwareName),
		checkPrintable(TypeServiceGreeting, "machine", g.Name, MaxSoftwareName),
		checkPrintable(TypeServiceGreeting, "user", g.User, MaxSoftwareName),
	)
}

// decodeServiceVersions returns the range of versions of a GREETING of the service, which every version has at the same
// place. It fails with ErrMalformed.
func decodeServiceVersions(msg []byte) (v Versions, err error) {
	c := receiving(msg, TypeServiceGreeting)
	if versionFields(&c, &v); !v.valid() {
		c.fail("versions %d to %d", v.Min, v.Max)
	}
	return v, c.failure()
}

// Refusal is the daemon's REFUSED, and the error of a command's session that it has ended.
type Refusal struct {
	Code  AbortCode // one of the constants
	Text  string    // as received, at most MaxAbortText bytes; may contain any bytes
	Final bool      // it ends the session, not only the request
}

// Error quotes the text in ASCII, so that it cannot control a terminal or start a line in a log.
func (r *Refusal) Error() string {
	return fmt.Sprintf("the daemon refused with code %d: %s", r.Code, strconv.QuoteToASCII(r.Text))
}

// appendRefused appends a REFUSED. It truncates the text to limit bytes and replaces invalid UTF-8.
func appendRefused(dst []byte, r Refusal, limit int) []byte {
	r.Text = truncateText(r.Text, limit)
	return encode(dst, TypeRefused, &r, (*Refusal).fields)
}

// DecodeRefused decodes a REFUSED. It fails with ErrMalformed.
func DecodeRefused(msg []byte) (*Refusal, error) {
	r, err := decode(msg, TypeRefused, (*Refusal).fields)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

func (r *Refusal) fields(c codec) codec {
	r.Code = r.Code.known()
	integer(&c, &r.Code)
	c.bit(&r.Final, "final")
	c.zeros(2)
	text := length[uint16](&c, len(r.Text))
	c.zeros(2)
	c.limitedText(&r.Text, text, MaxAbortText)
	r.Code = r.Code.known()
	return c
}

// AppendClose appends a CLOSE: the native session of its sender has ended.
func AppendClose(dst []byte) []byte { return appendEmpty(dst, TypeClose) }

// DecodeClose decodes a CLOSE. It fails with ErrMalformed.
func DecodeClose(msg []byte) error { return decodeEmpty(msg, TypeClose) }

// AppendWorking appends a WORKING. ahead is the number of requests that the daemon serves first; 0: it serves this one.
func AppendWorking(dst []byte, ahead uint32) []byte {
	c := sending(dst, TypeWorking)
	integer(&c, &ahead)
	return c.all()
}

// DecodeWorking decodes a WORKING. It fails with ErrMalformed.
func DecodeWorking(msg []byte) (ahead uint32, err error) {
	c := receiving(msg, TypeWorking)
	integer(&c, &ahead)
	return ahead, c.end()
}

// The reasons for the end of a Service, besides those of the other sessions and a *Refusal.
var (
	// ErrServiceVersion is a command and a daemon that have no version of the service protocol in common.
	ErrServiceVersion = errors.New("no common version of the service protocol")
	// ErrServiceLost is the end of the connection before that of a request, or before the daemon's GREETING.
	ErrServiceLost = errors.New("the connection was lost before the request ended")
)

func noCommonServiceVersion(role ServiceRole, own, peer Versions) *Error {
	return &Error{Message: TypeServiceGreeting, Err: ErrServiceVersion,
		Detail: fmt.Sprintf("the %s supports %s, the %s %s", role, own, role.Other(), peer)}
}
