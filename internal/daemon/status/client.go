package status

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/daemon/runtimedir"
	"github.com/dma-copy/dma-copy/internal/daemon/unixsocket"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/service"
)

// largest is the maximum size of a document in bytes. One of 64 connections with long paths has about 1 MiB.
const largest = 16 << 20

// Fetch reads the document of the daemon that listens on the first of the paths where one does. The error has the exit
// code for a daemon that is not running, does not answer, or belongs to somebody else.
func Fetch(ctx context.Context, paths ...string) (Document, error) {
	var absent []string
	for _, path := range paths {
		doc, err := fetch(ctx, path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) ||
			len(paths) > 1 && errors.Is(err, unixsocket.ErrTooLong) {
			absent = append(absent, quote.Bare(path))
			continue
		}
		return doc, err
	}
	return Document{}, exit.Errorf(exit.Peer, "start dma-copy serve, or name its socket with --socket PATH",
		"no daemon listens on %s", strings.Join(absent, " or "))
}

func fetch(ctx context.Context, path string) (Document, error) {
	if err := unixsocket.CheckPath(path); err != nil {
		return Document{}, exit.Errorf(exit.Usage, "name it with --socket PATH, by a relative path or a short symlink",
			"cannot connect to the socket %s: %w", quote.Bare(path), err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrPermission) {
		return Document{}, exit.Errorf(exit.Refused, "run dma-copy status as root, or as the user of the daemon",
			"the daemon at %s belongs to another user", quote.Bare(path))
	}
	silent := exit.Errorf(exit.Peer, "see the log of the daemon", "the daemon at %s does not answer", quote.Bare(path))
	if err != nil && (ctx.Err() != nil || errors.Is(err, unix.EAGAIN)) { // too many wait for it to accept them
		return Document{}, silent
	}
	if err != nil {
		return Document{}, fmt.Errorf("connect to the daemon: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(0, 0)) })
	defer stop()
	line, err := bufio.NewReader(io.LimitReader(conn, largest)).ReadBytes('\n')
	switch {
	case ctx.Err() != nil:
		return Document{}, silent
	case errors.Is(err, io.EOF) && len(line) == 0:
		return Document{}, exit.Errorf(exit.Refused, "run dma-copy status as root, or as the user of the daemon",
			"the daemon at %s gave no answer: it may belong to another user", quote.Bare(path))
	case err != nil:
		return Document{}, exit.Errorf(exit.Peer, "", "read the status of the daemon at %s: %w", quote.Bare(path), err)
	}
	var doc Document
	if err := json.Unmarshal(line, &doc); err != nil || doc.V != version {
		return Document{}, exit.Errorf(exit.Peer, "use the release of the daemon",
			"the daemon at %s answers in a form that this release does not know", quote.Bare(path))
	}
	return doc, nil
}

// WriteJSON writes the document as one line.
func WriteJSON(w io.Writer, doc Document) error {
	if err := json.NewEncoder(quote.JSONWriter{To: w}).Encode(doc); err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	return nil
}

// WriteText writes the document for a person, with times in a time zone.
func WriteText(w io.Writer, doc Document, zone *time.Location) error {
	var b strings.Builder
	state := "running"
	if doc.Draining {
		state = "draining: no new requests"
	}
	row(&b, "daemon", "%s, process %d, %s", doc.Software, doc.PID, state)
	row(&b, "since", "%s (%s)", doc.Started.In(zone).Format(time.DateTime),
		doc.Time.Sub(doc.Started).Round(time.Second))
	if doc.Auth == "none" {
		row(&b, "keys", "any key is accepted (--auth none)")
	} else {
		row(&b, "keys", "%d trusted", doc.TrustedKeys)
	}
	for _, s := range doc.Shares {
		row(&b, "share", "%s (%s) %s", s.Name, s.Access, s.Path)
	}
	row(&b, "transfers", "%d running of at most %d, %d waiting, %s of buffers", doc.Running, doc.Transfers, doc.Waiting,
		size(doc.Memory))
	for _, t := range doc.Tenants {
		row(&b, "", "%s: %d running, %d waiting", t.Name, t.Running, t.Waiting)
	}
	row(&b, "totals", "%s, %d refused; %s, %d failed; %s", quantity.Count(doc.Totals.Connections, "connection"),
		doc.Totals.Refused, quantity.Count(doc.Totals.Requests, "request"), doc.Totals.Failed, size(doc.Totals.Bytes))
	if doc.Totals.Bugs > 0 {
		row(&b, "defects", "%s ended by a defect of dma-copy, see the log",
			quantity.Count(doc.Totals.Bugs, "connection"))
	}
	row(&b, "connections", "%d, and %d not yet authenticated", len(doc.Connections), doc.Pending)
	for _, c := range doc.Connections {
		row(&b, "", "%s: %s", who(c.ID, c.Key, c.Function), doing(c.Request)+claim(c))
		for _, line := range waits(c.Request) {
			row(&b, "", "  %s", line)
		}
	}
	for i, f := range doc.Failures {
		name := ""
		if i == 0 {
			name = "failures"
		}
		row(&b, name, "%s  %s: %s: %s%s", f.Time.In(zone).Format(time.DateTime), who(f.Session, f.Key, f.Function),
			f.What, f.Error, code(f.Code))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	return nil
}

// row writes one line of the text, whose words after the name stand below each other.
func row(b *strings.Builder, name, format string, args ...any) {
	fmt.Fprintf(b, "%-12s %s\n", name, quote.Printable(fmt.Sprintf(format, args...)))
}

func who(id uint64, key, function string) string {
	text := "#" + strconv.FormatUint(id, 10)
	if key != "" {
		text += " " + key
	}
	return text + " on " + function
}

// waits returns the lines about what a request waits for, which may be nil.
func waits(r *Request) (lines []string) {
	if r == nil {
		return nil
	}
	for _, each := range r.Waits {
		lines = append(lines, each.Lines()...)
	}
	return lines
}

// claim returns who the command says it is, and what its file is.
func claim(c Connection) string {
	at := c.Machine
	if c.User != "" {
		at = c.User + "@" + at
	}
	if c.Request != nil && c.Request.Local != "" {
		at += ":" + c.Request.Local
	}
	if at == "" {
		return ""
	}
	return "  says it is " + at
}

func doing(r *Request) string {
	if r == nil {
		return "idle"
	}
	text := r.Operation
	if r.DryRun {
		text += " (dry run)"
	}
	if r.Share != "" {
		text += " " + location(r.Share, r.Path)
	}
	switch {
	case r.Waiting:
		return text + "  waits for a permit"
	case !service.Operation(r.Operation).Copies():
		return text
	case r.Total != nil && *r.Total > 0:
		text += fmt.Sprintf("  %d%%  %s/%s", r.Moved*100 / *r.Total, size(r.Moved), size(*r.Total))
	default:
		text += "  " + size(r.Moved)
	}
	return text + "  " + size(int64(r.Rate)) + "/s"
}

func size(bytes int64) string { return quantity.Bytes(uint64(max(bytes, 0))) }

func code(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (exit code %d)", n)
}

// Timeout is how long a daemon may take to answer. It answers at once, unless it hangs or is stopped.
const Timeout = 10 * time.Second

// Sockets returns the sockets on which a daemon may listen, in the order in which they are tried: the given one, or the
// one in the given runtime directory, or all in the directories by the environment.
func Sockets(socket, directory string, getenv func(string) string) []string {
	switch {
	case socket != "":
		return []string{socket}
	case directory != "":
		return []string{filepath.Join(directory, SocketName)}
	}
	var sockets []string
	for _, each := range runtimedir.Candidates(getenv, os.Geteuid()) {
		sockets = append(sockets, filepath.Join(each, SocketName))
	}
	return sockets
}
