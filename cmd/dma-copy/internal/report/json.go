package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// eventsVersion is the version of the events. It changes only if a field is removed or changes its meaning;
// docs/events.schema.json describes all of them.
const eventsVersion = 1

// The events, each one line. Fields with unknown values are left out.
type (
	eventHeader struct {
		Version int    `json:"v"`
		Type    string `json:"type"`
		Time    string `json:"time"`
	}
	helloEvent struct {
		eventHeader
		Software        string `json:"software"`
		Side            string `json:"side"`
		Device          string `json:"device"`
		Driver          string `json:"driver"`
		Hardware        bool   `json:"hardware"`
		Protocol        string `json:"protocol"`
		ProtocolVersion int    `json:"protocol_version,omitempty"`
		Peer            string `json:"peer,omitempty"`
	}
	planEvent struct {
		eventHeader
		File       string `json:"file"`
		Direction  string `json:"direction"`
		Bytes      *int64 `json:"bytes,omitempty"`
		Chunk      int64  `json:"chunk,omitempty"`
		Depth      int    `json:"depth,omitempty"`
		Digest     string `json:"digest,omitempty"`
		Durability string `json:"durability,omitempty"`
		Resumed    int64  `json:"resumed_bytes"`
	}
	progressEvent struct {
		eventHeader
		Phase   string             `json:"phase"`
		Bytes   int64              `json:"bytes"`
		Total   *int64             `json:"total_bytes,omitempty"`
		Rate    float64            `json:"bytes_per_second"`
		Elapsed float64            `json:"elapsed_seconds"`
		Stages  map[string]float64 `json:"stages,omitempty"`
	}
	fileEvent struct {
		eventHeader
		File       string `json:"file"`
		Direction  string `json:"direction"`
		Bytes      int64  `json:"bytes"`
		Verified   bool   `json:"verified"`
		Digest     string `json:"digest,omitempty"`
		Durability string `json:"durability,omitempty"`
	}
	retryEvent struct {
		eventHeader
		Offset int64 `json:"offset"`
		Bytes  int64 `json:"bytes"`
	}
	warningEvent struct {
		eventHeader
		Message string `json:"message"`
	}
	errorEvent struct {
		eventHeader
		Code    int    `json:"code"`
		Message string `json:"message"`
		Kept    int64  `json:"kept_bytes"`
	}
	summaryEvent struct {
		eventHeader
		Files      int                `json:"files"`
		Bytes      int64              `json:"bytes"`
		Resumed    int64              `json:"resumed_bytes"`
		Copied     int64              `json:"copied_bytes"`
		Retries    int64              `json:"retries"`
		Elapsed    float64            `json:"elapsed_seconds"`
		Rate       float64            `json:"bytes_per_second"`
		Driver     string             `json:"driver"`
		Hardware   bool               `json:"hardware"`
		Protocol   string             `json:"protocol"`
		Verified   bool               `json:"verified"`
		Readback   bool               `json:"readback"`
		Changing   bool               `json:"allow_changing"`
		Messages   int64              `json:"messages,omitempty"`
		Chunk      int64              `json:"chunk,omitempty"`
		Depth      int                `json:"depth,omitempty"`
		Stages     map[string]float64 `json:"stages,omitempty"`
		Bottleneck string             `json:"bottleneck,omitempty"`

		Unconfirmed string `json:"unconfirmed,omitempty"`
	}
)

// jsonReporter writes a copy as JSON lines.
type jsonReporter struct {
	encoder *json.Encoder
	every   time.Duration
	now     func() time.Time
	file    string
	by      Path
	native  bool
	speed   speed
	log     zerolog.Logger
	failed  error // of lines that could not be written
	closed  bool  // the reader closed its end; nothing is written any more
}

var _ Reporter = (*jsonReporter)(nil)

func newJSON(out io.Writer, s config.Copy, log zerolog.Logger) *jsonReporter {
	p := &jsonReporter{encoder: json.NewEncoder(out), every: time.Second, now: time.Now, file: s.File, log: log}
	if s.Progress == config.ProgressNever || s.Progress == config.ProgressAuto && s.Quiet {
		p.every = 0
	}
	return p
}

// write writes an event. Once the reader has closed its end, further events are dropped; any other error is returned
// by Succeed.
func (p *jsonReporter) write(line any) {
	if p.closed {
		return
	}
	err := p.encoder.Encode(line)
	if errors.Is(err, syscall.EPIPE) {
		p.closed = true
		p.log.Warn().Err(err).Msg("the reader closed the event output: continuing without events")
		return
	}
	p.failed = errors.Join(p.failed, err)
}

func (p *jsonReporter) start(kind string) eventHeader {
	return eventHeader{Version: eventsVersion, Type: kind, Time: p.now().UTC().Format(time.RFC3339Nano)}
}

func (p *jsonReporter) Begin(by Path) { p.by = by }

func (p *jsonReporter) Event(e dmaxfer.Event) {
	switch e := e.(type) {
	case dmaxfer.PeerKnown:
		p.native = e.Protocol == negotiate.Native
		p.write(helloEvent{
			eventHeader: p.start("hello"), Software: p.by.Software, Side: roleOf(p.by.Side), Device: p.by.Device,
			Driver:   p.by.Driver,
			Hardware: p.by.Hardware, Protocol: e.Protocol.String(), ProtocolVersion: e.Version, Peer: e.Software,
		})
	case dmaxfer.Planned:
		p.write(p.plan(e))
	case dmaxfer.SentAgain:
		p.write(retryEvent{p.start("retry"), e.Offset, e.Length})
	case dmaxfer.Warned:
		p.write(warningEvent{p.start("warning"), e.Text})
	}
}

func (p *jsonReporter) plan(e dmaxfer.Planned) planEvent {
	line := planEvent{
		eventHeader: p.start("plan"), File: p.file, Direction: direction(e.Sent), Bytes: known(e.Size), Chunk: e.Chunk,
		Depth:   e.Depth,
		Resumed: e.Resumed,
	}
	if p.native {
		line.Digest, line.Durability = e.Digest.String(), e.Durability.String()
	}
	return line
}

func (p *jsonReporter) Interval() time.Duration { return p.every }

func (p *jsonReporter) Progress(s dmaxfer.Sample) {
	if s.Phase == dmaxfer.Meeting {
		return // the hello event ends this phase
	}
	p.write(progressEvent{
		eventHeader: p.start("progress"), Phase: s.Phase.String(), Bytes: s.Moved, Total: known(s.Total),
		Rate:    p.speed.update(s),
		Elapsed: s.Elapsed.Seconds(), Stages: stagesOf(s.Shares),
	})
}

func (p *jsonReporter) Succeed(s dmaxfer.Summary) error {
	compared := s.Sum.Algorithm() != digest.None
	file := fileEvent{
		eventHeader: p.start("file"), File: s.Path, Direction: direction(s.Sent), Bytes: s.Size, Verified: compared,
	}
	if compared {
		file.Digest = s.Sum.String()
	}
	if p.native {
		file.Durability = s.Durability.String()
	}
	p.write(file)
	p.write(p.summary(s, compared))
	if p.failed != nil {
		return fmt.Errorf("the copy is done, but not all of its events could be written: %w", p.failed)
	}
	return nil
}

func (p *jsonReporter) summary(s dmaxfer.Summary, compared bool) summaryEvent {
	line := summaryEvent{
		eventHeader: p.start("summary"), Files: 1, Bytes: s.Size, Resumed: s.Resumed, Copied: copied(s),
		Retries: s.Retries,
		Elapsed: s.Elapsed.Seconds(), Rate: bytesPerSecond(s), Driver: p.by.Driver, Hardware: p.by.Hardware,
		Protocol: s.Protocol.String(), Verified: compared, Readback: s.Readback, Changing: s.Changing,
		Messages: s.Messages, Chunk: s.Chunk, Depth: s.Depth,
		Stages: stagesOf(s.Shares), Unconfirmed: s.Unconfirmed,
	}
	if busy := s.Shares.Busiest(); s.Shares[busy] > 0 {
		line.Bottleneck = stageKey(busy)
	}
	return line
}

func (p *jsonReporter) Fail(err error) {
	line := errorEvent{eventHeader: p.start("error"), Code: ExitCode(err), Message: Sentence(err)}
	if failed, is := errors.AsType[*SideError](err); is {
		line.Kept = failed.Kept
	}
	p.write(line)
}

// known returns a pointer to size, or nil for a stream, whose size is unknown.
func known(size int64) *int64 {
	if size == dmaxfer.Unknown {
		return nil
	}
	return &size
}

func direction(sent bool) string {
	if sent {
		return "send"
	}
	return "receive"
}

// roleOf returns the side as --role spells it.
func roleOf(side negotiate.Side) string {
	if side == negotiate.DPU {
		return string(config.RoleDPU)
	}
	return string(config.RoleHost)
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
