package report

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Wait is what a side waits for before it can copy.
type Wait struct {
	For   string        // such as "the DPU"
	Limit time.Duration // --wait; 0: not known
	Start []string      // what to start there, from the longest form to the shortest; empty: not known
}

// WaitOf returns the wait of a path, which need not name one.
func WaitOf(path Path) Wait {
	w := path.Wait
	if w.For == "" {
		w.For = "the " + path.Side.Other().String()
	}
	return w
}

// Lines returns the line about a wait that has lasted some time, from the longest form to the shortest.
func (w Wait) Lines(lasted time.Duration) []string {
	short := "waiting for " + w.For
	if w.Limit == 0 {
		return []string{short}
	}
	timed := fmt.Sprintf("%s (%s of %s)", short, min(lasted, w.Limit).Truncate(time.Second), shortDuration(w.Limit))
	var forms []string
	for _, command := range w.Start {
		forms = append(forms, timed+": start there: "+command)
	}
	return append(forms, timed, short)
}

// shortDuration leaves out what is zero at the end: 1h for 1h0m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// NextStep returns what to do if the other side has not come.
func (w Wait) NextStep() string { return "raise --wait, or start there: " + w.Start[0] }

// Explain names what to start there in the error of a side that has met nobody.
func (w Wait) Explain(err error) error {
	if len(w.Start) == 0 || !errors.Is(err, comch.ErrPeerAbsent) {
		return err
	}
	return exit.Errorf(exit.Peer, w.NextStep(), "%w", err)
}

// WaitForPeer returns the wait of a copy without a daemon for the other side, whose device address or name is known
// only as far as this side has it: host is the PCI address of the host function, empty if it is not known. file is the
// file of this side, and word what both sides must be given, empty for nothing.
func WaitForPeer(side wire.Side, host, file, word string, limit time.Duration) Wait {
	behind := " -f " + fileThere(file)
	if word != "" {
		behind += " --with=" + shellQuoted(word, "WORD")
	}
	return Wait{
		For: "the " + side.Other().String(), Limit: limit, Start: startThere(side, host, "dma-copy", behind),
	}
}

// fileThere proposes a name for the file of the other side, quoted for a shell.
func fileThere(file string) string {
	name := filepath.Base(file)
	if file == "" || slices.Contains([]string{job.StreamName, ".", "..", "/"}, name) {
		return "FILE"
	}
	if name[0] == '-' {
		name = "./" + name
	}
	return shellQuoted(name, "FILE")
}

// shellQuoted quotes a text for a shell. One that would not be shown as it is, is replaced by a placeholder.
func shellQuoted(text, placeholder string) string {
	switch {
	case quote.Printable(text) != text:
		return placeholder
	case plainWord.MatchString(text):
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// plainWord matches what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[\w.,:@%+=/-]+$`)

// WaitForCommand returns the wait of a command that both sides run, such as "dma-copy ping", for the same command on
// the other side.
func WaitForCommand(side wire.Side, host, command string, limit time.Duration) Wait {
	w := WaitForPeer(side, host, "", "", limit)
	w.Start = startThere(side, host, command, "")
	return w
}

// WaitForDaemon returns the wait of a command for the daemon on the other side of a device, or at an address. host is
// as for WaitForPeer. anonymous says that nobody is authenticated.
func WaitForDaemon(side wire.Side, host, address string, anonymous bool, limit time.Duration) Wait {
	behind := " --share NAME=DIR"
	if anonymous {
		behind = " --auth none" + behind
	}
	if address != "" {
		start := []string{"dma-copy serve --listen " + listenThere(address) + behind}
		return Wait{For: "the daemon at " + address, Limit: limit, Start: start}
	}
	return Wait{
		For: "the daemon on the " + side.Other().String(), Limit: limit,
		Start: startThere(side, host, "dma-copy serve", behind),
	}
}

// listenThere returns the address to listen on for commands that connect to an address: all of that machine unless
// they connect to their own.
func listenThere(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "ADDRESS:PORT"
	}
	if host == "localhost" {
		return net.JoinHostPort("127.0.0.1", port) // a daemon listens on addresses, not on names
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return address
	}
	return ":" + port
}

// startThere returns a command for the other side, with what is behind its device, from the longest form to the
// shortest.
func startThere(side wire.Side, host, command, behind string) []string {
	switch {
	case side == wire.Host:
		host = cmp.Or(host, "DEVICE")
		return []string{command + " -p DEVICE -r " + host + behind, command + " -r " + host + behind}
	case host == "":
		return []string{command + " -p DEVICE" + behind}
	default:
		return []string{command + " -p " + host + behind}
	}
}
