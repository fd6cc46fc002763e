package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Path describes the device and driver of a copy on this side.
type Path struct {
	Software string // name and version of this program
	Side     negotiate.Side
	Device   string // PCI address
	Driver   string // its title for the user
	Hardware bool
	Reason   string // why this driver; empty if the user chose it
}

// writeSummary prints what a successful copy did, and over which path the bytes went. It claims no more than this side
// knows: the reference protocol compares no bytes and tells a sender nothing about durability.
func writeSummary(w io.Writer, s job.Summary, path Path) {
	fmt.Fprintf(w, "ok    %s %s  %s in %s%s%s\n", verb(s), nameOf(s), humanize.IBytes(uint64(s.Size)),
		round(s.Elapsed), rate(s), sumOf(s))
	fmt.Fprintf(w, "      %s\n", joined(", ", verified(s), durability(s, path.Side), retries(s)))
	if s.Resumed > 0 {
		fmt.Fprintf(w, "      %s\n", resumed(s))
	}
	if s.Unconfirmed != "" {
		fmt.Fprintf(w, "      target committed; %s\n", s.Unconfirmed)
	}
	fmt.Fprintf(w, "path  %s%s\n", path.Driver, shapeOf(s))
	if stage := s.Shares.Busiest(); s.Shares[stage] > 0 && s.Size > 0 {
		fmt.Fprintf(w, "time  most: %s\n", mostTime(stage, s.Shares[stage], path.Side))
	}
	if path.Reason != "" {
		fmt.Fprintf(w, "why   %s\n", quote.Printable(path.Reason))
	}
}

func verb(s job.Summary) string {
	if s.Sent {
		return "sent"
	}
	return "received"
}

func nameOf(s job.Summary) string {
	switch {
	case s.Path != config.Stream:
		return quote.Printable(s.Path)
	case s.Sent:
		return "standard input"
	default:
		return "to standard output"
	}
}

func sumOf(s job.Summary) string {
	if s.Sum.Algorithm() == digest.None {
		return ""
	}
	return "  " + s.Sum.String()
}

func verified(s job.Summary) string {
	switch {
	case s.Protocol != negotiate.Native:
		return "not verified (reference protocol)"
	case s.Sum.Algorithm() == digest.None:
		return "not verified (digest none)"
	case s.Changing:
		return "verified as read; the source was allowed to change"
	case s.Readback:
		return "verified as read back from the disk"
	default:
		return "verified"
	}
}

// durability returns what is known of the receiver's disk.
func durability(s job.Summary, side negotiate.Side) string {
	if s.Protocol != negotiate.Native {
		return referenceDurability(s, side)
	}
	where := "here"
	if s.Sent {
		where = "on the " + side.Other().String()
	}
	switch {
	case !s.Sent && s.Path == config.Stream:
		return "written to the stream"
	case s.Durability == negotiate.DurabilityFull:
		return "durable " + where
	case s.Durability == negotiate.DurabilityFile:
		return "content durable " + where
	default:
		return "not flushed " + where
	}
}

// referenceDurability returns what the reference protocol tells: the DPU reports success after its own file is
// durable; a host that receives reports failures only.
func referenceDurability(s job.Summary, side negotiate.Side) string {
	switch {
	case !s.Sent:
		return "durable here"
	case side == negotiate.Host:
		return "durable on the DPU if it runs dma-copy, else unknown"
	default:
		return "durability on the host unknown"
	}
}

func resumed(s job.Summary) string {
	return fmt.Sprintf("resumed: %s of %s already present; %s copied in this run",
		humanize.IBytes(uint64(s.Resumed)), humanize.IBytes(uint64(s.Size)), humanize.IBytes(uint64(copied(s))))
}

// copied returns how many bytes this run has copied.
func copied(s job.Summary) int64 { return s.Size - s.Resumed }

func retries(s job.Summary) string {
	if s.Retries == 0 {
		return ""
	}
	return english.Plural(int(s.Retries), "chunk", "") + " retransmitted"
}

// rate returns the rate in parentheses, or nothing for an empty file. Bytes that were already present do not count.
func rate(s job.Summary) string {
	if perSecond := bytesPerSecond(s); perSecond > 0 {
		return fmt.Sprintf(" (%s/s)", humanize.IBytes(uint64(perSecond)))
	}
	return ""
}

func bytesPerSecond(s job.Summary) float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(copied(s)) / s.Elapsed.Seconds()
}

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

func shapeOf(s job.Summary) string {
	var parts []string
	if s.Chunk > 0 {
		parts = append(parts, "chunk "+humanize.IBytes(uint64(s.Chunk)), fmt.Sprintf("depth %d", s.Depth))
	}
	if s.Anonymous {
		parts = append(parts, "whole file in memory (the driver cannot pin file mappings)")
	}
	if len(parts) == 0 {
		return ""
	}
	return "  " + strings.Join(parts, "  ")
}

// mostTime names the stage that limits the copy.
func mostTime(stage pump.Stage, share float64, side negotiate.Side) string {
	if stage == pump.Peer {
		return fmt.Sprintf("waiting for the %s %.0f%%", side.Other(), 100*share)
	}
	return percentage(stage, share)
}
