package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostile is text of a peer with which it tries to write a line of its own, or to control a terminal.
const hostile = "a\nb\x1b[2J\u202e\xff\"}{\\"

var session = service.Session{
	ID: 7, Function: "b1:00.1", Connected: time.Now(), Fingerprint: "dma-copy-v1:AAAA", KeyName: "laptop",
	Software: "dma-copy 1.0", Machine: "lab", User: "ann",
}

func pushed(t *testing.T) service.Record {
	t.Helper()
	sum, err := digest.NewSum(digest.CRC32C, []byte{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	return service.Record{
		Session: session, Request: 3, Local: "/home/ann/image.bin", Operation: service.Push,
		Share: "inbox", Path: "a/b", Waited: time.Second,
		Duration: 1500 * time.Millisecond, Bytes: 10, Entries: 1, Summary: job.Summary{Sum: sum},
		DataPath: "tcp",
	}
}

// observeAll calls each method of the log, with all fields set and with as few as possible.
func observeAll(t *testing.T, l *Log) {
	t.Helper()
	bare := service.Session{ID: 8, Function: "b1:00.2"}
	l.Connected(session)
	l.Authenticated(session)
	l.Authenticated(service.Session{ID: 9, Function: "b1:00.1", Fingerprint: "dma-copy-v1:BBBB"})
	l.Refused(session, 8, errors.New("the key is not trusted"))
	l.Refused(bare, 7, nil)
	l.Began(pushed(t))
	l.Ended(pushed(t))
	l.Ended(service.Record{
		Session: session, Request: 4, Operation: service.List, Share: hostile, Path: hostile, Code: 8,
		Err: errors.New(hostile),
	})
	l.Ended(service.Record{Session: session, Request: 5, Operation: service.Ping, Bytes: 64})
	l.Ended(service.Record{Session: session, Request: 9, Operation: service.Pull, Share: "inbox", DryRun: true})
	l.Ended(service.Record{
		Session: session, Request: 6, Operation: service.Remove, Entries: 2, Removed: []string{"a", hostile},
	})
	l.Ended(service.Record{Session: session, Request: 7, Operation: service.Remove, Code: 8, Err: errors.New("no")})
	l.Disconnected(session, nil)
	l.Disconnected(bare, errors.New("lost"))
	l.Bug(session, "panic", []byte("stack"))
}

// The schema describes every line and every field, and every field that it describes is written.
func TestLinesFollowTheSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../../docs/audit.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	l := New(&out, zerolog.Nop())
	observeAll(t, l)
	mustClose(t, l)
	out.Write(l.lostLine(3))

	written := map[string]bool{}
	for _, line := range lines(out.String()) {
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if err := schema.Validate(instance); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		fields := instance.(map[string]any)
		for name := range fields {
			written[fields["type"].(string)+"."+name] = true
		}
	}
	described := map[string]bool{}
	for kind, of := range schemaKinds(t) {
		for _, name := range append(of, "v", "time") {
			described[kind+"."+name] = true
		}
	}
	for field := range written {
		if !described[field] {
			t.Errorf("the schema does not describe %s", field)
		}
	}
	for field := range described {
		if !written[field] {
			t.Errorf("no line has %s, which the schema describes", field)
		}
	}
}

// schemaKinds returns the names of the properties of each type of line.
func schemaKinds(t *testing.T) map[string][]string {
	t.Helper()
	content, err := os.ReadFile("../../../docs/audit.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct{ Type struct{ Enum []string } }
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(content, &schema); err != nil {
		t.Fatal(err)
	}
	kinds := map[string][]string{}
	for _, kind := range schema.Properties.Type.Enum {
		for name := range schema.Defs[kind].Properties {
			kinds[kind] = append(kinds[kind], name)
		}
	}
	return kinds
}

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

func mustClose(t *testing.T, l *Log) {
	t.Helper()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Text of a peer adds no line, and nothing that controls a terminal.
func TestPeerTextIsEscaped(t *testing.T) {
	var out bytes.Buffer
	l := New(&out, zerolog.Nop())
	hostileSession := service.Session{
		ID: 1, Function: hostile, Fingerprint: hostile, KeyName: hostile, Software: hostile,
		Machine: hostile, User: hostile,
	}
	l.Authenticated(hostileSession)
	l.Refused(hostileSession, 11, errors.New(hostile))
	l.Ended(service.Record{
		Session: hostileSession, Operation: service.Remove, Share: hostile, Path: hostile, Removed: []string{hostile},
		Err: errors.New(hostile),
	})
	l.Disconnected(hostileSession, errors.New(hostile))
	mustClose(t, l)
	if got := len(lines(out.String())); got != 4 {
		t.Errorf("%d lines, want 4: %s", got, &out)
	}
	isControl := func(r rune) bool { return r < 0x20 && r != '\n' || r >= 0x7f && r <= 0x9f || r == 0x202e }
	if strings.ContainsFunc(out.String(), isControl) {
		t.Errorf("control characters in %q", &out)
	}
	var request struct {
		Path    string
		Removed []string
	}
	if err := json.Unmarshal([]byte(lines(out.String())[2]), &request); err != nil {
		t.Fatal(err)
	}
	if want := `a\nb\x1b[2J\u202e\xff"}{\\`; request.Path != want || !slices.Equal(request.Removed, []string{want}) {
		t.Errorf("the paths are %+v, want %s", request, want)
	}
}

func TestRequestLine(t *testing.T) {
	var out bytes.Buffer
	l := New(&out, zerolog.Nop())
	l.Ended(pushed(t))
	mustClose(t, l)
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "time")
	want := map[string]any{
		"v": 1.0, "type": "request", "session": 7.0, "function": "b1:00.1", "fingerprint": "dma-copy-v1:AAAA",
		"key": "laptop", "request": 3.0, "operation": "push", "share": "inbox", "path": "a/b",
		"claimed_machine": "lab", "claimed_user": "ann", "claimed_file": "/home/ann/image.bin",
		"bytes":   10.0,
		"entries": 1.0, "data_path": "tcp", "encrypted": false, "digest": "crc32c:01020304", "seconds": 1.5,
		"waited_seconds": 1.0, "code": 0.0,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestReopenAfterRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	l.Disconnected(service.Session{ID: 1}, nil)
	waitFor(t, path, `"session":1,`)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	l.Disconnected(service.Session{ID: 2}, nil)
	mustClose(t, l)
	if old := read(t, path+".1"); strings.Contains(old, `"session":2,`) || !strings.Contains(old, `"session":1,`) {
		t.Errorf("the old file has %s", old)
	}
	renewed := read(t, path)
	if strings.Contains(renewed, `"session":1,`) || !strings.Contains(renewed, `"session":2,`) {
		t.Errorf("the new file has %s", renewed)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v: %v", info.Mode(), err)
	}
}

// A restart continues the file.
func TestOpenAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	for id := range uint64(2) {
		l, err := Open(path, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		l.Disconnected(service.Session{ID: id + 1}, nil)
		mustClose(t, l)
	}
	if got := len(lines(read(t, path))); got != 2 {
		t.Errorf("%d lines, want 2", got)
	}
}

func TestFailedReopenContinues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(path, path+".1"), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err == nil {
		t.Error("a directory was opened")
	}
	l.Disconnected(session, nil)
	mustClose(t, l)
	if !strings.Contains(read(t, path+".1"), `"session":7,`) {
		t.Error("the old file has no line")
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	directory := t.TempDir()
	pipe, link := filepath.Join(directory, "pipe"), filepath.Join(directory, "link")
	target := filepath.Join(directory, "target")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		pipe: "", link: "it is a symlink", directory: "is a directory",
		filepath.Join(directory, "absent/log"): "no such file",
	} {
		_, err := Open(path, zerolog.Nop())
		coded, is := errors.AsType[exit.Coder](err)
		if !is || coded.ExitCode() != exit.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("the target of the symlink was created")
	}
}

// device is a file whose writes can be held up or fail.
type device struct {
	mu      sync.Mutex
	content bytes.Buffer
	err     error // of writes, after half of the line
	hold    chan struct{}
	held    chan struct{} // a write is held
}

func (d *device) Write(line []byte) (int, error) {
	if d.hold != nil {
		select {
		case d.held <- struct{}{}:
		default:
		}
		<-d.hold
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		n, _ := d.content.Write(line[:len(line)/2])
		return n, d.err
	}
	return d.content.Write(line)
}

func (d *device) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// A file that does not take lines does not stop the daemon, and the log says how many lines it lacks.
func TestSlowFileLosesLines(t *testing.T) {
	large := service.Record{Session: session, Operation: service.Remove, Removed: []string{strings.Repeat("x", 1<<20)}}
	for name, tc := range map[string]struct {
		line func(*Log)
		fit  int // lines that the queue takes
	}{
		"many lines":  {func(l *Log) { l.Disconnected(session, nil) }, queued},
		"large lines": {func(l *Log) { l.Ended(large) }, queuedBytes>>20 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := &device{hold: make(chan struct{}), held: make(chan struct{}, 1)}
			l := New(d, zerolog.Nop())
			l.Disconnected(session, nil)
			<-d.held
			for range tc.fit + 5 {
				tc.line(l)
			}
			close(d.hold)
			mustClose(t, l)
			all := lines(d.content.String())
			isLost := func(line string) bool {
				return strings.Contains(line, `"type":"lost"`) && strings.Contains(line, `"lines":5}`)
			}
			if len(all) != tc.fit+2 || !slices.ContainsFunc(all, isLost) {
				t.Errorf("%d lines, want %d with one that tells of 5 lost ones", len(all), tc.fit+2)
			}
		})
	}
}

func TestFailingFileLosesLines(t *testing.T) {
	d, reports := &device{}, &bytes.Buffer{}
	l := New(d, zerolog.New(reports))
	d.fail(syscall.ENOSPC)
	l.Disconnected(session, nil)
	l.Disconnected(session, nil)
	l.waitForLost(t, 2)
	d.fail(nil)
	l.Disconnected(service.Session{ID: 9}, nil)
	mustClose(t, l)

	all := lines(d.content.String())
	last := all[len(all)-2:]
	if !strings.Contains(last[0], `"lines":2}`) || !strings.Contains(last[1], `"session":9,`) {
		t.Errorf("the file ends with %q", last)
	}
	for _, line := range last {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q is not a line of its own", line)
		}
	}
	if got := strings.Count(reports.String(), "cannot be written"); got != 1 {
		t.Errorf("%d reports, want 1: %s", got, reports)
	}
}

// waitForLost waits until that many lines were not written.
func (l *Log) waitForLost(t *testing.T, lost int64) {
	t.Helper()
	waitUntil(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.lost == lost
	})
}

func waitFor(t *testing.T, path, text string) {
	t.Helper()
	waitUntil(t, func() bool { return strings.Contains(read(t, path), text) })
}

func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	for !done() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test has ended")
		case <-time.After(time.Millisecond):
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// After the end nothing is written, and nothing waits.
func TestClosedLog(t *testing.T) {
	d := &device{}
	l := New(d, zerolog.Nop())
	mustClose(t, l)
	l.Disconnected(session, nil)
	if d.content.Len() > 0 {
		t.Errorf("written: %s", &d.content)
	}
}
