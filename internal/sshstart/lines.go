// Package sshstart starts the far side of a copy with the system's ssh program: dma-copy agent on the other machine,
// for one command. Over stdin and stdout of ssh both sides exchange one line of JSON each, with keys that exist in
// memory only. The copy then goes over connections of its own, or through further processes of ssh. The package knows
// no command and no protocol of a copy.
package sshstart

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// version is the version of the lines. A side refuses any other.
const version = 1

// The bounds of a line.
const (
	maxLine      = 16 << 10 // bytes, with the line break
	maxAddresses = 16
	maxText      = 2 << 10 // bytes of an error
)

// Request is what the far side is started for.
type Request struct {
	Key       identity.Public // the only key that is served
	Directory string          // absolute, or "~" or "~/..." for the home directory
	Access    share.Access    // that the key has in the directory
	Create    bool            // the directory may be missing, with those above it
	Path      string          // of file data, as serve --path takes it
}

// Answer is how the far side can be reached.
type Answer struct {
	Key       identity.Public
	Port      uint16       // TCP, at Addresses and at 127.0.0.1
	Addresses []netip.Addr // of that machine, the most likely first
}

// requestLine and answerLine are the lines. Fields are only ever added.
type requestLine struct {
	Version   int    `json:"v"`
	Key       string `json:"key"`
	Directory string `json:"directory"`
	Access    string `json:"access"`
	Create    bool   `json:"create,omitempty"`
	Path      string `json:"path"`
}

type answerLine struct {
	Version   int      `json:"v"`
	Key       string   `json:"key,omitempty"`
	Port      uint16   `json:"port,omitempty"`
	Addresses []string `json:"addresses,omitempty"`

	Code  int    `json:"code,omitempty"` // why nothing is served, as an exit code
	Error string `json:"error,omitempty"`
}

// ReadRequest reads the line of the client, on the far side. Errors have the code exit.Protocol.
func ReadRequest(from io.Reader) (r Request, err error) {
	var line requestLine
	if err := readLine(from, &line, &line.Version); err != nil {
		return r, exit.Errorf(exit.Protocol, "", "the request of the client: %w", err)
	}
	r = Request{Directory: line.Directory, Create: line.Create, Path: line.Path}
	if r.Key, _, err = identity.ParsePublic(line.Key); err == nil {
		r.Access, err = share.ParseAccess(line.Access)
	}
	first, _, _ := strings.Cut(r.Directory, "/")
	if err == nil && (first != "" && first != "~" || r.Directory == "" || strings.ContainsRune(r.Directory, 0)) {
		err = fmt.Errorf("%s is not an absolute path", quote.Text(r.Directory))
	}
	if err != nil {
		return r, exit.Errorf(exit.Protocol, "", "the request of the client: %w", err)
	}
	return r, nil
}

// Write writes the line of the far side.
func (a Answer) Write(to io.Writer) error {
	line := answerLine{Version: version, Key: a.Key.String(), Port: a.Port}
	for _, each := range a.Addresses[:min(len(a.Addresses), maxAddresses)] {
		line.Addresses = append(line.Addresses, each.String())
	}
	return writeLine(to, line)
}

// WriteFailure writes the line of a far side that serves nothing.
func WriteFailure(to io.Writer, failure error) error {
	text := failure.Error()
	if hint := exit.Hint(failure); hint != "" {
		text += " (" + hint + ")"
	}
	return writeLine(to, answerLine{
		Version: version, Code: exit.Code(failure), Error: strings.ToValidUTF8(text[:min(len(text), maxText)], ""),
	})
}

func (r Request) write(to io.Writer) error {
	return writeLine(to, requestLine{version, r.Key.String(), r.Directory, r.Access.String(), r.Create, r.Path})
}

// readAnswer reads the line of the far side on a machine. The error of a far side that serves nothing has its code.
func readAnswer(from io.Reader, machine string) (a Answer, err error) {
	var line answerLine
	if err := readLine(from, &line, &line.Version); err != nil {
		return a, err
	}
	if line.Error != "" {
		code := line.Code
		if code <= exit.OK || code > exit.Limit || code == 2 {
			code = exit.Failure
		}
		return a, exit.Errorf(code, "", "dma-copy on %s: %s", machine, line.Error[:min(len(line.Error), maxText)])
	}
	if a.Key, _, err = identity.ParsePublic(line.Key); err != nil {
		return a, err
	}
	if a.Port = line.Port; a.Port == 0 || len(line.Addresses) > maxAddresses {
		return a, errors.New("it has no port, or too many addresses")
	}
	for _, text := range line.Addresses {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" {
			return a, fmt.Errorf("%s is not an IP address", quote.Text(text))
		}
		a.Addresses = append(a.Addresses, address)
	}
	return a, nil
}

func writeLine(to io.Writer, line any) error {
	text, err := json.Marshal(line)
	if err == nil {
		_, err = to.Write(append(text, '\n'))
	}
	return err
}

// readLine reads one line of a bounded size, into a struct with this field for the version. It may read further.
func readLine(from io.Reader, into any, received *int) error {
	text, err := bufio.NewReaderSize(from, maxLine).ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return fmt.Errorf("the line is longer than %d bytes", maxLine)
	case len(text) == 0 && err != nil:
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s is not a line of dma-copy", quote.Text(strings.TrimSpace(string(text))))
	}
	if *received != version {
		return fmt.Errorf("it has version %d, and this side version %d: install the same dma-copy on both sides",
			*received, version)
	}
	return nil
}
