package job

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/quantity"
)

// Snapshot is what one side of a transfer waits for at one moment. Its JSON form is in docs/status.schema.json.
type Snapshot struct {
	Side string `json:"side"`
	Peer string `json:"peer"`           // the other side
	Role string `json:"role,omitempty"` // sender or receiver; empty before that is agreed

	// Busy is set if the transfer did not answer in time: the rest is not known then.
	Busy bool `json:"busy,omitempty"`

	State      string   `json:"state,omitempty"`       // of the session, as in docs/internals/protocol/native.md
	PeerHasTo  []string `json:"peer_has_to,omitempty"` // what has to be done next, such as "acknowledge 2 slots"
	HasTo      []string `json:"has_to,omitempty"`      // the same of this side
	Stalled    Age      `json:"no_progress_seconds"`   // since the last progress that this side has seen itself
	Reported   Age      `json:"reported_seconds"`      // since the last progress on either side, by the peer's word
	Silent     Age      `json:"silent_seconds"`        // since the last message of the peer
	Jobs       int      `json:"jobs"`                  // that have not returned: the lanes together, and slow calls
	Slots      int      `json:"slots_in_flight"`
	Depth      int      `json:"slots"`                     // 0: not known
	SlotsSince Age      `json:"slots_seconds"`             // since a slot was filled or released
	Unsent     int      `json:"unsent"`                    // items of the lanes that are in no message yet
	SentSince  Age      `json:"sent_seconds"`              // since the last message other than a heartbeat
	Sending    Age      `json:"sending_seconds,omitempty"` // since a message waits for room in the queue of the peer

	Open    int         `json:"open_entries"`      // that are not decided
	Entries []OpenEntry `json:"entries,omitempty"` // at most MaxOpenEntries of them, the oldest first
}

// OpenEntry is an entry of a Snapshot.
type OpenEntry struct {
	Number uint32 `json:"entry"`
	Path   string `json:"path,omitempty"`        // escaped as in a Go string; empty: not known
	Phase  string `json:"phase,omitempty"`       // as in protocol/native.md; none in the reference protocol
	Next   string `json:"next"`                  // what is to happen, such as "the sender is to send its content"
	Bytes  *int64 `json:"bytes,omitempty"`       // that the receiver has; nil: not known, or no file
	Total  *int64 `json:"total_bytes,omitempty"` // nil: not known
	Since  Age    `json:"no_progress_seconds"`   // since the last progress
}

// Age is how long ago something was, in JSON a number of seconds. The native protocol counts it in pulses of at most a
// tenth of a second, so that the time in which the process was stopped does not count.
type Age time.Duration

// MarshalJSON implements json.Marshaler.
func (a Age) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(a).Seconds(), 'f', 1, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Age) UnmarshalJSON(text []byte) error {
	seconds, err := strconv.ParseFloat(string(text), 64)
	*a = Age(seconds * float64(time.Second))
	return err
}

// String shows a tenth of a second.
func (a Age) String() string { return fmt.Sprintf("%.1fs", time.Duration(a).Seconds()) }

// MaxOpenEntries is how many entries a Snapshot describes.
const MaxOpenEntries = 8

// snapshotTime is how long a transfer may take to describe itself.
const snapshotTime = 500 * time.Millisecond

// RoleOf returns the role of a side in a Snapshot.
func RoleOf(sends bool) string {
	if sends {
		return "sender"
	}
	return "receiver"
}

// Lines returns the text of the snapshot: what the side waits for, slots, messages, and open entries, in a line each.
func (s Snapshot) Lines() []string {
	if s.Busy {
		return []string{fmt.Sprintf("the %s does not say what it waits for: no answer within %s", s.Side, snapshotTime)}
	}
	lines := []string{s.waits()}
	if s.Depth > 0 {
		lines = append(lines, fmt.Sprintf("slots: %d of %d in flight, last change %s ago", s.Slots, s.Depth,
			s.SlotsSince))
	}
	messages := fmt.Sprintf("messages: %d unsent, last one sent %s ago", s.Unsent, s.SentSince)
	if s.Sending > 0 {
		messages = fmt.Sprintf("messages: %d unsent, and one has waited for room for %s", s.Unsent, s.Sending)
	}
	lines = append(lines, messages)
	for _, e := range s.Entries {
		lines = append(lines, e.line())
	}
	if more := s.Open - len(s.Entries); more > 0 {
		lines = append(lines, fmt.Sprintf("... and %d more", more))
	}
	return lines
}

// waits says who has to do what, and since when nothing has happened.
func (s Snapshot) waits() string {
	line := fmt.Sprintf("the %s ", s.Side)
	switch {
	case len(s.PeerHasTo) > 0 && len(s.HasTo) > 0:
		line += fmt.Sprintf("waits for the %s to %s, and has to %s itself",
			s.Peer, listed(s.PeerHasTo), listed(s.HasTo))
	case len(s.PeerHasTo) > 0:
		line += fmt.Sprintf("waits for the %s to %s", s.Peer, listed(s.PeerHasTo))
	case len(s.HasTo) > 0:
		line += "has to " + listed(s.HasTo)
	default:
		line += "is in the state " + s.State
	}
	line += fmt.Sprintf("; last progress %s ago", s.Stalled)
	if s.Stalled-s.Reported >= Age(time.Second) {
		line += fmt.Sprintf(" (as the %s reports %s ago)", s.Peer, s.Reported)
	}
	line += fmt.Sprintf(", last message of the %s %s ago", s.Peer, s.Silent)
	if s.Jobs > 0 {
		line += fmt.Sprintf("; %s running here", quantity.Count(s.Jobs, "job"))
	}
	return line
}

func (e OpenEntry) line() string {
	line := fmt.Sprintf("entry %d", e.Number)
	if e.Path != "" {
		line += " " + e.Path
	}
	line += ": " + e.Next
	switch {
	case e.Bytes == nil:
	case e.Total == nil:
		line += ", " + quantity.Bytes(uint64(*e.Bytes)) + " transferred"
	default:
		line += fmt.Sprintf(", %s of %s transferred",
			quantity.Bytes(uint64(*e.Bytes)), quantity.Bytes(uint64(*e.Total)))
	}
	return line + fmt.Sprintf(", last progress %s ago", e.Since)
}

// listed joins the parts of a list in a sentence.
func listed(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// Stall is the beginning of the log lines about a transfer that is given up because of a timeout.
const Stall = "stalled: "

// LogStall logs what a side waits for that is about to be given up because of a timeout.
func LogStall(log *zerolog.Logger, s Snapshot) {
	for _, line := range s.Lines() {
		log.Warn().Msg(Stall + line)
	}
}

// description is a side of a transfer that can say what it waits for.
type description struct {
	describe func(ctx context.Context) Snapshot
}

// Describe has Snapshots return what describe does, until end is called. describe is called by any goroutine, and
// returns when ctx ends.
func (p *Progress) Describe(describe func(ctx context.Context) Snapshot) (end func()) {
	if p.within != nil {
		return p.within.Describe(describe)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	added := &description{describe}
	p.descriptions = append(p.descriptions, added)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.descriptions = slices.DeleteFunc(slices.Clone(p.descriptions),
			func(d *description) bool { return d == added })
	}
}

// Snapshots returns what the transfer waits for: one Snapshot, or one of each side for a copy within one process, and
// none before the transfer begins and after its end. It returns within half a second, regardless of what the transfer
// does. Any goroutine may call it, also for a nil Progress.
func (p *Progress) Snapshots() []Snapshot {
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTime)
	defer cancel()
	p.mu.Lock()
	descriptions := p.descriptions
	p.mu.Unlock()
	var all []Snapshot
	for _, each := range descriptions {
		all = append(all, each.describe(ctx))
	}
	return all
}
