package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/report"
)

// deletingText returns the count and the first names.
func deletingText(d report.Deleting) string {
	text := quantity.Count(int64(d.Entries), "entry")
	if d.Of > 0 {
		text += " of " + quantity.Comma(d.Of)
	}
	names := make([]string, len(d.First))
	for i, each := range d.First {
		names[i] = deletedName(each)
	}
	text += ": " + strings.Join(names, ", ")
	if more := d.Entries - len(d.First); more > 0 {
		text += fmt.Sprintf(" and %s more", quantity.Comma(int64(more)))
	}
	return text
}

// Deleting implements Reporter. A dry run lists all of them.
func (r *textReporter) Deleting(d report.Deleting) {
	if !r.quiet && !d.DryRun {
		r.clear()
		fmt.Fprintf(r.out, "deleting %s\n", deletingText(d))
	}
}

func (r *textReporter) Deleted(d report.Deletion) {
	switch {
	case d.Err != nil:
		r.clear()
		fmt.Fprintf(r.out, "dma-copy: %s\n", report.EntrySentence(r.path.Side, d.Path, d.Err))
	case r.plan != nil:
		r.clear()
		fmt.Fprintln(r.plan, planRow("delete", d.Reason(), "-", deletedName(d)))
	case !r.quiet:
		r.clear()
		fmt.Fprintf(r.out, "deleted %s\n", deletedName(d))
	}
}

func deletedName(d report.Deletion) string {
	if d.Kind == wire.EntryDirectory {
		return report.EntryName(d.Path) + "/"
	}
	return report.EntryName(d.Path)
}

func (r *textReporter) Total(t report.Total) error {
	r.clear()
	err := r.endPlan()
	if !r.quiet {
		fmt.Fprintf(r.out, "total %s\n", totalText(t, "source", 0))
	}
	return err
}

// totalText lists what was done for sources or peers, some of which may not have been tried.
func totalText(t report.Total, noun string, notStarted int64) string {
	copied, deleted, end := "copied", "deleted", ""
	if t.DryRun {
		copied, deleted, end = "to copy", "to delete", "; nothing was changed"
	}
	parts := []string{quantity.Count(t.Sources, noun)}
	if notes := phrase.Join(", ", countOf(t.Failed, "failed"), countOf(notStarted, "not started")); notes != "" {
		parts[0] += " (" + notes + ")"
	}
	parts = append(parts, quantity.Count(t.Files, "file")+" "+copied, quantity.Bytes(uint64(t.Bytes)))
	if t.Deletes {
		parts = append(parts, quantity.Count(t.Deleted, "entry")+" "+deleted)
	}
	if t.Kept > 0 {
		parts = append(parts, quantity.Count(t.Kept, "entry")+" not deleted")
	}
	return strings.Join(parts, ", ") + " in " + round(t.Elapsed).String() + end
}

// SourceFailed implements Reporter: the other sources follow, so the error is printed now.
func (r *textReporter) SourceFailed(err error) {
	r.clear()
	report.WriteError(r.out, err)
}

func (r *jsonReporter) SourceFailed(err error) { r.Fail(err) }

// The events of a command with several sources, or with deletions.
type totalEvent struct {
	Sources int64   `json:"sources"`
	Failed  int64   `json:"failed"`
	Files   int64   `json:"files"`
	Bytes   int64   `json:"bytes"`
	Elapsed float64 `json:"elapsed_seconds"`
	Deleted *int64  `json:"deleted,omitempty"`
	Kept    *int64  `json:"not_deleted,omitempty"`
	DryRun  bool    `json:"dry_run,omitempty"`
}

// deletingEvent comes before the first deletion.
type deletingEvent struct {
	Entries int      `json:"entries"`
	Of      int64    `json:"of,omitempty"`
	First   []string `json:"first"`
	DryRun  bool     `json:"dry_run,omitempty"`
}

func (r *jsonReporter) Deleting(d report.Deleting) {
	line := deletingEvent{Entries: d.Entries, Of: d.Of, DryRun: d.DryRun}
	for _, each := range d.First {
		line.First = append(line.First, NameInEvent(each.Path).File)
	}
	r.Write("deleting", line)
}

// Deleted implements Reporter. Every deletion has an event: there is no other record of what was there.
func (r *jsonReporter) Deleted(d report.Deletion) {
	line := fileEvent{
		FileName: NameInEvent(d.Path), Direction: r.direction(r.planned.Sent),
		Kind: EntryKind(d.Kind), Action: "deleted", Reason: d.Reason(),
	}
	switch {
	case d.Err != nil:
		line.Action, line.Code = job.Failed.String(), exit.Code(d.Err)
		line.Message = report.EntryReason(r.path.Side, d.Err)
	case d.DryRun:
		line.Action = "would-delete"
	}
	r.Write("file", line)
}

func (r *jsonReporter) Total(t report.Total) error {
	line := totalEvent{
		Sources: t.Sources, Failed: t.Failed, Files: t.Files, Bytes: t.Bytes,
		Elapsed: t.Elapsed.Seconds(), DryRun: t.DryRun,
	}
	if t.Deletes {
		line.Deleted, line.Kept = &t.Deleted, &t.Kept
	}
	r.Write("total", line)
	return r.Unwritten(copyUnwritten)
}

// WriteTrusted tells the user that the key of a daemon is trusted from now on, and how to check it.
func WriteTrusted(w io.Writer, name, words string) {
	fmt.Fprintf(w, "key   now trusted, as %s: compare its words with the words that "+
		"dma-copy keys show prints there\n      %s\n", name, words)
}
