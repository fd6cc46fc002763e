package ls

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
)

// listing writes what ls has found to stdout, as text or as JSON lines. It is used by one goroutine at a time.
type listing struct {
	events *output.Events // nil: as text
	out    *bufio.Writer  // of either
	long   bool
	place  share.Remote
	places int
}

// newListing returns the listing of a form; long says whether there are more than names.
func newListing(stdout io.Writer, form option.OutputForm, long bool, log zerolog.Logger) *listing {
	out := bufio.NewWriter(stdout)
	return &listing{events: output.NewEvents(out, form, log), out: out, long: long}
}

// Begin is called when the daemon is known.
func (l *listing) Begin(path report.Path) {
	l.events.Hello(path, "service", 0, path.Peer.Software)
}

// at is called before the entries of each place. titled says that there are several.
func (l *listing) at(at share.Remote, titled bool) {
	l.place = at
	if l.events != nil || !titled {
		return
	}
	if l.places++; l.places > 1 {
		fmt.Fprintln(l.out)
	}
	fmt.Fprintf(l.out, "%s:\n", report.EntryName(at.String()))
}

// entryEvent is an entry of a list.
type entryEvent struct {
	output.FileName
	Remote   string `json:"remote"`
	Kind     string `json:"kind"`
	Access   string `json:"access,omitempty"`
	Mode     string `json:"mode,omitempty"`
	Bytes    *int64 `json:"bytes,omitempty"`
	Modified string `json:"modified,omitempty"`
	Link     string `json:"link,omitempty"`
}

// entry is called for each entry, whose path is relative to the place. isShare says that it is a share.
func (l *listing) entry(e share.Entry, isShare bool) {
	if l.events != nil {
		l.events.Write("entry", l.event(e, isShare))
		return
	}
	name := report.EntryName(e.Path)
	switch {
	case isShare:
		name += ":"
	case e.Kind == wire.EntryDirectory:
		name += "/"
	}
	switch {
	case l.long && isShare:
		fmt.Fprintf(l.out, "%s  %s\n", accessOf(e), name)
	case l.long && e.Kind == wire.EntrySymlink:
		fmt.Fprintf(l.out, "%s  %14s  %s  %s -> %s\n", modeOf(e), "-", modified(e), name, report.EntryName(e.Link))
	case l.long:
		size := "-"
		if e.Kind == wire.EntryFile {
			size = fmt.Sprint(e.Size)
		}
		fmt.Fprintf(l.out, "%s  %14s  %s  %s\n", modeOf(e), size, modified(e), name)
	default:
		fmt.Fprintln(l.out, name)
	}
}

func (l *listing) event(e share.Entry, isShare bool) entryEvent {
	line := entryEvent{FileName: output.NameInEvent(e.Path), Remote: l.place.String(), Kind: output.EntryKind(e.Kind)}
	if isShare {
		line.Kind, line.Access = "share", accessOf(e)
		return line
	}
	line.Mode, line.Modified, line.Link = fmt.Sprintf("%04o", e.Mode), modifiedAt(e).Format(time.RFC3339Nano), e.Link
	if e.Kind == wire.EntryFile {
		line.Bytes = &e.Size
	}
	return line
}

// accessOf returns the rights that a list shows of a share.
func accessOf(e share.Entry) string {
	var access share.Access
	if e.Mode&0o400 != 0 {
		access |= share.Read
	}
	if e.Mode&0o200 != 0 {
		access |= share.Write
	}
	return access.String()
}

// modeOf returns kind and permissions as ls shows them.
func modeOf(e share.Entry) string {
	kind := map[wire.EntryKind]string{
		wire.EntryDirectory: "d", wire.EntrySymlink: "l", wire.EntrySpecial: "?",
	}[e.Kind]
	if kind == "" {
		kind = "-"
	}
	return kind + fs.FileMode(e.Mode & 0o777).String()[1:]
}

func modifiedAt(e share.Entry) time.Time {
	return time.Unix(e.Modified.Sec, int64(e.Modified.Nsec)).UTC()
}

func modified(e share.Entry) string { return modifiedAt(e).Format("2006-01-02 15:04:05") }

// end reports an error if the list could not be written.
func (l *listing) end() error {
	const unwritten = "print the list"
	if err := l.out.Flush(); err != nil {
		return fmt.Errorf("%s: %w", unwritten, err)
	}
	return l.events.Unwritten(unwritten)
}

// Fail writes what has been found, and the error of a run as an event.
func (l *listing) Fail(err error) {
	l.events.Fail(err)
	_ = l.out.Flush() // the command has failed anyway
}
