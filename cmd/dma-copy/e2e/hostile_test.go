package e2e

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// badPeer is a model of the reference program that sends something wrong instead of the message of a step.
type badPeer struct {
	name     string
	sender   string // the side that has the file
	step     string
	messages [][]byte
	code     int    // of dma-copy
	notified bool   // the peer still listens and receives STATUS(0)
	stderr   string // part of dma-copy's error
}

var garbage = []byte("this is no descriptor")

const maxMessage = 4080 // bytes of a message of the software device

// Sizes that a peer may announce: beyond any file offset, beyond our limit, and within it but larger than any disk.
const (
	wholeNegative = -1
	halfNegative  = -1 << 63
	overLimit     = 1<<46 + 1
	overDisk      = 1 << 45
)

func single(message []byte) [][]byte { return [][]byte{message} }

func twice(message []byte) [][]byte { return [][]byte{message, message} }

func changed(message []byte, offset int, value byte) []byte {
	message = slices.Clone(message)
	message[offset] = value
	return message
}

// longest returns a message of a type that is as long as messages can be.
func longest(messageType byte) []byte {
	return append([]byte{messageType, 0, 0, 0}, make([]byte, maxMessage-4)...)
}

// exportDeclaring returns an EXPORT that declares this length for its descriptor, regardless of the real one.
func exportDeclaring(length uint64) []byte {
	return slices.Concat([]byte{2, 0, 0, 0, 0, 0, 0, 0}, bigEndian(1<<20), bigEndian(length), garbage)
}

var badHosts = []badPeer{
	{"one byte", "host", "direction-sent", single([]byte{1}), exitProtocol, true, "too short for a type"},
	{"direction cut short", "host", "direction-sent", single(directionImage(true, 9)[:15]), exitProtocol, true,
		"a field of 8 bytes, but only 7 are left"},
	{"direction too long", "host", "direction-sent", single(append(directionImage(true, 9), 0)), exitProtocol, true,
		"1 bytes more than its fields have"},
	{"direction of 4080 bytes", "host", "direction-sent", single(longest(1)), exitProtocol, true,
		"4064 bytes more than its fields have"},
	{"unknown type", "host", "direction-sent", single(longest(4)), exitProtocol, true, "unknown type"},
	{"bool of 2", "host", "direction-sent", single(changed(directionImage(true, 9), 4, 2)), exitProtocol, true,
		"file_in_host is 2"},
	{"size 2^64-1", "host", "direction-sent", single(directionImage(true, wholeNegative)), exitProtocol, true,
		"too large"},
	{"size 2^63", "host", "direction-sent", single(directionImage(true, halfNegative)), exitProtocol, true,
		"too large"},
	{"size over the limit", "host", "direction-sent", single(directionImage(true, overLimit)), exitProtocol, true,
		"too large"},
	{"size over the disk", "host", "direction-sent", single(directionImage(true, overDisk)), exitTarget, true,
		"cannot hold dpu/file: it needs 32 TiB"},
	{"direction twice", "host", "direction-sent", twice(directionImage(true, 9)), exitProtocol, true, "out of order"},
	{"export first", "host", "direction-sent", single(exportImage(1<<20, garbage)), exitProtocol, true, "out of order"},
	{"success first", "host", "direction-sent", single(statusImage(true)), exitProtocol, true, "out of order"},
	{"failure first", "host", "direction-sent", single(statusImage(false)), exitFailure, false,
		"DPU: the host reported a failure: see its error message"},
	{"export without descriptor", "host", "export-sent", single(exportImage(1<<20, nil)), exitProtocol, true,
		"the descriptor is empty"},
	{"declared one more", "host", "export-sent", single(exportDeclaring(uint64(len(garbage)) + 1)), exitProtocol, true,
		"but only 21 are left"},
	{"declared one less", "host", "export-sent", single(exportDeclaring(uint64(len(garbage)) - 1)), exitProtocol, true,
		"1 bytes more than its fields have"},
	{"declared the message", "host", "export-sent", single(exportDeclaring(uint64(len(garbage)) + 24)),
		exitProtocol, true, "but only 21 are left"},
	{"declared 2^64-1", "host", "export-sent", single(exportDeclaring(1<<64 - 1)), exitProtocol, true,
		"a field of 18446744073709551615 bytes, but only 21 are left"},
	{"garbage descriptor", "host", "export-sent", single(exportImage(1<<20, garbage)), exitDevice, true,
		"importing the host's memory"},
	{"garbage to receive", "dpu", "export-sent", single(exportImage(1<<20, garbage)), exitDevice, true,
		"importing the host's memory"},
	{"garbage of 4056 bytes", "host", "export-sent", single(exportImage(1<<20, longest(7)[24:])), exitDevice, true,
		"importing the host's memory"},
	{"range that wraps", "host", "export-sent", single(exportImage(1<<64-2, garbage)), exitProtocol, true,
		"wrap around"},
	{"direction for export", "host", "export-sent", single(directionImage(true, 9)), exitProtocol, true,
		"out of order"},
	{"success for export", "host", "export-sent", single(statusImage(true)), exitProtocol, true, "out of order"},
	{"failure for export", "dpu", "export-sent", single(statusImage(false)), exitFailure, false,
		"DPU: the host reported a failure: see its error message"},
}

var badDPUs = []badPeer{
	{"one byte", "host", "direction-sent", single([]byte{3}), exitProtocol, true, "too short for a type"},
	{"answer cut short", "host", "direction-sent", single(directionImage(true, 0)[:8]), exitProtocol, true,
		"a field of 8 bytes, but only 0 are left"},
	{"answer too long", "dpu", "direction-sent", single(longest(1)), exitProtocol, true,
		"4064 bytes more than its fields have"},
	{"unknown type", "host", "direction-sent", single(longest(0)), exitProtocol, true, "unknown type"},
	{"bool of 255", "dpu", "direction-sent", single(changed(directionImage(false, 9), 4, 255)), exitProtocol, true,
		"file_in_host is 255"},
	{"has it too", "host", "direction-sent", single(directionImage(false, 9)), exitProtocol, true, "disagree"},
	{"has it not", "dpu", "direction-sent", single(directionImage(true, 0)), exitProtocol, true, "disagree"},
	{"size 2^64-1", "dpu", "direction-sent", single(directionImage(false, wholeNegative)), exitProtocol, true,
		"too large"},
	{"size 2^63", "dpu", "direction-sent", single(directionImage(false, halfNegative)), exitProtocol, true,
		"too large"},
	{"size over the limit", "dpu", "direction-sent", single(directionImage(false, overLimit)), exitProtocol, true,
		"too large"},
	{"size over the disk", "dpu", "direction-sent", single(directionImage(false, overDisk)), exitTarget, true,
		"cannot hold host/file: it needs 32 TiB"},
	{"answer twice", "dpu", "direction-sent", twice(directionImage(false, 1000)), exitProtocol, false, "out of order"},
	{"export for an answer", "host", "direction-sent", single(exportImage(1<<20, garbage)), exitProtocol, true,
		"out of order"},
	{"success for an answer", "dpu", "direction-sent", single(statusImage(true)), exitProtocol, true, "out of order"},
	{"refusal", "host", "direction-sent", single(statusImage(false)), exitSource, false, "the DPU refused"},
	{"status cut short", "host", "status-sent", single(statusImage(true)[:5]), exitProtocol, false,
		"a field of 3 bytes, but only 0 are left"},
	{"status bool of 2", "dpu", "status-sent", single(changed(statusImage(true), 4, 2)), exitProtocol, false,
		"is_success is 2"},
	{"direction for status", "dpu", "status-sent", single(directionImage(false, 9)), exitProtocol, false,
		"out of order"},
	{"export for status", "host", "status-sent", single(exportImage(1<<20, garbage)), exitProtocol, false,
		"out of order"},
	{"failure", "dpu", "status-sent", single(statusImage(false)), exitFailure, false,
		"host: the DPU reported a failure: see its error message"},
}

// TestHostileHost has a reference host send malformed or unexpected messages to the DPU.
func TestHostileHost(t *testing.T) {
	t.Parallel()
	for _, b := range badHosts {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.createFile(b.sender, 1000)
			dpu := f.start("dpu", dpuCommand)
			b.expectRejected(f, dpu, f.start("host", refpeerHost+b.flag()))
		})
	}
}

// TestHostileDPU has a reference DPU send malformed or unexpected messages to the host.
func TestHostileDPU(t *testing.T) {
	t.Parallel()
	for _, b := range badDPUs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.createFile(b.sender, 1000)
			host := f.start("host", hostCommand)
			b.expectRejected(f, host, f.start("dpu", refpeerDPU+b.flag()))
		})
	}
}

// expectRejected expects dma-copy to fail with one line, to notify the peer if that still listens, and to leave
// nothing.
func (b badPeer) expectRejected(f *fixture, program, peer side) {
	f.t.Helper()
	program.expectExit(b.code)
	program.expectStderr(b.stderr)
	if b.notified {
		peer.expectExit(exitFailure)
		peer.waitForLog(regexp.MustCompile(`STATUS\(0\) received`))
	}
	if program.name != b.sender {
		f.expectNoFile(program.name)
	}
	peer.kill()
	f.expectRecovery(b.sender, false)
}

// flag makes the model of the reference program send the messages.
func (b badPeer) flag() string {
	texts := make([]string, len(b.messages))
	for i, message := range b.messages {
		texts[i] = hex.EncodeToString(message)
	}
	return "-send " + b.step + "=" + strings.Join(texts, ",")
}
