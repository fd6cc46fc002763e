package job

import (
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// ErrSomeFailed means that a tree was transferred, except for entries that failed; the Summary counts them.
var ErrSomeFailed = exit.NewReason(exit.SomeFailed,
	"remove the causes and run the same command to copy these entries", "some entries failed")

// Action is what a transfer has done with an entry of a tree.
type Action int

// The actions.
const (
	Copied      Action = iota // the receiver has it from this transfer
	Unchanged                 // the receiver had it; of directories it may have set mode and time
	Skipped                   // it is of a kind that is not transferred
	Failed                    // the receiver does not have it; FileDone.Err says why
	WouldCopy                 // a dry run would have copied it
	Existing                  // the receiver has left what exists in its place
	Updated                   // the receiver had the content of the file, and has set its attributes
	WouldUpdate               // a dry run would have set the file's attributes
)

var actionNames = [...]string{
	"copied", "unchanged", "skipped", "failed", "would-copy", "existing", "updated", "would-update",
}

// String returns the action's name in events.
func (a Action) String() string { return actionNames[a] }

// ActionOfHave returns the action for an entry that the receiver has; change is the attribute of a file that differs.
func ActionOfHave(change native.Change, dryRun bool) Action {
	switch {
	case change == native.ChangeNone:
		return Unchanged
	case dryRun:
		return WouldUpdate
	default:
		return Updated
	}
}

// FileDone reports that an entry of a tree is decided. There is one for each entry that this side knows.
type FileDone struct {
	Path   string // relative to the tree, components joined by "/"; empty: the directory itself. Any bytes but NUL
	Kind   wire.EntryKind
	Action Action
	Bytes  int64         // size of a file; 0 for other kinds
	Err    error         // nil unless Action is Failed
	Change native.Change // why it would be copied, or which attribute differed first; if Action is Would... or Updated
}

func (FileDone) event() {}

// TreeSummary is the result of the transfer of a tree.
type TreeSummary struct {
	Files       int64 // regular files that were copied
	Directories int64 // directories that were created
	Symlinks    int64 // symlinks that were created
	HardLinks   int64 // hard links that were created
	Unchanged   int64 // entries that the receiver had; of directories it may have set mode and times
	Updated     int64 // files that only had attributes set, or would have in a dry run
	Skipped     int64 // entries of a kind that is not transferred
	Existing    int64 // entries in whose place the receiver has left what exists
	Failed      int64
	Unreadable  int64         // of Failed, on a receiver: entries that the sender could not read, and has not announced
	Bytes       int64         // of the copied files
	Failures    []FailedEntry // the first maxFailures of Failed, without Unreadable
}

// maxFailures is how many failures a TreeSummary has.
const maxFailures = 20

// FailedEntry is an entry of a tree that the receiver does not have, and why.
type FailedEntry struct {
	Path string // as in FileDone
	Err  error
}

// Entries returns the number of all entries.
func (s *TreeSummary) Entries() int64 {
	return s.CopiedEntries() + s.Unchanged + s.Updated + s.Existing + s.Skipped + s.Failed
}

// CopiedEntries returns the number of entries that were copied, or would have been in a dry run.
func (s *TreeSummary) CopiedEntries() int64 {
	return s.Files + s.Directories + s.Symlinks + s.HardLinks
}

// AddUnreadable counts entries that the sender could not read, on a receiver, which does not know their causes.
func (s *TreeSummary) AddUnreadable(entries int64) {
	s.Failed += entries
	s.Unreadable += entries
}

// AddFailure counts a failed entry, and keeps it if it is one of the first.
func (s *TreeSummary) AddFailure(e FailedEntry) {
	s.Failed++
	if len(s.Failures) < maxFailures {
		s.Failures = append(s.Failures, e)
	}
}

// Add counts an entry by its outcome.
func (s *TreeSummary) Add(e FileDone) {
	switch e.Action {
	case Unchanged:
		s.Unchanged++
	case Updated, WouldUpdate:
		s.Updated++
	case Existing:
		s.Existing++
	case Skipped:
		s.Skipped++
	case Failed:
		s.AddFailure(FailedEntry{Path: e.Path, Err: e.Err})
	default:
		s.addCopied(e)
	}
}

func (s *TreeSummary) addCopied(e FileDone) {
	switch e.Kind {
	case wire.EntryFile:
		s.Files++
		s.Bytes += e.Bytes
	case wire.EntryDirectory:
		s.Directories++
	case wire.EntrySymlink:
		s.Symlinks++
	case wire.EntryHardLink:
		s.HardLinks++
	}
}
