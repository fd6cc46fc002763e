//go:build cgo

package dmaxfer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// capturedLog keeps the lines of a logger.
type capturedLog struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (c *capturedLog) Write(line []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines.Write(line)
}

// tracedMessage is a line of level TRACE about a message, without its direction and states.
type tracedMessage struct {
	Protocol, Type string
	Bytes          int
	Entry          *uint32 `json:",omitempty"`
	Items          uint32
}

func (m tracedMessage) String() string {
	text, _ := json.Marshal(m)
	return string(text)
}

// traced are the messages of one side.
type traced struct {
	sent, received []string // of tracedMessage
}

func (c *capturedLog) messages(t *testing.T) (of traced) {
	t.Helper()
	state := map[string]string{} // by protocol
	for line := range strings.Lines(c.lines.String()) {
		var read struct {
			tracedMessage
			Level, Message, From, To string
		}
		must(t, json.Unmarshal([]byte(line), &read))
		if read.Level != "trace" {
			continue
		}
		switch read.Message {
		case "message sent":
			of.sent = append(of.sent, read.tracedMessage.String())
		case "message received":
			of.received = append(of.received, read.tracedMessage.String())
		case "content sent", "content received":
			continue
		default:
			t.Errorf("an unknown line at level TRACE: %s", line)
		}
		if read.From != cmp.Or(state[read.Protocol], "idle") {
			t.Errorf("after state %s: %s", state[read.Protocol], line)
		}
		state[read.Protocol] = read.To
	}
	return of
}

// withoutLateBeats leaves out the heartbeats at the end, which nobody waits for.
func withoutLateBeats(messages []string) []string {
	for len(messages) > 0 && strings.Contains(messages[len(messages)-1], `"HEARTBEAT"`) {
		messages = messages[:len(messages)-1]
	}
	return messages
}

// At level TRACE each message has one line on the side that sends it and one on the side that receives it, in the same
// order, and the states of each side follow from each other.
func TestTraceHasEachMessage(t *testing.T) {
	setup := newSetup(t, "")
	for name, c := range map[string]struct {
		prepare func(t *testing.T, sender, receiver *Options)
		fails   bool
		types   string // of the sender's messages: those that this copy has, in this order
	}{
		"file":      {traceFile, false, "DIRECTION HELLO TRANSFER ENTRIES CHUNKS END FINISH"},
		"tree":      {traceTree, false, "DIRECTION HELLO TRANSFER ENTRIES PACK FINISH"},
		"stream":    {traceStream, false, "DIRECTION HELLO TRANSFER ENTRIES CHUNKS END FINISH"},
		"refused":   {traceRefused, true, "DIRECTION HELLO"},
		"reference": {traceReference, false, "DIRECTION"},
	} {
		for way, sides := range setup.directions() {
			t.Run(name+" "+way, func(t *testing.T) {
				sender, receiver := *sides[0], *sides[1]
				sender.File, receiver.File = filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "file")
				logs := [2]*capturedLog{{}, {}}
				sender.Log, receiver.Log = zerolog.New(logs[0]), zerolog.New(logs[1])
				c.prepare(t, &sender, &receiver)
				for side, err := range setup.runAs(t.Context(), sender, receiver).errs {
					if (err != nil) != c.fails {
						t.Errorf("the %s: %v", side, err)
					}
				}
				from, to := logs[0].messages(t), logs[1].messages(t)
				mustEqualMessages(t, "by the sender", from.sent, to.received)
				mustEqualMessages(t, "by the receiver", to.sent, from.received)
				mustHaveTypes(t, from.sent, strings.Fields(c.types))
			})
		}
	}
}

func traceFile(t *testing.T, sender, _ *Options) {
	jobtest.WriteFile(t, sender.File, content(10*testChunk))
}

func traceTree(t *testing.T, sender, _ *Options) {
	must(t, os.Mkdir(sender.File, 0o750))
	for _, name := range []string{"a", "b", "c"} {
		jobtest.WriteFile(t, filepath.Join(sender.File, name), "content of "+name)
	}
	jobtest.WriteFile(t, filepath.Join(sender.File, "large"), content(10*testChunk))
}

func traceStream(_ *testing.T, sender, _ *Options) {
	memory := disktest.NewMemory("/", "/streams")
	memory.Put("/streams/in", content(3*testChunk+1))
	sender.File, sender.Stdin = job.StreamName, memoryFile(memory, "/streams/in")
}

func traceRefused(t *testing.T, sender, receiver *Options) {
	jobtest.WriteFile(t, sender.File, "one")
	jobtest.WriteFile(t, receiver.File, "another")
	sender.RefuseSame, receiver.RefuseSame = true, true
}

func traceReference(t *testing.T, sender, _ *Options) {
	jobtest.WriteFile(t, sender.File, content(10*testChunk))
	sender.ReferenceOnly = true
}

func mustEqualMessages(t *testing.T, by string, sent, received []string) {
	t.Helper()
	if len(sent) == 0 || !slices.Equal(withoutLateBeats(sent), withoutLateBeats(received)) {
		t.Errorf("sent %s:\n%s\nand received:\n%s", by, strings.Join(sent, "\n"), strings.Join(received, "\n"))
	}
}

// mustHaveTypes fails unless the messages have these types in this order, with others between them.
func mustHaveTypes(t *testing.T, messages, types []string) {
	t.Helper()
	rest := messages
	for _, want := range types {
		at := slices.IndexFunc(rest, func(m string) bool { return strings.Contains(m, `"Type":"`+want+`"`) })
		if at < 0 {
			t.Fatalf("no %s in its place among:\n%s", want, strings.Join(messages, "\n"))
		}
		rest = rest[at+1:]
	}
}

// On every data path each unit of content has one line on the side that sends it and one on the side that receives it.
func TestTraceHasContent(t *testing.T) {
	eachWay(t, func(t *testing.T, l *linkedPair, sender wire.Side) {
		from, to := l.files(sender)
		logs := [2]*capturedLog{{}, {}}
		from.Log, to.Log = zerolog.New(logs[0]), zerolog.New(logs[1])
		must(t, os.Mkdir(from.File, 0o750))
		jobtest.WriteFile(t, filepath.Join(from.File, "small"), "content")
		jobtest.WriteFile(t, filepath.Join(from.File, "large"), content(10*testChunk))
		l.mustCopy(t, sender)
		sent, received := logs[0].contents(t, "content sent"), logs[1].contents(t, "content received")
		if len(sent) < 11 || !slices.Equal(sent, received) {
			t.Errorf("sent:\n%s\nreceived:\n%s", strings.Join(sent, "\n"), strings.Join(received, "\n"))
		}
	})
}

// contents returns what the lines with a text say, sorted: lanes are independent of each other.
func (c *capturedLog) contents(t *testing.T, text string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(c.lines.String()) {
		read := map[string]any{}
		must(t, json.Unmarshal([]byte(line), &read))
		if read["message"] != text {
			continue
		}
		delete(read, "message")
		sorted, _ := json.Marshal(read)
		lines = append(lines, string(sorted))
	}
	slices.Sort(lines)
	return lines
}

// has reports whether a line has these fields, among others. An empty value stands for any.
func (c *capturedLog) has(t *testing.T, fields map[string]string) bool {
	t.Helper()
	for line := range strings.Lines(c.lines.String()) {
		read := map[string]any{}
		must(t, json.Unmarshal([]byte(line), &read))
		missing := 0
		for key, want := range fields {
			if value, is := read[key].(string); !is || want != "" && value != want {
				missing++
			}
		}
		if missing == 0 {
			return true
		}
	}
	return false
}

// Both sides log an entry that fails, with its path and the cause, and why they leave a path.
func TestLogNamesCauses(t *testing.T) {
	t.Setenv("DMA_COPY_SOFT_FAULTS", "refuse=doca_mmap_create_from_export:1:NOT_PERMITTED")
	bothWays(t, transport{choice: job.AnyPath, connect: connectDevice}, func(
		t *testing.T, l *linkedPair, sender wire.Side,
	) {
		from, to := l.files(sender)
		logs := [2]*capturedLog{{}, {}}
		from.Log, to.Log = zerolog.New(logs[0]), zerolog.New(logs[1])
		must(t, os.Mkdir(from.File, 0o750))
		jobtest.WriteFile(t, filepath.Join(from.File, "taken"), "content")
		jobtest.WriteFile(t, filepath.Join(from.File, "free"), "content")
		must(t, os.MkdirAll(filepath.Join(to.File, "taken", "more"), 0o750))
		for side, err := range l.copy(t.Context(), sender).errs {
			mustBe(t, err, job.ErrSomeFailed)
			log := logs[0]
			if side != sender {
				log = logs[1]
			}
			for _, fields := range []map[string]string{
				{"level": "debug", "message": "entry failed", "path": "taken", "error": ""},
				{"level": "debug", "message": "entry committed", "path": "free"},
				{"level": "debug", "message": "window opened", "data_path": "fast"},
				{"level": "debug", "message": "transfer ended", "error": "some entries failed"},
				{"level": "warn", "error": "", "message": "the DPU may not import the host's memory: " +
					"copying over producers and consumers instead"},
			} {
				if !log.has(t, fields) {
					t.Errorf("the log of the %s has no line %v:\n%s", side, fields, log.lines.String())
				}
			}
		}
	})
}

// entries returns the texts of the lines about an entry, in their order. With a role they are those of its side.
func (c *capturedLog) entries(t *testing.T, path, role string) (texts []string) {
	t.Helper()
	for line := range strings.Lines(c.lines.String()) {
		var read struct{ Level, Message, Path, Role string }
		must(t, json.Unmarshal([]byte(line), &read))
		if text, is := strings.CutPrefix(read.Message, "entry "); is && read.Path == path && read.Role == role {
			texts = append(texts, text)
		}
	}
	return texts
}

func (c *capturedLog) mustHaveEntry(t *testing.T, path, role, want string) {
	t.Helper()
	if got := strings.Join(c.entries(t, path, role), " "); got != want {
		t.Errorf("the log says that %s was %s, want %s:\n%s", path, got, want, c.lines.String())
	}
}

// In the reference protocol both sides log what becomes of the file, as in the native protocol.
func TestReferenceLogsTheFile(t *testing.T) {
	setup := newSetup(t, "")
	for name, c := range map[string]struct {
		limit          int64 // of the receiver
		sent, received string
	}{
		"copied":  {0, "planned needed sent committed", "planned needed stored committed"},
		"refused": {1, "planned needed failed", "planned failed"},
	} {
		for way, sides := range setup.directions() {
			t.Run(name+" "+way, func(t *testing.T) {
				sender, receiver := *sides[0], *sides[1]
				sender.ReferenceOnly, receiver.MaxBytes = true, c.limit
				sender.File, receiver.File = filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "file")
				jobtest.WriteFile(t, sender.File, "content")
				logs := [2]*capturedLog{{}, {}}
				sender.Log, receiver.Log = zerolog.New(logs[0]), zerolog.New(logs[1])
				setup.runAs(t.Context(), sender, receiver)
				logs[0].mustHaveEntry(t, sender.File, "", c.sent)
				logs[1].mustHaveEntry(t, receiver.File, "", c.received)
			})
		}
	}
}

// A local copy logs what becomes of each entry on both of its sides, and what is about both of them once.
func TestLocalLogsEntriesOfBothSides(t *testing.T) {
	l, log := newLocal(t), &capturedLog{}
	l.Log = zerolog.New(log)
	must(t, os.Mkdir(l.File, 0o750))
	for _, name := range []string{"free", "taken"} {
		jobtest.WriteFile(t, filepath.Join(l.File, name), "content")
	}
	must(t, os.MkdirAll(filepath.Join(l.target, "taken", "more"), 0o750))
	_, err := l.run()
	mustBe(t, err, job.ErrSomeFailed)
	log.mustHaveEntry(t, "free", "sender", "planned needed sent committed")
	log.mustHaveEntry(t, "free", "receiver", "planned needed stored committed")
	log.mustHaveEntry(t, "taken", "sender", "planned failed")
	log.mustHaveEntry(t, "taken", "receiver", "planned failed")
	for _, text := range []string{"agreed", "copying"} {
		if got := strings.Count(log.lines.String(), `"message":"`+text+`"`); got != 1 {
			t.Errorf("%q was logged %d times", text, got)
		}
	}
}
