package output

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/report"
)

// eventsVersion is the version of the events. It changes only if a field is removed or changes its meaning;
// docs/events.schema.json describes all of them.
const eventsVersion = 1

// The events, each one line that begins with an eventHeader. Fields with unknown values are left out.
type (
	eventHeader struct {
		Version int    `json:"v"`
		Type    string `json:"type"`
		Time    string `json:"time"`
	}
	helloEvent struct {
		Software        string `json:"software"`
		Side            string `json:"side"`
		Device          string `json:"device"`
		Address         string `json:"address,omitempty"`
		Driver          string `json:"driver"`
		Hardware        bool   `json:"hardware"`
		Protocol        string `json:"protocol"`
		ProtocolVersion int    `json:"protocol_version,omitempty"`
		Peer            string `json:"peer,omitempty"`
		PeerMachine     string `json:"peer_machine,omitempty"`
		PeerUser        string `json:"peer_user,omitempty"`
		PeerFile        string `json:"peer_file,omitempty"`
		Authenticated   *bool  `json:"authenticated,omitempty"`
		PeerKey         string `json:"peer_key,omitempty"`
		PeerFingerprint string `json:"peer_fingerprint,omitempty"`
	}
	planEvent struct {
		FileName
		Target     string `json:"target,omitempty"`
		Remote     string `json:"remote,omitempty"`
		Direction  string `json:"direction"`
		Tree       bool   `json:"tree,omitempty"`
		Bytes      *int64 `json:"bytes,omitempty"`
		Chunk      int64  `json:"chunk,omitempty"`
		Depth      int    `json:"depth,omitempty"`
		Digest     string `json:"digest,omitempty"`
		Durability string `json:"durability,omitempty"`
		Resumed    int64  `json:"resumed_bytes"`
	}
	progressEvent struct {
		Peer    string             `json:"peer,omitempty"`
		Line    int                `json:"line,omitempty"`
		Phase   string             `json:"phase"`
		Bytes   int64              `json:"bytes"`
		Total   *int64             `json:"total_bytes,omitempty"`
		Rate    float64            `json:"bytes_per_second"`
		Elapsed float64            `json:"elapsed_seconds"`
		Stages  map[string]float64 `json:"stages,omitempty"`
		*treeProgress
		Waits []job.Snapshot `json:"waits,omitempty"`
	}
	treeProgress struct {
		Entries      int64 `json:"entries"`
		EntriesFound int64 `json:"entries_found"`
		BytesFound   int64 `json:"bytes_found"`
		Walked       bool  `json:"walked"`
	}
	fileEvent struct {
		FileName
		Target     string `json:"target,omitempty"`
		Remote     string `json:"remote,omitempty"`
		Direction  string `json:"direction"`
		Kind       string `json:"kind,omitempty"`
		Action     string `json:"action"`
		Reason     string `json:"reason,omitempty"`
		Bytes      int64  `json:"bytes"`
		Verified   bool   `json:"verified"`
		Digest     string `json:"digest,omitempty"`
		Durability string `json:"durability,omitempty"`
		Code       int    `json:"code,omitempty"`
		Message    string `json:"message,omitempty"`
	}
	retryEvent struct {
		Offset int64 `json:"offset"`
		Bytes  int64 `json:"bytes"`
	}
	warningEvent struct {
		Message string `json:"message"`
	}
	errorEvent struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Kept    int64  `json:"kept_bytes"`
	}
	summaryEvent struct {
		Files      int64              `json:"files"`
		Bytes      int64              `json:"bytes"`
		Resumed    int64              `json:"resumed_bytes"`
		Copied     int64              `json:"copied_bytes"`
		Retries    int64              `json:"retries"`
		Elapsed    float64            `json:"elapsed_seconds"`
		Rate       float64            `json:"bytes_per_second"`
		Driver     string             `json:"driver"`
		Hardware   bool               `json:"hardware"`
		Protocol   string             `json:"protocol"`
		DataPath   string             `json:"data_path"`
		Transport  string             `json:"transport,omitempty"`
		Encrypted  *bool              `json:"encrypted,omitempty"`
		Verified   bool               `json:"verified"`
		Readback   bool               `json:"readback"`
		Changing   bool               `json:"allow_changing"`
		Messages   int64              `json:"messages,omitempty"`
		Chunk      int64              `json:"chunk,omitempty"`
		Depth      int                `json:"depth,omitempty"`
		Stages     map[string]float64 `json:"stages,omitempty"`
		Bottleneck string             `json:"bottleneck,omitempty"`
		UpToDate   bool               `json:"up_to_date,omitempty"`
		Existing   bool               `json:"existing,omitempty"`
		DryRun     bool               `json:"dry_run,omitempty"`
		Tree       *treeCounts        `json:"tree,omitempty"`

		Unconfirmed string `json:"unconfirmed,omitempty"`
	}
	treeCounts struct {
		Files       int64 `json:"files"`
		Directories int64 `json:"directories"`
		Symlinks    int64 `json:"symlinks"`
		HardLinks   int64 `json:"hard_links"`
		Updated     int64 `json:"updated"`
		Unchanged   int64 `json:"unchanged"`
		Existing    int64 `json:"existing"`
		Skipped     int64 `json:"skipped"`
		Failed      int64 `json:"failed"`
		Unreadable  int64 `json:"unreadable,omitempty"`
		DryRun      bool  `json:"dry_run"`
	}
)

// Events writes events as JSON lines. A nil one writes nothing: what it belongs to writes text. It is used by one
// goroutine at a time.
type Events struct {
	out    io.Writer
	now    func() time.Time
	log    zerolog.Logger
	failed error // of the first line that could not be written; nothing is written any more
	closed bool  // the reader closed its end; nothing is written any more
}

// NewEvents returns the Events of a form, nil for text.
func NewEvents(out io.Writer, form option.OutputForm, log zerolog.Logger) *Events {
	if form != option.OutputJSON {
		return nil
	}
	return &Events{out: out, now: time.Now, log: log}
}

// Write writes an event of a type. Once the reader has closed its end, further events are dropped; any other error is
// kept in failed.
func (w *Events) Write(kind string, event any) {
	if w == nil || w.closed || w.failed != nil {
		return
	}
	head, err := json.Marshal(eventHeader{eventsVersion, kind, w.now().UTC().Format(time.RFC3339Nano)})
	fields, fieldsErr := json.Marshal(event)
	if err = errors.Join(err, fieldsErr); err == nil {
		line := append(append(head[:len(head)-1], ','), fields[1:]...) // one object of both
		_, err = w.out.Write(append(quote.JSON(line), '\n'))
	}
	if errors.Is(err, syscall.EPIPE) {
		w.closed = true
		w.log.Warn().Err(err).Msg("the reader closed the event output: continuing without events")
		return
	}
	w.failed = err
}

const copyUnwritten = "the copy is done, but not all of its events could be written"

// Unwritten returns an error that begins with a message if not all events could be written.
func (w *Events) Unwritten(message string) error {
	if w == nil || w.failed == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", message, w.failed)
}

// jsonReporter writes a copy as JSON lines.
type jsonReporter struct {
	*Events
	every   time.Duration
	entries bool // each entry of a tree has an event, not only those that failed
	path    report.Path
	native  bool
	planned job.Planned
	speed   speed
	began   time.Time // when the wait for the peer began
	said    time.Time // when it was said last that the copy waits
}

var _ report.Reporter = (*jsonReporter)(nil)

func newJSON(out io.Writer, f Form, log zerolog.Logger) *jsonReporter {
	r := &jsonReporter{
		Events: NewEvents(out, option.OutputJSON, log), every: time.Second,
		entries: f.Events == EventsAll || f.DryRun,
	}
	if f.hidesProgress() {
		r.every = 0
	}
	return r
}

func (r *jsonReporter) Begin(path report.Path) {
	if path.Warning != "" && r.path.Warning == "" { // once for several sources
		r.Write("warning", warningEvent{path.Warning})
	}
	r.path, r.planned, r.speed = path, job.Planned{}, speed{}
	r.began = time.Now()
	r.said = r.began
}

func (r *jsonReporter) Event(e job.Event) {
	switch e := e.(type) {
	case job.PeerKnown:
		r.native = e.Protocol == wire.Native
		hello := helloOf(r.path, e.Protocol.String(), e.Version, e.Software)
		if at := e.Location; at != (native.Location{}) {
			hello.PeerMachine, hello.PeerUser, hello.PeerFile = at.Machine, at.User, at.Path
		}
		r.Write("hello", hello)
	case job.Planned:
		r.planned = e
		r.Write("plan", r.plan(e))
	case job.FileDone:
		if r.entries || e.Action == job.Failed {
			r.Write("file", r.entry(e))
		}
	case job.Retransmitted:
		r.Write("retry", retryEvent{e.Offset, e.Length})
	case job.Warned:
		r.Write("warning", warningEvent{e.Text})
	}
}

// Hello writes the event of a peer that is known.
func (w *Events) Hello(path report.Path, protocol string, version int, peer string) {
	w.Write("hello", helloOf(path, protocol, version, peer))
}

func helloOf(path report.Path, protocol string, version int, peer string) helloEvent {
	line := helloEvent{
		Software: path.Software, Side: path.Role(), Device: path.Device,
		Address: path.Address, Driver: path.Driver, Hardware: path.Hardware,
		Protocol: protocol, ProtocolVersion: version, Peer: peer,
	}
	if p := path.Peer; p != nil {
		line.Authenticated, line.PeerKey, line.PeerFingerprint = &p.Authenticated, p.Key, p.Fingerprint
		line.PeerMachine, line.PeerUser = p.Machine, p.User
	}
	return line
}

func (r *jsonReporter) plan(e job.Planned) planEvent {
	line := planEvent{
		FileName: NameInEvent(r.path.File), Target: r.path.Target, Remote: r.path.Remote,
		Direction: r.direction(e.Sent), Tree: e.Tree, Bytes: known(e.Size),
		Chunk: e.Chunk, Depth: e.Depth, Resumed: e.Resumed,
	}
	if r.native {
		line.Digest, line.Durability = e.Digest.String(), e.Durability.String()
	}
	return line
}

// EntryKind returns the kind of an entry in events.
func EntryKind(kind wire.EntryKind) string {
	return map[wire.EntryKind]string{
		wire.EntryFile: "file", wire.EntryDirectory: "directory", wire.EntrySymlink: "symlink",
		wire.EntryHardLink: "hard-link", wire.EntrySpecial: "special",
	}[kind]
}

// entry returns the event of an entry of a tree.
func (r *jsonReporter) entry(e job.FileDone) fileEvent {
	line := fileEvent{
		FileName:  NameInEvent(cmp.Or(e.Path, ".")),
		Direction: r.direction(r.planned.Sent), Kind: EntryKind(e.Kind), Action: e.Action.String(), Bytes: e.Bytes,
		Reason: e.Change.String(),
	}
	switch e.Action {
	case job.Copied:
		line.Verified = e.Kind == wire.EntryFile && r.planned.Digest != digest.None
		line.Durability = r.planned.Durability.String()
	case job.Failed:
		line.Code, line.Message = exit.Code(e.Err), report.EntryReason(r.path.Side, e.Err)
	}
	return line
}

// FileName is the name of a file in an event.
type FileName struct {
	File string `json:"file"`
	Raw  []byte `json:"file_base64,omitempty"` // Base64, of a name that is not UTF-8
}

// NameInEvent returns a path for an event, with its bytes if it is not UTF-8 and the text shows replacement characters.
func NameInEvent(path string) FileName {
	if utf8.ValidString(path) {
		return FileName{File: path}
	}
	return FileName{File: path, Raw: []byte(path)}
}

func (r *jsonReporter) Interval() time.Duration { return r.every }

func (r *jsonReporter) Progress(s job.Sample) {
	if s.Phase == job.Meeting { // which the hello event ends
		if time.Since(r.said) < lineInterval {
			return
		}
		r.said = time.Now()
	}
	r.Asked(s, nil)
}

func (r *jsonReporter) Asked(s job.Sample, waits []job.Snapshot) {
	if s.Phase == job.Meeting && r.path.Wait.For != "" {
		r.Write("waiting", waitingOf(r.path.Wait, time.Since(r.began)))
		return
	}
	line := progressEvent{
		Phase: s.Phase.String(), Bytes: s.Moved, Total: totalOf(s),
		Rate: r.speed.update(s), Elapsed: s.Elapsed.Seconds(), Stages: stagesOf(s.Shares),
		Waits: waits,
	}
	if s.Phase == job.Meeting {
		line.Total = nil
	}
	if s.FilesFound > 0 {
		line.treeProgress = &treeProgress{s.Files, s.FilesFound, s.Found, s.Walked}
	}
	r.Write("progress", line)
}

func (r *jsonReporter) Result(s job.Summary) error {
	if s.Tree == nil {
		r.Write("file", r.single(s))
	}
	r.Write("summary", r.summary(s))
	return r.Unwritten(copyUnwritten)
}

// single returns the event of a file or a stream that is complete.
func (r *jsonReporter) single(s job.Summary) fileEvent {
	done := singleFile(s)
	line := fileEvent{
		FileName: NameInEvent(s.Path), Target: s.Target, Remote: r.path.Remote,
		Direction: r.direction(s.Sent), Action: done.Action.String(), Reason: done.Change.String(),
		Bytes: s.Size, Verified: compared(s, r.planned),
	}
	if s.Sum.Algorithm() != digest.None {
		line.Digest = s.Sum.String()
	}
	if r.native && !s.UpToDate && !s.Existing && !s.DryRun {
		line.Durability = s.Durability.String()
	}
	return line
}

// compared reports whether both sides have computed the same digests.
func compared(s job.Summary, planned job.Planned) bool {
	if s.Tree != nil {
		return planned.Digest != digest.None && !s.DryRun
	}
	return s.Sum.Algorithm() != digest.None
}

func (r *jsonReporter) summary(s job.Summary) summaryEvent {
	line := summaryEvent{
		Files: 1, Bytes: s.Size, Resumed: s.Resumed, Copied: copied(s),
		Retries: s.Retries, Elapsed: s.Elapsed.Seconds(), Rate: bytesPerSecond(s),
		Driver: r.path.Driver, Hardware: r.path.Hardware,
		Protocol: s.Protocol.String(), DataPath: s.DataPath.String(), Transport: s.Transport,
		Encrypted: r.path.OfNetwork(s.DataPath.Encrypts()),
		Verified:  compared(s, r.planned), Readback: s.Readback, Changing: s.Changing,
		Messages: s.Messages, Chunk: s.Chunk, Depth: s.Depth,
		Stages: stagesOf(s.Shares), UpToDate: s.UpToDate, Existing: s.Existing, DryRun: s.DryRun,
		Unconfirmed: s.Unconfirmed,
	}
	if t := s.Tree; t != nil {
		line.Files = t.Files
		line.Tree = &treeCounts{
			t.Files, t.Directories, t.Symlinks, t.HardLinks, t.Updated, t.Unchanged, t.Existing, t.Skipped, t.Failed,
			t.Unreadable, s.DryRun,
		}
	}
	if busy := s.Shares.Busiest(); s.Shares[busy] > 0 {
		line.Bottleneck = stageKey(busy)
	}
	return line
}

// Fail writes the error of a run as an event.
func (w *Events) Fail(err error) {
	line := errorEvent{Code: exit.Code(err), Message: report.Sentence(err)}
	if failed, is := errors.AsType[*report.SideError](err); is {
		line.Kept = failed.Kept
	}
	w.Write("error", line)
}

// known returns a pointer to size, or nil for a stream, whose size is unknown.
func known(size int64) *int64 {
	if size == job.Unknown {
		return nil
	}
	return &size
}

func (r *jsonReporter) direction(sent bool) string {
	switch {
	case r.path.Local:
		return "copy"
	case sent:
		return "send"
	}
	return "receive"
}

func stagesOf(shares pump.Shares) map[string]float64 {
	if shares == (pump.Shares{}) {
		return nil
	}
	stages := map[string]float64{}
	for stage, share := range shares {
		stages[stageKey(pump.Stage(stage))] = share
	}
	return stages
}

// stageKey returns the stage's name in the events.
func stageKey(stage pump.Stage) string { return strings.ReplaceAll(stage.String(), " ", "_") }

// Print prints a value as JSON, or its text; what names it in an error.
func Print(w io.Writer, form option.OutputForm, what string, value any, text string) error {
	var err error
	if form == option.OutputJSON {
		encoder := json.NewEncoder(quote.JSONWriter{To: w})
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(value)
	} else {
		_, err = io.WriteString(w, text)
	}
	if err != nil {
		return exit.Errorf(exit.Failure, "", "print the %s: %w", what, err)
	}
	return nil
}
