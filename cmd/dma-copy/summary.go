package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// writeSummary prints what a successful copy did, and over which path the bytes went. It claims no more than this side
// knows: the reference's protocol compares no bytes and tells a sender nothing of durability. why is empty unless the driver
// was chosen for the user.
func writeSummary(w io.Writer, s dmaxfer.Summary, side negotiate.Side, driver *doca.Driver, why string) {
	fmt.Fprintf(w, "ok    %s %s  %s in %s%s\n", verb(s), escapeUnprintable(s.Path), humanize.IBytes(uint64(s.Size)),
		round(s.Elapsed), rate(s))
	fmt.Fprintf(w, "      not verified (reference protocol), %s\n", durability(s, side))
	fmt.Fprintf(w, "path  %s%s\n", pathOf(driver), shapeOf(s))
	if why != "" {
		fmt.Fprintf(w, "why   %s\n", escapeUnprintable(why))
	}
}

// choiceOf is why the program chose this driver, without the particulars, which the log has; empty if the user chose.
func choiceOf(driver *doca.Driver, s settings) string {
	if s.Driver != driverAuto {
		return ""
	}
	reason, _, _ := strings.Cut(driver.Reason(), ": ")
	return reason
}

func verb(s dmaxfer.Summary) string {
	if s.Sent {
		return "sent"
	}
	return "received"
}

// durability says what is known of the receiver's disk. The DPU reports success after its own file is safe; a host that
// receives reports nothing but its failure.
func durability(s dmaxfer.Summary, side negotiate.Side) string {
	switch {
	case !s.Sent:
		return "durable here"
	case side == negotiate.Host:
		return "durable on the DPU if it runs dma-copy, else unknown"
	default:
		return "durability on the host unknown"
	}
}

// rate is nothing for an empty file, which has none.
func rate(s dmaxfer.Summary) string {
	if s.Size == 0 || s.Elapsed <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s/s)", humanize.IBytes(uint64(float64(s.Size)/s.Elapsed.Seconds())))
}

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

func pathOf(driver *doca.Driver) string {
	return driverTitle(string(driver.Name()), driver.Hardware(), driver.Version())
}

// driverTitle names a driver with its release; the software device's release has its name in it.
func driverTitle(name string, hardware bool, version string) string {
	if name == driverDOCA {
		version = "doca " + version
	}
	if hardware {
		return version + " (DMA engine)"
	}
	return version + " (software device, no hardware)"
}

func shapeOf(s dmaxfer.Summary) string {
	var parts []string
	if s.Chunk > 0 {
		parts = append(parts, "chunk "+humanize.IBytes(uint64(s.Chunk)), fmt.Sprintf("depth %d", s.Depth))
	}
	if s.Anonymous {
		parts = append(parts, "whole file in memory (the driver does not pin file mappings)")
	}
	if len(parts) == 0 {
		return ""
	}
	return "  " + strings.Join(parts, "  ")
}
