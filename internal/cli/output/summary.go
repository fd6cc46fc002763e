package output

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/report"
)

// writeSummary prints what a copy did, and over which path the bytes went: on one line, or with verbose on several. It
// claims no more than this side knows: the reference protocol compares no bytes and tells a sender nothing about
// durability.
func writeSummary(w io.Writer, s job.Summary, planned job.Planned, path report.Path, verbose bool) {
	head, details := outcomeOf(s, planned, path)
	if !verbose {
		driver, _, _ := strings.Cut(pathTitle(s, path), " (")
		details = append(details, driver)
		if peer := path.PeerOf(); peer != "" {
			details = append(details, "peer "+peer)
		}
		fmt.Fprintf(w, "%s  %s\n", head, phrase.Join("; ", details...))
		return
	}
	sum := sumOf(s)
	if !s.UpToDate && (s.Existing || s.DryRun) {
		sum = ""
	}
	fmt.Fprintf(w, "%s%s\n", head, sum)
	for _, detail := range details {
		fmt.Fprintf(w, "      %s\n", detail)
	}
	fmt.Fprintf(w, "path  %s%s\n", pathTitle(s, path), shapeOf(s, path))
	if stage := s.Shares.Busiest(); s.Shares[stage] > 0 && s.Size > 0 {
		fmt.Fprintf(w, "time  most: %s\n", mostTime(stage, s.Shares[stage], path.Side))
	}
	fmt.Fprint(w, path.End())
}

// outcomeOf returns what a copy did, and what else there is to say about it.
func outcomeOf(s job.Summary, planned job.Planned, path report.Path) (head string, details []string) {
	size := quantity.Bytes(uint64(s.Size))
	switch {
	case s.UpToDate:
		name := nameOf(s, report.Path{})
		if s.Target != "" {
			name = quote.Printable(s.Target)
		}
		head = fmt.Sprintf("ok    %s is already up to date  %s", name, size)
		if s.Change != native.ChangeNone {
			details = append(details, fmt.Sprintf("attributes set: its %s differed", s.Change))
		}
	case s.Existing:
		head = fmt.Sprintf("ok    nothing copied: %s exists and was left as it is", targetOf(s, path))
	case s.Tree != nil:
		head, details = treeOutcome(s, planned, path)
	case s.DryRun && s.Updated:
		head = fmt.Sprintf("plan  set the attributes of %s: its %s differs", targetOf(s, path), s.Change)
		details = append(details, "nothing was changed")
	case s.DryRun:
		head = fmt.Sprintf("plan  %s %s  %s", verb(s), nameOf(s, path), size)
		details = append(details, "nothing was changed")
	default:
		head = fmt.Sprintf("ok    %s %s  %s in %s%s", verb(s), nameOf(s, path), size, round(s.Elapsed), rate(s))
		details = append(details, phrase.Join(", ", verified(s, planned), durability(s, path.Side), retries(s)))
	}
	if s.Resumed > 0 {
		details = append(details, resumed(s))
	}
	if s.Unconfirmed != "" {
		details = append(details, "target committed; "+s.Unconfirmed)
	}
	return head, details
}

// treeOutcome is outcomeOf for a tree.
func treeOutcome(s job.Summary, planned job.Planned, path report.Path) (head string, details []string) {
	t := s.Tree
	outcome := "ok"
	switch {
	case s.DryRun:
		outcome = "plan"
	case t.Failed > 0:
		outcome = "part"
	}
	head = fmt.Sprintf("%-4s  %s %s  %s, %s in %s%s", outcome, verb(s), nameOf(s, path), copiedOf(*t),
		quantity.Bytes(uint64(t.Bytes)), round(s.Elapsed), rate(s))
	rest := phrase.Join(", ", countOf(t.Updated, "updated"), countOf(t.Unchanged, "unchanged"),
		countOf(t.Existing, "existing"), countOf(t.Skipped, "skipped"), countOf(t.Failed, "failed"))
	if s.DryRun {
		return head, []string{phrase.Join("; ", rest, "nothing was changed")}
	}
	checked := ""
	if t.Files > 0 { // what is unchanged may only have been compared by size and time
		checked = verified(s, planned)
	}
	return head, []string{phrase.Join("; ", rest, phrase.Join(", ", checked, durability(s, path.Side), retries(s)))}
}

// copiedOf lists what was copied of a tree, by kind.
func copiedOf(t job.TreeSummary) string {
	list := []string{quantity.Count(t.Files, "file")}
	for _, kind := range []struct {
		count int64
		noun  string
	}{{t.Directories, "directory"}, {t.Symlinks, "symlink"}, {t.HardLinks, "hard link"}} {
		if kind.count > 0 {
			list = append(list, quantity.Count(kind.count, kind.noun))
		}
	}
	return strings.Join(list, ", ")
}

// countOf returns a number with a word, or nothing for 0.
func countOf(n int64, what string) string {
	if n == 0 {
		return ""
	}
	return quantity.Comma(n) + " " + what
}

// verb returns what was done, or in a dry run what would be.
func verb(s job.Summary) string {
	did, would := "received", "receive"
	switch {
	case s.Target != "":
		did, would = "copied", "copy"
	case s.Sent:
		did, would = "sent", "send"
	}
	if s.DryRun {
		return "would " + would
	}
	return did
}

// nameOf names what was copied: this side's file, also a daemon's, or source and target of a local copy.
func nameOf(s job.Summary, path report.Path) string {
	switch {
	case path.Remote != "" && s.Sent:
		return nameOf(s, report.Path{}) + " to " + quote.Printable(path.Remote)
	case path.Remote != "" && s.Path == option.Stream:
		return quote.Printable(path.Remote) + " to standard output"
	case path.Remote != "":
		return quote.Printable(path.Remote) + " as " + quote.Printable(s.Path)
	case s.Target == option.Stream:
		return quote.Printable(s.Path) + " to standard output"
	case s.Target != "" && s.Path == option.Stream:
		return "standard input to " + quote.Printable(s.Target)
	case s.Target != "":
		return quote.Printable(s.Path) + " to " + quote.Printable(s.Target)
	case s.Path != option.Stream:
		return quote.Printable(s.Path)
	case s.Sent:
		return "standard input"
	default:
		return "to standard output"
	}
}

// targetOf names what was or would have been written.
func targetOf(s job.Summary, path report.Path) string {
	switch {
	case s.Target != "":
		return quote.Printable(s.Target)
	case s.Sent && path.Remote != "":
		return quote.Printable(path.Remote)
	case s.Sent:
		return "the file of the " + path.Side.Other().String()
	}
	return quote.Printable(s.Path)
}

func sumOf(s job.Summary) string {
	if s.Sum.Algorithm() == digest.None {
		return ""
	}
	return "  " + s.Sum.String()
}

func verified(s job.Summary, planned job.Planned) string {
	switch {
	case s.Protocol != wire.Native:
		return "not verified (reference protocol)"
	case !compared(s, planned):
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
func durability(s job.Summary, side wire.Side) string {
	if s.Protocol != wire.Native {
		return referenceDurability(s, side)
	}
	where := " here"
	switch {
	case s.Target != "":
		where = ""
	case s.Sent:
		where = " on the " + side.Other().String()
	}
	switch {
	case s.Target == option.Stream, !s.Sent && s.Path == option.Stream:
		return "written to the stream"
	case s.Durability == wire.DurabilityFull:
		return "durable" + where
	case s.Durability == wire.DurabilityFile:
		return "content durable" + where
	default:
		return "not flushed" + where
	}
}

// referenceDurability returns what the reference protocol tells: the DPU reports success after its own file is
// durable; a host that receives reports failures only.
func referenceDurability(s job.Summary, side wire.Side) string {
	switch {
	case !s.Sent:
		return "durable here"
	case side == wire.Host:
		return "durable on the DPU if it runs dma-copy, else unknown"
	default:
		return "durability on the host unknown"
	}
}

func resumed(s job.Summary) string {
	return fmt.Sprintf("reused: %s of %s already present; %s copied in this run",
		quantity.Bytes(uint64(s.Resumed)), quantity.Bytes(uint64(s.Size)), quantity.Bytes(uint64(copied(s))))
}

// copied returns how many bytes this run has copied.
func copied(s job.Summary) int64 {
	switch {
	case s.UpToDate, s.Existing, s.DryRun:
		return 0
	case s.Tree != nil:
		return s.Tree.Bytes - s.Resumed
	}
	return s.Size - s.Resumed
}

func retries(s job.Summary) string {
	if s.Retries == 0 {
		return ""
	}
	return quantity.Count(s.Retries, "chunk") + " retransmitted"
}

// rate returns the rate in parentheses, or nothing for an empty file. Bytes that were already present do not count.
func rate(s job.Summary) string {
	if perSecond := bytesPerSecond(s); perSecond > 0 {
		return fmt.Sprintf(" (%s/s)", quantity.Bytes(uint64(perSecond)))
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

func shapeOf(s job.Summary, path report.Path) string {
	var parts []string
	if path.Local {
		parts = append(parts, "local DMA on "+path.Device)
	}
	if s.DataPath == wire.PathFast {
		parts = append(parts, "over producers and consumers")
	}
	if s.Chunk > 0 {
		parts = append(parts, "chunk "+quantity.Bytes(uint64(s.Chunk)), fmt.Sprintf("depth %d", s.Depth))
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
func mostTime(stage pump.Stage, share float64, side wire.Side) string {
	if stage == pump.Peer {
		return fmt.Sprintf("waiting for the %s %.0f%%", side.Other(), 100*share)
	}
	return percentage(stage, share)
}

// pathTitle returns by which path the bytes of a copy went. Between machines it says what protects them: TLS encrypts
// them, and the digests that travel inside TLS authenticate what other paths have moved.
func pathTitle(s job.Summary, path report.Path) string {
	if path.Address == "" {
		return path.Driver
	}
	return transportTitle(s) + " to " + path.Address + " (" + protection(s, path) + ")"
}

// transportTitle returns the path of a copy between machines, and the transport that UCX has chosen for it.
func transportTitle(s job.Summary) string {
	if s.Transport == "" {
		return s.DataPath.String()
	}
	return s.DataPath.String() + " over " + s.Transport
}

// protection returns what protects the bytes on their way between machines.
func protection(s job.Summary, path report.Path) string {
	switch {
	case s.DataPath.Encrypts():
		return "encrypted"
	case path.Peer != nil && path.Peer.Authenticated:
		return "authenticated, not encrypted"
	default:
		return "not encrypted"
	}
}
