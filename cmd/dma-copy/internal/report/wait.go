package report

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/background"
	"github.com/dma-copy/dma-copy/internal/negotiate"
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
// asked with a line on out, until stop is called. A nil screen shows nothing.
func Waiting(w Wait, screen *Screen, out io.Writer, asked <-chan os.Signal) (stop func()) {
	began := time.Now()
	return background.Run(func(quit <-chan struct{}) {
		ticker := time.NewTicker(barInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if screen != nil {
					w.show(screen, time.Since(began))
				}
			case <-asked:
				fmt.Fprintln(out, w.lines(time.Since(began))[0])
			case <-quit:
				if screen != nil {
					screen.show("")
				}
				return
			}
		}
	})
}

// WaitForPeer returns the wait of a copy without a daemon for the other side, whose device address or name is known
// only as far as this side has it: host is the PCI address of the host function, empty if it is not known.
func WaitForPeer(side negotiate.Side, host string, limit time.Duration) Wait {
	w := Wait{For: "the " + side.Other().String(), Limit: limit}
	switch {
	case side == negotiate.Host:
		w.Start = []string{
			"dma-copy -p DEVICE -r " + host + " -f FILE", "dma-copy -r " + host + " -f FILE",
		}
	case host == "":
		w.Start = []string{"dma-copy -p DEVICE -f FILE"}
	default:
		w.Start = []string{"dma-copy -p " + host + " -f FILE"}
	}
	return w
}

// WaitForDaemon returns the wait of a command for the daemon on the other side of a device, or at an address. host is
// as for WaitForPeer.
func WaitForDaemon(side negotiate.Side, host, address string, limit time.Duration) Wait {
	const share = " --share NAME=DIR"
	w := Wait{For: "the daemon on the " + side.Other().String(), Limit: limit}
	switch {
	case address != "":
		w.For, w.Start = "the daemon at "+address, []string{"dma-copy serve --listen ADDRESS:PORT" + share}
	case side == negotiate.Host:
		w.Start = []string{"dma-copy serve -p DEVICE -r " + host + share, "dma-copy serve -r " + host + share}
	case host == "":
		w.Start = []string{"dma-copy serve -p DEVICE" + share}
	default:
		w.Start = []string{"dma-copy serve -p " + host + share}
	}
	return w
}
