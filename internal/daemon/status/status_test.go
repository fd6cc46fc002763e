package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hostile = "a\nb\x1b[2J\u202e"

var (
	began   = time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	session = service.Session{
		ID: 1, Function: "b1:00.1", Connected: began, Fingerprint: "dma-copy-v1:AAAA", KeyName: "laptop",
		Software: "dma-copy 1.0", Machine: "lab", User: "ann",
	}
)

// snapshot is of a copy that stands still.
var snapshot = job.Snapshot{
	Side: "DPU", Peer: "host", Role: "receiver", State: "transferring",
	PeerHasTo: []string{"send the content of 10 entries"}, HasTo: []string{"commit 1 entry"},
	Stalled: job.Age(9 * time.Second), Reported: job.Age(time.Second), Silent: job.Age(time.Second / 2), Jobs: 2,
	Slots: 1, Depth: 4, SlotsSince: job.Age(8 * time.Second),
	Unsent: 3, SentSince: job.Age(7 * time.Second), Sending: job.Age(6 * time.Second), Open: 11,
	Entries: []job.OpenEntry{
		{
			Number: 5, Path: "a", Phase: "needed", Next: "the sender is to send its content",
			Bytes: new(int64(1 << 20)), Total: new(int64(2 << 20)), Since: job.Age(9 * time.Second),
		},
		{Number: 6, Next: "the receiver is to answer"},
	},
}

// busy is a daemon with a connection that pushes, one that pulls a tree, one that lists, and an idle one.
func busy() Daemon {
	request := func(id uint64, operation service.Operation, path string) *service.Record {
		return &service.Record{
			Session: session, Request: id, Operation: operation, Share: "inbox", Path: path, Began: began,
			Waited: time.Second,
		}
	}
	push := request(1, service.Push, "image.bin")
	push.Local = "/home/ann/" + hostile
	plan := request(4, service.Push, "next")
	plan.DryRun = true
	recent := &Recent{}
	recent.Ended(service.Record{
		Session: session, Operation: service.Push, Share: "inbox", Path: hostile, Code: 5, Err: errors.New(hostile),
	})
	recent.Refused(service.Session{ID: 2, Function: "b1:00.1"}, 8, errors.New("the key is not trusted"))
	standing := &job.Progress{}
	standing.Describe(func(context.Context) job.Snapshot { return snapshot })
	standing.Describe(func(context.Context) job.Snapshot {
		return job.Snapshot{Side: "host", Peer: "DPU", Busy: true}
	})
	status := func() service.Status {
		return service.Status{
			Started: began.Add(-time.Hour), Pending: 1, Running: 2, Waiting: 1, Memory: 64 << 20,
			Limits:      service.Limits{Transfers: 4},
			TrustedKeys: 2,
			Tenants:     []service.TenantStatus{{Name: "laptop", Running: 2, Waiting: 1}},
			Shares:      []service.ShareStatus{{Name: "inbox", Path: "/srv/" + hostile, Access: "wo"}},
			Totals:      service.Totals{Connections: 9, Refused: 1, Requests: 7, Failed: 2, Bytes: 5 << 30},
			Connections: []service.ConnectionStatus{
				{
					Session: session, Request: push, Moved: 1 << 30, Total: 4 << 30,
					Progress: standing,
				},
				{Session: session, Request: request(2, service.Pull, hostile), Moved: 10 << 20, Total: job.Unknown},
				{Session: session, Request: request(3, service.List, "")},
				{Session: session, Request: plan, Waiting: true},
				{Session: session},
			},
		}
	}
	return Daemon{PID: 4711, Software: "dma-copy 1.0", Authenticates: true, Recent: recent, Status: status}
}

func TestText(t *testing.T) {
	var text bytes.Buffer
	if err := WriteText(&text, busy().Document(began.Add(3*time.Second)), time.UTC); err != nil {
		t.Fatal(err)
	}
	failed := time.Now().UTC().Format("2006-01-02")
	got := text.String()
	if i := strings.Index(got, "failures"); i >= 0 {
		// The times of the failures are those of this run.
		got = got[:i] + strings.ReplaceAll(got[i:], failed, "DAY")
	}
	want := `daemon       dma-copy 1.0, process 4711, running
since        2026-11-23 01:00:00 (1h0m3s)
keys         2 trusted
share        inbox (wo) /srv/a\nb\x1b[2J\u202e
transfers    2 running of at most 4, 1 waiting, 64 MiB of buffers
             laptop: 2 running, 1 waiting
totals       9 connections, 1 refused; 7 requests, 2 failed; 5.0 GiB
connections  5, and 1 not yet authenticated
             #1 laptop on b1:00.1: push inbox/image.bin  25%  1.0 GiB/4.0 GiB  512 MiB/s` +
		`  says it is ann@lab:/home/ann/a\nb\x1b[2J\u202e
               the DPU waits for the host to send the content of 10 entries, and has to commit 1 entry itself; last ` +
		`progress 9.0s ago (as the host reports 1.0s ago), last message of the host 0.5s ago; 2 jobs running here
               slots: 1 of 4 in flight, last change 8.0s ago
               messages: 3 unsent, and one has waited for room for 6.0s
               entry 5 a: the sender is to send its content, 1.0 MiB of 2.0 MiB transferred, last progress 9.0s ago
               entry 6: the receiver is to answer, last progress 0.0s ago
               ... and 9 more
               the host does not say what it waits for: no answer within 500ms
             #1 laptop on b1:00.1: pull inbox/a\nb\x1b[2J\u202e  10 MiB  5.0 MiB/s  says it is ann@lab
             #1 laptop on b1:00.1: list inbox  says it is ann@lab
             #1 laptop on b1:00.1: push (dry run) inbox/next  waits for a permit  says it is ann@lab
             #1 laptop on b1:00.1: idle  says it is ann@lab
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, end := range []string{
		`  #1 laptop on b1:00.1: push inbox/a\nb\x1b[2J\u202e: a\nb\x1b[2J\u202e (exit code 5)` + "\n",
		"  #2 on b1:00.1: connection: the key is not trusted (exit code 8)\n",
	} {
		if !strings.Contains(got, end) {
			t.Errorf("no line ends with %q: %s", end, got)
		}
	}
	if n := strings.Count(got, "\n"); n != strings.Count(want, "\n")+2 {
		t.Errorf("%d lines", n)
	}
}

func TestTextOfUnusualDaemons(t *testing.T) {
	var text bytes.Buffer
	doc := Document{Draining: true, Auth: "none", Totals: Totals{Connections: 1, Requests: 1, Bugs: 2}}
	if err := WriteText(&text, doc, time.UTC); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"draining", "--auth none", "2 connections ended by a defect",
		"totals       1 connection, 0 refused; 1 request, 0 failed"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in %s", want, &text)
		}
	}
}

// The schema describes what is written, and everything that it describes is written.
func TestDocumentFollowsTheSchema(t *testing.T) {
	const file = "../../../docs/status.schema.json"
	schema, err := jsonschema.NewCompiler().Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, daemon := range []Daemon{busy(), {
		PID: 1, Recent: &Recent{}, Status: func() service.Status { return service.Status{} },
	}} {
		line, err := json.Marshal(daemon.Document(began.Add(time.Minute)))
		if err != nil {
			t.Fatal(err)
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	line, err := json.Marshal(busy().Document(began))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var described, written any
	if err := errors.Join(json.Unmarshal(content, &described), json.Unmarshal(line, &written)); err != nil {
		t.Fatal(err)
	}
	names := propertiesOf(described)
	fields := fieldsOf(written)
	if got, want := fmt.Sprint(sortedSet(fields)), fmt.Sprint(sortedSet(names)); got != want {
		t.Errorf("written   %s\ndescribed %s", got, want)
	}
}

// propertiesOf returns the names of all properties in a schema.
func propertiesOf(schema any) (names []string) {
	object, _ := schema.(map[string]any)
	for name, value := range object {
		if properties, is := value.(map[string]any); is && name == "properties" {
			for property := range properties {
				names = append(names, property)
			}
		}
		names = append(names, propertiesOf(value)...)
	}
	return names
}

// fieldsOf returns the names of all fields in a document.
func fieldsOf(value any) (names []string) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			names = append(append(names, name), fieldsOf(field)...)
		}
	case []any:
		for _, element := range value {
			names = append(names, fieldsOf(element)...)
		}
	}
	return names
}

func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// A connection that is refused ends, too, which is no second failure.
func TestRefusedConnectionIsOneFailure(t *testing.T) {
	var r Recent
	r.Refused(session, 8, errors.New("not trusted"))
	r.Disconnected(session, errors.New("not trusted"))
	if got := r.failures(); len(got) != 1 || got[0].Code != 8 {
		t.Errorf("got %v", got)
	}
}

func TestRecentKeepsTheLast(t *testing.T) {
	var r Recent
	r.Disconnected(session, nil)
	r.Ended(service.Record{Session: session, Operation: service.Ping})
	if got := r.failures(); len(got) != 0 {
		t.Errorf("successes are failures: %v", got)
	}
	for id := range uint64(kept + 3) {
		r.Disconnected(service.Session{ID: id}, errors.New("lost"))
	}
	r.Bug(service.Session{ID: 99}, "index out of range", nil)
	got := r.failures()
	if len(got) != kept || got[0].Session != 4 || got[kept-1].Session != 99 ||
		!strings.Contains(got[kept-1].Error, "index out of range") {
		t.Errorf("got %v", got)
	}
}

func mustListen(t *testing.T, path string, daemon Daemon) *Socket {
	t.Helper()
	s, err := Listen(path, daemon, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A panic of an answer is logged, and the next answer follows, also if every permit has been in use.
func TestPanicOfAnAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "status.sock")
	var panics atomic.Int32
	panics.Store(answering + 1)
	daemon := busy()
	status := daemon.Status
	daemon.Status = func() service.Status {
		if panics.Add(-1) >= 0 {
			panic("a defect")
		}
		return status()
	}
	var text bytes.Buffer
	s, err := Listen(path, daemon, zerolog.New(zerolog.SyncWriter(&text)))
	if err != nil {
		t.Fatal(err)
	}
	for range answering + 1 {
		if doc, err := Fetch(t.Context(), path); err == nil {
			t.Errorf("got %+v", doc)
		}
	}
	if _, err := Fetch(t.Context(), path); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(text.String(), `"panic":"a defect","stack":"`); n != answering+1 {
		t.Errorf("logged %d times: %s", n, &text)
	}
}

func TestFetch(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "status.sock")
	mustListen(t, path, busy())
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	for range 2 * answering {
		doc, err := Fetch(t.Context(), filepath.Join(directory, "absent"), "/"+strings.Repeat("x", 107), path)
		if err != nil {
			t.Fatal(err)
		}
		if doc.PID != 4711 || len(doc.Connections) != 5 {
			t.Errorf("got %+v", doc)
		}
	}
}

// Processes that do not read their answer do not keep others from theirs.
func TestIdleReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "status.sock")
	mustListen(t, path, busy())
	for range 3 * answering {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if _, err := Fetch(t.Context(), path); err != nil {
		t.Error(err)
	}
}

func TestOtherUsersGetNoAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "status.sock")
	var asked uint32
	s, err := listen(path, busy(), zerolog.Nop(), func(uid uint32) bool { asked = uid; return false })
	if err != nil {
		t.Fatal(err)
	}
	_, err = Fetch(t.Context(), path)
	var coder exit.Coder
	if !errors.As(err, &coder) || coder.ExitCode() != exit.Refused || !strings.Contains(err.Error(), "another user") {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if asked != uint32(os.Geteuid()) {
		t.Errorf("the peer is user %d, want %d", asked, os.Geteuid())
	}
}

func TestFetchFails(t *testing.T) {
	directory := t.TempDir()
	silent := filepath.Join(directory, "silent")
	listener, err := net.Listen("unix", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	other := filepath.Join(directory, "other")
	answers(t, other, "{\"v\":2}\n")
	cut := filepath.Join(directory, "cut")
	answers(t, cut, "{\"v\":1")

	for _, test := range []struct {
		path, want string
		code       int
		within     time.Duration
	}{
		{filepath.Join(directory, "absent"), "no daemon listens on", exit.Peer, 0},
		{silent, "does not answer", exit.Peer, 50 * time.Millisecond},
		{silent, "does not answer", exit.Peer, 0}, // the time is over before it connects
		{other, "a form that this release does not know", exit.Peer, 0},
		{cut, "read the status", exit.Peer, 0},
		{"/" + strings.Repeat("x", 107), "the path of a socket has at most 107 bytes", exit.Usage, 0},
	} {
		ctx := t.Context()
		if test.path == silent {
			ended, cancel := context.WithTimeout(ctx, test.within)
			defer cancel()
			ctx = ended
		}
		_, err := Fetch(ctx, test.path)
		var coder exit.Coder
		if !errors.As(err, &coder) || coder.ExitCode() != test.code || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want code %d and %q", test.path, err, test.code, test.want)
		}
	}
}

// answers listens at path and gives each connection this text.
func answers(t *testing.T, path, text string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(text)) // the test fails without it
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-ended
	})
}

func TestListenFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Listen(file, busy(), zerolog.Nop())
	var coder exit.Coder
	if !errors.As(err, &coder) || coder.ExitCode() != exit.Usage || !strings.Contains(coder.Hint(), "--socket") {
		t.Errorf("got %v", err)
	}
}

func TestWriteJSON(t *testing.T) {
	var out bytes.Buffer
	doc := busy().Document(began)
	if err := WriteJSON(&out, doc); err != nil {
		t.Fatal(err)
	}
	var again Document
	if err := json.Unmarshal(out.Bytes(), &again); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "\n") != 1 || again.Connections[0].Request.Moved != 1<<30 {
		t.Errorf("got %s", &out)
	}
}
