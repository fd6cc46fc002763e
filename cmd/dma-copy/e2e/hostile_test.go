package e2e

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hostile is what a bad peer says in place of a step's own message.
type hostile struct {
	name     string
	sender   string // who has the file: "host" or "dpu"
	step     string
	messages [][]byte
	code     int    // of our side
	told     bool   // the peer gets our STATUS(0), and still listens
	says     string // our side's line
}

var (
	garbage    = []byte("this is no descriptor")
	maxMessage = 4080
)

// Sizes that a peer may announce: beyond any file offset, beyond our limit, and within it but beyond any disk.
const (
	wholeNegative = -1
	halfNegative  = -1 << 63
	overLimit     = 1<<46 + 1
	overDisk      = 1 << 45
)

func just(message []byte) [][]byte { return [][]byte{message} }

func changed(message []byte, offset int, value byte) []byte {
	message = slices.Clone(message)
	message[offset] = value
	return message
}

// fill makes a message of a type as long as messages can be.
func fill(messageType byte) []byte {
	return append([]byte{messageType, 0, 0, 0}, make([]byte, maxMessage-4)...)
}

// lie is an EXPORT whose declared length is not that of its descriptor.
func lie(declared uint64) []byte {
	return slices.Concat([]byte{2, 0, 0, 0, 0, 0, 0, 0}, bigEndian(1<<20), bigEndian(declared), garbage)
}

var hostileHosts = []hostile{
	{"one byte", "host", "direction-sent", just([]byte{1}), 11, true, "too short for a type"},
	{"direction cut short", "host", "direction-sent", just(directionImage(true, 9)[:15]), 11, true, "15 bytes instead of 16"},
	{"direction too long", "host", "direction-sent", just(append(directionImage(true, 9), 0)), 11, true, "17 bytes instead of 16"},
	{"direction of 4080 bytes", "host", "direction-sent", just(fill(1)), 11, true, "4080 bytes instead of 16"},
	{"unknown type", "host", "direction-sent", just(fill(4)), 11, true, "unknown type"},
	{"bool of 2", "host", "direction-sent", just(changed(directionImage(true, 9), 4, 2)), 11, true, "file_in_host is 2"},
	{"size 2^64-1", "host", "direction-sent", just(directionImage(true, wholeNegative)), 11, true, "too large"},
	{"size 2^63", "host", "direction-sent", just(directionImage(true, halfNegative)), 11, true, "too large"},
	{"size over the limit", "host", "direction-sent", just(directionImage(true, overLimit)), 11, true, "too large"},
	{"size over the disk", "host", "direction-sent", just(directionImage(true, overDisk)), 5, true, "cannot hold dpu/file: it needs 32 TiB"},
	{"direction twice", "host", "direction-sent", [][]byte{directionImage(true, 9), directionImage(true, 9)}, 11, true, "out of order"},
	{"export first", "host", "direction-sent", just(exportImage(1<<20, garbage)), 11, true, "out of order"},
	{"success first", "host", "direction-sent", just(statusImage(true)), 11, true, "out of order"},
	{"failure first", "host", "direction-sent", just(statusImage(false)), 1, false, "DPU: the host reported a failure: see its error message"},
	{"export without descriptor", "host", "export-sent", just(exportImage(1<<20, nil)), 11, true, "too short for a descriptor"},
	{"declared one more", "host", "export-sent", just(lie(uint64(len(garbage)) + 1)), 11, true, "declares a descriptor"},
	{"declared one less", "host", "export-sent", just(lie(uint64(len(garbage)) - 1)), 11, true, "declares a descriptor"},
	{"declared the message", "host", "export-sent", just(lie(uint64(len(garbage)) + 24)), 11, true, "declares a descriptor"},
	{"declared 2^64-1", "host", "export-sent", just(lie(1<<64 - 1)), 11, true, "declares a descriptor"},
	{"garbage descriptor", "host", "export-sent", just(exportImage(1<<20, garbage)), 6, true, "importing the host's memory"},
	{"garbage to receive", "dpu", "export-sent", just(exportImage(1<<20, garbage)), 6, true, "importing the host's memory"},
	{"garbage of 4056 bytes", "host", "export-sent", just(exportImage(1<<20, fill(7)[24:])), 6, true, "importing the host's memory"},
	{"range that wraps", "host", "export-sent", just(exportImage(1<<64-2, garbage)), 11, true, "wrap around"},
	{"direction for export", "host", "export-sent", just(directionImage(true, 9)), 11, true, "out of order"},
	{"success for export", "host", "export-sent", just(statusImage(true)), 11, true, "out of order"},
	{"failure for export", "dpu", "export-sent", just(statusImage(false)), 1, false, "DPU: the host reported a failure: see its error message"},
}

var hostileDPUs = []hostile{
	{"one byte", "host", "direction-sent", just([]byte{3}), 11, true, "too short for a type"},
	{"answer cut short", "host", "direction-sent", just(directionImage(true, 0)[:8]), 11, true, "8 bytes instead of 16"},
	{"answer too long", "dpu", "direction-sent", just(fill(1)), 11, true, "4080 bytes instead of 16"},
	{"unknown type", "host", "direction-sent", just(fill(0)), 11, true, "unknown type"},
	{"bool of 255", "dpu", "direction-sent", just(changed(directionImage(false, 9), 4, 255)), 11, true, "file_in_host is 255"},
	{"has it too", "host", "direction-sent", just(directionImage(false, 9)), 11, true, "disagree"},
	{"has it not", "dpu", "direction-sent", just(directionImage(true, 0)), 11, true, "disagree"},
	{"size 2^64-1", "dpu", "direction-sent", just(directionImage(false, wholeNegative)), 11, true, "too large"},
	{"size 2^63", "dpu", "direction-sent", just(directionImage(false, halfNegative)), 11, true, "too large"},
	{"size over the limit", "dpu", "direction-sent", just(directionImage(false, overLimit)), 11, true, "too large"},
	{"size over the disk", "dpu", "direction-sent", just(directionImage(false, overDisk)), 5, true, "cannot hold host/file: it needs 32 TiB"},
	{"answer twice", "dpu", "direction-sent", [][]byte{directionImage(false, 1000), directionImage(false, 1000)}, 11, false, "out of order"},
	{"export for an answer", "host", "direction-sent", just(exportImage(1<<20, garbage)), 11, true, "out of order"},
	{"success for an answer", "dpu", "direction-sent", just(statusImage(true)), 11, true, "out of order"},
	{"refusal", "host", "direction-sent", just(statusImage(false)), 4, false, "the DPU refused"},
	{"status cut short", "host", "status-sent", just(statusImage(true)[:5]), 11, false, "5 bytes instead of 8"},
	{"status bool of 2", "dpu", "status-sent", just(changed(statusImage(true), 4, 2)), 11, false, "is_success is 2"},
	{"direction for status", "dpu", "status-sent", just(directionImage(false, 9)), 11, false, "out of order"},
	{"export for status", "host", "status-sent", just(exportImage(1<<20, garbage)), 11, false, "out of order"},
	{"failure", "dpu", "status-sent", just(statusImage(false)), 1, false, "host: the DPU reported a failure: see its error message"},
}

// TestHostileHost lets an unmodified host say wrong things to our DPU.
func TestHostileHost(t *testing.T) {
	t.Parallel()
	for _, h := range hostileHosts {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.put(h.sender, 1000)
			dpu := s.start("dpu", ourDPU)
			h.meets(s, dpu, s.start("host", refHost+h.flag()), "dpu")
		})
	}
}

// TestHostileDPU lets an unmodified DPU say wrong things to our host.
func TestHostileDPU(t *testing.T) {
	t.Parallel()
	for _, h := range hostileDPUs {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.put(h.sender, 1000)
			host := s.start("host", ourHost)
			h.meets(s, host, s.start("dpu", refDPU+h.flag()), "host")
		})
	}
}

// meets expects our side to refuse, in one line, to tell the peer where it is still listening, and to leave nothing.
func (h hostile) meets(s *stage, ours, peer side, where string) {
	ours.ends(h.code)
	if said := ours.stderr.String(); !strings.Contains(said, h.says) {
		s.t.Errorf("our side said %q, want %q", said, h.says)
	}
	if h.told {
		peer.ends(1)
		if err := peer.says(regexp.MustCompile(`STATUS\(0\) received`)); err != nil {
			s.t.Error(err)
		}
	}
	if where != h.sender {
		s.absent(where)
	}
	peer.kill()
	s.recovers(h.sender, false)
}

// flag makes the model say it.
func (h hostile) flag() string {
	texts := make([]string, len(h.messages))
	for i, message := range h.messages {
		texts[i] = hex.EncodeToString(message)
	}
	return "-send " + h.step + "=" + strings.Join(texts, ",")
}
