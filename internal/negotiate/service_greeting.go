package negotiate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ServiceVersions is the range of versions of the service protocol that this package speaks.
var ServiceVersions = Versions{Min: 1, Max: 1}

// MaxServiceGreeting is how many bytes the longest GREETING of the service has. The channel's messages must not be
// shorter.
const MaxServiceGreeting = serviceGreetingSize + MaxSoftwareName + maxNames

const (
	serviceGreetingSize = 12 // without software and name
	serviceVersionsSize = 8  // the part of it that all versions have
	maxNames            = 2*MaxSoftwareName + 1
	refusedSize         = 12 // without the text
	closeSize           = 8
	workingSize         = 8

	greetingAuthenticates = 1 // the only flag of a GREETING
	refusedFinal          = 1 // the only flag of a REFUSED
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
	dst = append(appendType(dst, TypeServiceGreeting), g.Versions.Min, g.Versions.Max, g.Version,
		greetingAuthenticates*wireBool(g.Authenticates))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(g.Software)))
	names := g.names()
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(names)))
	return append(append(dst, g.Software...), names...)
}

// DecodeServiceGreeting decodes a GREETING of the service, of a version that this package speaks. It fails with
// ErrMalformed.
func DecodeServiceGreeting(msg []byte) (ServiceGreeting, error) {
	if err := checkType(msg, TypeServiceGreeting, serviceGreetingSize); err != nil {
		return ServiceGreeting{}, err
	}
	software, names := int(binary.BigEndian.Uint16(msg[8:])), int(binary.BigEndian.Uint16(msg[10:]))
	if err := checkTail(msg, TypeServiceGreeting, serviceGreetingSize, uint64(software+names)); err != nil {
		return ServiceGreeting{}, err
	}
	if unknown := msg[7] &^ greetingAuthenticates; unknown != 0 {
		return ServiceGreeting{}, malformed(TypeServiceGreeting, "unknown flags %#x", unknown)
	}
	text := msg[serviceGreetingSize:]
	g := ServiceGreeting{
		Versions: Versions{Min: msg[4], Max: msg[5]}, Version: msg[6], Authenticates: msg[7] == greetingAuthenticates,
	}
	if software > MaxSoftwareName || names > maxNames {
		return ServiceGreeting{}, malformed(TypeServiceGreeting, "names of %d and %d bytes, limits %d and %d", software,
			names, MaxSoftwareName, maxNames)
	}
	g.Software = string(text[:software])
	name, user, both := strings.Cut(string(text[software:]), "\x00")
	if both && user == "" {
		return ServiceGreeting{}, malformed(TypeServiceGreeting, "an empty name of a user")
	}
	g.Name, g.User = name, user
	if err := g.check(); err != nil {
		return ServiceGreeting{}, err
	}
	return g, nil
}

// check checks everything that does not depend on the peer.
func (g ServiceGreeting) check() error {
	if !g.Versions.valid() {
		return malformed(TypeServiceGreeting, "versions %d to %d", g.Versions.Min, g.Versions.Max)
	}
	for _, text := range [...]string{g.Software, g.Name, g.User} {
		if len(text) > MaxSoftwareName {
			return malformed(TypeServiceGreeting, "a name of %d bytes, limit %d", len(text), MaxSoftwareName)
		}
		for _, octet := range []byte(text) {
			if octet < ' ' || octet > '~' {
				return malformed(TypeServiceGreeting, "byte %#x in a name", octet)
			}
		}
	}
	return nil
}

// decodeServiceVersions returns the range of versions of a GREETING of the service, which every version has at the same
// place. It fails with ErrMalformed.
func decodeServiceVersions(msg []byte) (Versions, error) {
	if err := checkType(msg, TypeServiceGreeting, serviceVersionsSize); err != nil {
		return Versions{}, err
	}
	v := Versions{Min: msg[4], Max: msg[5]}
	if !v.valid() {
		return Versions{}, malformed(TypeServiceGreeting, "versions %d to %d", v.Min, v.Max)
	}
	return v, nil
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

// AppendRefused appends a REFUSED. It truncates the text to MaxAbortText bytes and replaces invalid UTF-8.
func AppendRefused(dst []byte, r Refusal) []byte { return appendRefused(dst, r, MaxAbortText) }

func appendRefused(dst []byte, r Refusal, limit int) []byte {
	text := truncateText(r.Text, limit)
	dst = append(appendType(dst, TypeRefused), byte(r.Code.known()), refusedFinal*wireBool(r.Final), 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(text)))
	return append(appendPadding(dst, 2), text...)
}

// DecodeRefused decodes a REFUSED. It fails with ErrMalformed.
func DecodeRefused(msg []byte) (*Refusal, error) {
	if err := checkType(msg, TypeRefused, refusedSize); err != nil {
		return nil, err
	}
	err := firstError(
		checkTail(msg, TypeRefused, refusedSize, uint64(binary.BigEndian.Uint16(msg[8:]))),
		checkPadding(TypeRefused, msg[6:8]),
		checkPadding(TypeRefused, msg[10:12]),
	)
	if err != nil {
		return nil, err
	}
	if unknown := msg[5] &^ refusedFinal; unknown != 0 {
		return nil, malformed(TypeRefused, "unknown flags %#x", unknown)
	}
	if len(msg) > refusedSize+MaxAbortText {
		return nil, malformed(TypeRefused, "a text of %d bytes, limit %d", len(msg)-refusedSize, MaxAbortText)
	}
	return &Refusal{Code: AbortCode(msg[4]).known(), Text: string(msg[refusedSize:]), Final: msg[5] != 0}, nil
}

// AppendClose appends a CLOSE: the native session of its sender has ended.
func AppendClose(dst []byte) []byte {
	return appendPadding(appendType(dst, TypeClose), closeSize-typeSize)
}

// DecodeClose decodes a CLOSE. It fails with ErrMalformed.
func DecodeClose(msg []byte) error {
	if err := checkFixed(msg, TypeClose, closeSize); err != nil {
		return err
	}
	return checkPadding(TypeClose, msg[typeSize:])
}

// AppendWorking appends a WORKING. ahead is the number of requests that the daemon serves first; 0: it serves this one.
func AppendWorking(dst []byte, ahead uint32) []byte {
	return binary.BigEndian.AppendUint32(appendType(dst, TypeWorking), ahead)
}

// DecodeWorking decodes a WORKING. It fails with ErrMalformed.
func DecodeWorking(msg []byte) (ahead uint32, err error) {
	if err := checkFixed(msg, TypeWorking, workingSize); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(msg[4:]), nil
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
