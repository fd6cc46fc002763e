package output

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// Deletion is an entry of the target that the source does not have.
type Deletion struct {
	Path   string // below the target; any bytes but NUL
	Kind   wire.EntryKind
	DryRun bool  // it would be deleted
	Err    error // why it is still there; nil otherwise

	InTheWay bool // the source has something else of its name, or of the name of a directory above it
}

// reason returns why it is deleted, if the source has its name.
func (d Deletion) reason() string {
	if d.InTheWay {
		return native.ChangeType.String()
	}
	return ""
}

// Deleting is what a sync is about to delete.
type Deleting struct {
	Entries int
	Of      int64      // entries that the target had before the copy; 0: unknown
	First   []Deletion // of these
	DryRun  bool
}

// deletingText returns the count and the first names.
func deletingText(d Deleting) string {
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

// Total is what a command has done for all of its sources together.
type Total struct {
	Sources int64 // that were tried
	Failed  int64 // of these
	Files   int64 // that were copied
	Bytes   int64 // of these
	Elapsed time.Duration

	Deletes bool  // entries were to be deleted
	Deleted int64 // entries, or in a dry run those that would be
	Kept    int64 // entries that could not be deleted
	DryRun  bool
}

// Add counts a source by its result.
func (t *Total) Add(s job.Summary, err error) {
	t.Sources++
	if err != nil {
		t.Failed++
	}
	switch {
	case s.Tree != nil:
		t.Files += s.Tree.Files
		t.Bytes += s.Tree.Bytes
	case err == nil && !s.UpToDate && !s.Existing && !s.DryRun:
		t.Files++
		t.Bytes += s.Size
	}
	t.DryRun = t.DryRun || s.DryRun
}

// Delete counts a deletion.
func (t *Total) Delete(d Deletion) {
	t.Deletes = true
	if d.Err != nil {
		t.Kept++
	} else {
		t.Deleted++
	}
}

// Worthy reports whether the total says more than the result of the only source does.
func (t *Total) Worthy() bool { return t.Sources > 1 || t.Deletes }

// SomeSources returns the error of a command some of whose sources failed, each of which has been reported; nil if none
// has.
func SomeSources(tried int, failures []error) error {
	if len(failures) == 0 {
		return nil
	}
	return exit.Errorf(commonCode(tried, failures), "see the errors above, and run the same command for the rest",
		"%d of %d sources failed", len(failures), tried)
}

// commonCode returns the exit code of a command that has tried several things, of which some failed: theirs if all
// failed with the same code.
func commonCode(tried int, failures []error) int {
	code := exit.Code(failures[0])
	another := func(err error) bool { return exit.Code(err) != code }
	if len(failures) < tried || slices.ContainsFunc(failures, another) {
		return exit.SomeFailed
	}
	return code
}

// Deleting implements Reporter. A dry run lists all of them.
func (r *textReporter) Deleting(d Deleting) {
	if !r.quiet && !d.DryRun {
		r.clear()
		fmt.Fprintf(r.out, "deleting %s\n", deletingText(d))
	}
}

func (r *textReporter) Deleted(d Deletion) {
	switch {
	case d.Err != nil:
		r.clear()
		fmt.Fprintf(r.out, "dma-copy: %s\n", entrySentence(r.path.Side, d.Path, d.Err))
	case r.plan != nil:
		r.clear()
		fmt.Fprintln(r.plan, planRow("delete", d.reason(), "-", deletedName(d)))
	case !r.quiet:
		r.clear()
		fmt.Fprintf(r.out, "deleted %s\n", deletedName(d))
	}
}

func deletedName(d Deletion) string {
	if d.Kind == wire.EntryDirectory {
		return EntryName(d.Path) + "/"
	}
	return EntryName(d.Path)
}

func (r *textReporter) Total(t Total) error {
	r.clear()
	err := r.endPlan()
	if !r.quiet {
		fmt.Fprintf(r.out, "total %s\n", totalText(t, "source", 0))
	}
	return err
}

// totalText lists what was done for sources or peers, some of which may not have been tried.
func totalText(t Total, noun string, notStarted int64) string {
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
	WriteError(r.out, err)
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

func (r *jsonReporter) Deleting(d Deleting) {
	line := deletingEvent{Entries: d.Entries, Of: d.Of, DryRun: d.DryRun}
	for _, each := range d.First {
		line.First = append(line.First, NameInEvent(each.Path).File)
	}
	r.Write("deleting", line)
}

// Deleted implements Reporter. Every deletion has an event: there is no other record of what was there.
func (r *jsonReporter) Deleted(d Deletion) {
	line := fileEvent{
		FileName: NameInEvent(d.Path), Direction: r.direction(r.planned.Sent),
		Kind: EntryKind(d.Kind), Action: "deleted", Reason: d.reason(),
	}
	switch {
	case d.Err != nil:
		line.Action, line.Code, line.Message = job.Failed.String(), exit.Code(d.Err), entryReason(r.path.Side, d.Err)
	case d.DryRun:
		line.Action = "would-delete"
	}
	r.Write("file", line)
}

func (r *jsonReporter) Total(t Total) error {
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
	fmt.Fprintf(w, "key   that of the daemon is trusted from now on, as %s: compare its words with those that "+
		"dma-copy keys show prints there\n      %s\n", name, words)
}

// Unfinished reports whether the error of one source ends the command: the daemon, the device or the user is gone.
func Unfinished(err error) bool {
	code := exit.Code(err)
	return code == exit.Peer || code == exit.Device || code == exit.Protocol || code > exit.Signal ||
		errors.Is(err, job.ErrHung)
}
