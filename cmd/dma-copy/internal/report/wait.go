package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/background"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Wait is what a side waits for before it can copy.
type Wait struct {
	For   string        // such as "the DPU"
	Limit time.Duration // --wait; 0: not known
	Start []string      // what to start there, from the longest form to the shortest; empty: not known
}

// waitFor returns the wait of a path, which need not name one.
func waitFor(path Path) Wait {
	w := path.Wait
	if w.For == "" {
		w.For = "the " + path.Side.Other().String()
	}
	return w
}

// lines returns the line about a wait that has lasted some time, from the longest form to the shortest.
func (w Wait) lines(lasted time.Duration) []string {
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

// show shows on a screen the longest form that fits.
func (w Wait) show(screen *Screen, lasted time.Duration) {
	for _, line := range w.lines(lasted) {
		if len(line) <= screen.width()-interruptWidth {
			screen.show(line)
			return
		}
	}
}

// Waiting shows on a screen that the process waits, if that takes longer than a moment, and answers each signal of
// asked with a line on out, until stop is called. Without a screen, lines gets a line every lineInterval; nil: none.
func Waiting(w Wait, screen *Screen, lines, out io.Writer, asked <-chan os.Signal) (stop func()) {
	began := time.Now()
	if screen == nil && lines != nil {
		return background.Run(func(quit <-chan struct{}) {
			ticker := time.NewTicker(lineInterval)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
					fmt.Fprintln(lines, w.lines(time.Since(began))[0])
				case <-asked:
					fmt.Fprintln(out, w.lines(time.Since(began))[0])
				case <-quit:
					return
				}
			}
		})
	}
	if screen == nil {
		return background.Answer(asked, func() { fmt.Fprintln(out, w.lines(time.Since(began))[0]) })
	}
	return background.Run(func(quit <-chan struct{}) {
		ticker := time.NewTicker(barInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				w.show(screen, time.Since(began))
			case <-asked:
				fmt.Fprintln(out, w.lines(time.Since(began))[0])
			case <-quit:
				screen.show("")
				return
			}
		}
	})
}

// WaitForPeer returns the wait of a copy without a daemon for the other side, whose device address or name is known
// only as far as this side has it: host is the PCI address of the host function, empty if it is not known. file is the
// file of this side.
func WaitForPeer(side negotiate.Side, host, file string, limit time.Duration) Wait {
	return Wait{
		For: "the " + side.Other().String(), Limit: limit,
		Start: startThere(side, host, "dma-copy", " -f "+fileThere(file)),
	}
}

// fileThere proposes a name for the file of the other side, quoted for a shell.
func fileThere(file string) string {
	name := filepath.Base(file)
	if file == "" || slices.Contains([]string{config.Stream, ".", "..", "/"}, name) || quote.Printable(name) != name {
		return "FILE"
	}
	if !plainName.MatchString(name) {
		name = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	if name[0] == '-' {
		name = "./" + name
	}
	return name
}

// plainName matches names that a shell takes as they are.
var plainName = regexp.MustCompile(`^[\w.,:@%+=-]+$`)

// WaitForPing is WaitForPeer for a ping without a daemon.
func WaitForPing(side negotiate.Side, host string, limit time.Duration) Wait {
	w := WaitForPeer(side, host, "", limit)
	w.Start = startThere(side, host, "dma-copy ping", "")
	return w
}

// WaitForDaemon returns the wait of a command for the daemon on the other side of a device, or at an address. host is
// as for WaitForPeer.
func WaitForDaemon(side negotiate.Side, host, address string, limit time.Duration) Wait {
	const share = " --share NAME=DIR"
	if address != "" {
		start := []string{"dma-copy serve --listen " + listenThere(address) + share}
		return Wait{For: "the daemon at " + address, Limit: limit, Start: start}
	}
	return Wait{
		For: "the daemon on the " + side.Other().String(), Limit: limit,
		Start: startThere(side, host, "dma-copy serve", share),
	}
}

// listenThere returns the address to listen on for commands that connect to an address: all of that machine unless
// they connect to their own.
func listenThere(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "ADDRESS:PORT"
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return address
	}
	return ":" + port
}

// startThere returns a command for the other side, with what is behind its device, from the longest form to the
// shortest.
func startThere(side negotiate.Side, host, command, behind string) []string {
	switch {
	case side == negotiate.Host:
		host = cmp.Or(host, "DEVICE")
		return []string{command + " -p DEVICE -r " + host + behind, command + " -r " + host + behind}
	case host == "":
		return []string{command + " -p DEVICE" + behind}
	default:
		return []string{command + " -p " + host + behind}
	}
}
