package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/background"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/report"
)

// PeerResult is what a command with many peers has done for one of them. As the Reporter of the copies to that peer it
// keeps what the line about the peer needs, and has the Fleet report the rest.
type PeerResult struct {
	Name   string       // of the target, as in the list
	Line   int          // of the list
	Done   report.Total // of its sources
	Sum    digest.Sum   // of the only source, if it is a file
	Path   report.Path  // without a Peer if the daemon was not reached
	Last   job.Summary  // of the last copy that succeeded
	Err    error        // nil: everything was copied, or was there already
	Causes []error      // of Err, one for each source that failed, of those after which others followed

	fleet  *Fleet
	log    zerolog.Logger
	copies int
	before int64 // bytes of the copies that have ended
	now    int64 // bytes of the running one
}

var _ report.Reporter = (*PeerResult)(nil)

// Peer returns the result of a peer, which has nothing yet, at a line of the list. Warnings of its copies go to log.
func (f *Fleet) Peer(name string, line int, log zerolog.Logger) *PeerResult {
	f.moves(line, 0)
	return &PeerResult{Name: name, Line: line, fleet: f, log: log}
}

// Begin implements Reporter.
func (r *PeerResult) Begin(report.Path) {
	r.copies++
	r.before, r.now, r.Sum = r.before+r.now, 0, digest.Sum{}
}

// Event implements Reporter.
func (r *PeerResult) Event(e job.Event) {
	if warned, is := e.(job.Warned); is {
		r.log.Warn().Msg(warned.Text)
	}
}

// Progress implements Reporter.
func (r *PeerResult) Progress(s job.Sample) {
	r.now = s.Moved
	r.fleet.moves(r.Line, r.before+r.now)
}

// Asked implements Reporter.
func (r *PeerResult) Asked(s job.Sample, waits []job.Snapshot) { r.fleet.waits(r, s, waits) }

// Interval implements Reporter.
func (r *PeerResult) Interval() time.Duration { return time.Second }

// Result implements Reporter.
func (r *PeerResult) Result(s job.Summary) error {
	r.Last = s
	if r.copies == 1 {
		r.Sum = s.Sum
	}
	return nil
}

// SourceFailed implements Reporter.
func (r *PeerResult) SourceFailed(err error) { r.Causes = append(r.Causes, err) }

// Deleting implements Reporter. Nothing is deleted at many peers.
func (r *PeerResult) Deleting(report.Deleting) {}

// Deleted implements Reporter.
func (r *PeerResult) Deleted(report.Deletion) {}

// Total implements Reporter.
func (r *PeerResult) Total(report.Total) error { return nil }

// Fail implements Reporter.
func (r *PeerResult) Fail(error) {}

// Fleet reports on a command with many peers, as text or as JSON lines. Safe for concurrent use.
type Fleet struct {
	events *Events // nil: as text
	out    io.Writer
	screen *Screen // nil: no progress
	quiet  bool
	silent bool // about progress

	mu         sync.Mutex
	total      report.Total // of all peers, whose number is Sources
	notStarted int64        // peers: the command ended before
	ended      int64
	failures   []error
	moved      map[int]int64 // bytes, by the line of a peer that receives now
}

// NewFleet returns the Fleet of a form. Events go to stdout; text goes to stderr, whose screen is nil
// unless it is a terminal that can move its cursor.
func NewFleet(stdout, stderr io.Writer, screen *Screen, form Form, log zerolog.Logger) *Fleet {
	f := &Fleet{
		events: NewEvents(stdout, form.Output, log), out: stderr, screen: screen, quiet: form.Quiet,
		moved: map[int]int64{},
	}
	f.silent = form.hidesProgress()
	if f.events != nil || f.silent {
		f.screen = nil
	}
	return f
}

// Begin is called with the number of peers before the first one is tried.
func (f *Fleet) Begin(peers int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total.Sources = int64(peers)
}

// moves says how many bytes a peer has received so far. It is at the given line of the list.
func (f *Fleet) moves(line int, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moved[line] = bytes
	f.show()
}

// Ended reports the result of a peer.
func (f *Fleet) Ended(r *PeerResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.moved, r.Line)
	f.ended++
	f.total.Files += r.Done.Files
	f.total.Bytes += r.Done.Bytes
	f.total.DryRun = f.total.DryRun || r.Done.DryRun
	if r.Err != nil {
		f.total.Failed++
		f.failures = append(f.failures, r.Err)
	}
	f.events.Write("peer", eventOf(r))
	if f.events == nil && (r.Err != nil || !f.quiet) {
		fmt.Fprintln(f.out, r)
	}
	f.show()
}

// WaitOutput returns how the wait for the peer at a line of the list is said: with its name, by the line or event that
// is written every 10 s where there is no progress line.
func (f *Fleet) WaitOutput(name string, line int) WaitOutput {
	if f.screen != nil || f.silent {
		return WaitOutput{}
	}
	return WaitOutput{Say: func(w report.Wait, lasted time.Duration) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.events == nil {
			fmt.Fprintf(f.out, "wait  %s: %s\n", quote.Printable(name), w.Lines(lasted)[0])
			return
		}
		event := waitingOf(w, lasted)
		event.Peer, event.Line = name, line
		f.events.Write("waiting", event)
	}}
}

// NotStarted reports that the command ended with err before it tried a peer.
func (f *Fleet) NotStarted(name string, line int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notStarted++
	event := eventOf(&PeerResult{Name: name, Line: line, Err: err})
	event.NotStarted = true
	f.events.Write("peer", event)
}

// Total reports the sum of all peers. It returns an error if what was reported could not be written, or one that says
// how many peers failed.
func (f *Fleet) Total(elapsed time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total.Elapsed = elapsed
	if f.screen != nil {
		f.screen.show("")
	}
	t := f.total
	f.events.Write("peers", peersEvent{
		Peers: t.Sources, Failed: t.Failed, NotStarted: f.notStarted, Files: t.Files, Bytes: t.Bytes,
		Elapsed: t.Elapsed.Seconds(), DryRun: t.DryRun,
	})
	if f.events == nil && !f.quiet {
		fmt.Fprintf(f.out, "total %s\n", totalText(t, "peer", f.notStarted))
	}
	return errors.Join(somePeers(t, f.failures), f.events.Unwritten(copyUnwritten))
}

// Fail reports the error of the command as an event. Its line is the caller's.
func (f *Fleet) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events.Fail(err)
}

// show updates the progress line. f.mu is held.
func (f *Fleet) show() {
	if f.screen != nil {
		f.screen.show(whatFits(f.fields(), f.screen.width()-interruptWidth))
	}
}

// fields returns how far the command is, with mu held.
func (f *Fleet) fields() []string {
	return []string{
		fmt.Sprintf("%s/%s", quantity.Comma(f.ended), quantity.Count(f.total.Sources, "peer")),
		phrase.Join(", ", countOf(int64(len(f.moved)), "running"), countOf(f.total.Failed, "failed")),
		quantity.Bytes(uint64(f.bytes())),
	}
}

// bytes returns how many bytes all peers have received so far, with mu held.
func (f *Fleet) bytes() int64 {
	bytes := f.total.Bytes
	for _, moved := range f.moved {
		bytes += moved
	}
	return bytes
}

// Watch answers each signal of asked with the progress of the command, until stop is called. Then it calls peers, which
// asks each running copy.
func (f *Fleet) Watch(asked <-chan os.Signal, peers func()) (stop func()) {
	began := time.Now()
	return background.Answer(asked, func() {
		f.answer(time.Since(began))
		peers()
	})
}

// waits reports the progress of the copy to a peer, and what it waits for.
func (f *Fleet) waits(of *PeerResult, s job.Sample, waits []job.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rate := float64(s.Moved-s.Resumed) / max(s.Elapsed, time.Millisecond).Seconds()
	if f.events != nil {
		f.events.Write("progress", progressEvent{
			Peer: of.Name, Line: of.Line, Phase: s.Phase.String(), Bytes: s.Moved, Rate: rate,
			Elapsed: s.Elapsed.Seconds(), Waits: waits,
		})
		return
	}
	text := "the daemon has not begun the copy"
	if s.Phase != job.Meeting {
		text = progressLine(s, rate, 0)
	}
	for _, each := range waits {
		text += "; " + each.Lines()[0]
	}
	fmt.Fprintf(f.out, "run   %s: %s\n", quote.Printable(of.Name), text)
}

func (f *Fleet) answer(elapsed time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.events == nil {
		fmt.Fprintln(f.out, phrase.Join("  ", f.fields()...))
		return
	}
	line := progressEvent{Phase: job.Moving.String(), Bytes: f.bytes(), Elapsed: elapsed.Seconds()}
	line.Rate = float64(line.Bytes) / max(line.Elapsed, time.Millisecond.Seconds())
	f.events.Write("progress", line)
}

// String returns the line about the peer.
func (r *PeerResult) String() string {
	name := quote.Printable(r.Name)
	if r.Err != nil {
		return fmt.Sprintf("fail  %s: %s", name, r.reason())
	}
	did, copied := "ok    ", "copied"
	if r.Done.DryRun {
		did, copied = "plan  ", "to copy"
	}
	if r.Done.Files == 0 && !r.Done.DryRun {
		return fmt.Sprintf("%s%s: already up to date%s", did, name, r.sum())
	}
	return fmt.Sprintf("%s%s: %s %s, %s in %s%s%s", did, name, quantity.Count(r.Done.Files, "file"), copied,
		quantity.Bytes(uint64(r.Done.Bytes)), round(r.Done.Elapsed), r.transport(), r.sum())
}

// moved reports whether content was copied, so that it is known how.
func (r *PeerResult) moved() bool { return r.Last.Protocol != 0 && r.Done.Files > 0 && !r.Done.DryRun }

// transport returns how content has reached a peer on another machine.
func (r *PeerResult) transport() string {
	if r.Path.Address == "" || !r.moved() {
		return ""
	}
	return "  " + transportTitle(r.Last) + " (" + protection(r.Last, r.Path) + ")"
}

func (r *PeerResult) sum() string {
	if r.Sum.Algorithm() == digest.None {
		return ""
	}
	return "  " + r.Sum.String()
}

// reason returns why the peer failed, in the words of its sources.
func (r *PeerResult) reason() string {
	if len(r.Causes) == 0 {
		return report.Sentence(r.Err)
	}
	sentences := make([]string, len(r.Causes))
	for i, err := range r.Causes {
		sentences[i] = report.Sentence(err)
	}
	return strings.Join(sentences, "; ")
}

// somePeers returns the error of a command some of whose peers failed, nil if none has.
func somePeers(t report.Total, failures []error) error {
	if len(failures) == 0 {
		return nil
	}
	return exit.Errorf(report.CommonCode(int(t.Sources), failures),
		"see the lines above, and run the same command for the rest",
		"%d of %s failed", t.Failed, quantity.Count(t.Sources, "peer"))
}

// The events of a command with many peers.
type (
	peerEvent struct {
		Peer          string  `json:"peer"`
		Line          int     `json:"line"`
		Sources       int64   `json:"sources"`
		Failed        int64   `json:"failed"`
		Files         int64   `json:"files"`
		Bytes         int64   `json:"bytes"`
		Elapsed       float64 `json:"elapsed_seconds"`
		Digest        string  `json:"digest,omitempty"`
		Authenticated *bool   `json:"authenticated,omitempty"`
		Fingerprint   string  `json:"peer_fingerprint,omitempty"`
		PeerMachine   string  `json:"peer_machine,omitempty"`
		PeerUser      string  `json:"peer_user,omitempty"`
		DataPath      string  `json:"data_path,omitempty"`
		Transport     string  `json:"transport,omitempty"`
		Encrypted     *bool   `json:"encrypted,omitempty"`
		Code          int     `json:"code"`
		Message       string  `json:"message,omitempty"`
		NotStarted    bool    `json:"not_started,omitempty"`
		DryRun        bool    `json:"dry_run,omitempty"`
	}
	peersEvent struct {
		Peers      int64   `json:"peers"`
		Failed     int64   `json:"failed"`
		NotStarted int64   `json:"not_started"`
		Files      int64   `json:"files"`
		Bytes      int64   `json:"bytes"`
		Elapsed    float64 `json:"elapsed_seconds"`
		DryRun     bool    `json:"dry_run,omitempty"`
	}
)

func eventOf(r *PeerResult) peerEvent {
	line := peerEvent{
		Peer: r.Name, Line: r.Line, Sources: r.Done.Sources, Failed: r.Done.Failed, Files: r.Done.Files,
		Bytes: r.Done.Bytes, Elapsed: r.Done.Elapsed.Seconds(), Code: exit.Code(r.Err), DryRun: r.Done.DryRun,
	}
	if r.Sum.Algorithm() != digest.None {
		line.Digest = r.Sum.String()
	}
	if peer := r.Path.Peer; peer != nil {
		line.Authenticated, line.Fingerprint = &peer.Authenticated, peer.Fingerprint
		line.PeerMachine, line.PeerUser = peer.Machine, peer.User
	}
	if r.moved() {
		line.DataPath, line.Transport = r.Last.DataPath.String(), r.Last.Transport
		line.Encrypted = r.Path.OfNetwork(r.Last.DataPath.Encrypts())
	}
	if r.Err != nil {
		line.Message = r.reason()
	}
	return line
}
