package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dma-copy/dma-copy/internal/daemon/status"
	"github.com/dma-copy/dma-copy/internal/daemon/traffic"
	"github.com/dma-copy/dma-copy/internal/service"
)

const hostile = "</script><img src=x onerror=alert(1)>\x1b[2J\u202e"

// newPage returns the page of a daemon with a peer that gives hostile names.
func newPage(t *testing.T) (http.Handler, *traffic.History) {
	t.Helper()
	session := service.Session{ID: 1, Function: "b1:00.1", KeyName: hostile, Software: hostile}
	request := service.Record{Session: session, Request: 1, Operation: service.Push, Share: hostile, Path: hostile}
	now := func() service.Status {
		return service.Status{Connections: []service.ConnectionStatus{{Session: session, Request: &request, Moved: 5}}}
	}
	recent := &status.Recent{}
	recent.Ended(service.Record{Session: session, Operation: service.Pull, Err: errors.New(hostile)})
	history := traffic.NewHistory(now)
	t.Cleanup(history.Close)
	return New(status.Daemon{PID: 1, Software: "dma-copy", Status: now, Recent: recent}, history), history
}

func ask(t *testing.T, page http.Handler, method, host, path string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	request.Host = host
	recorder := httptest.NewRecorder()
	page.ServeHTTP(recorder, request)
	return recorder
}

func TestFiles(t *testing.T) {
	page, _ := newPage(t)
	for path, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/page.css": "text/css; charset=utf-8",
		"/page.js": "text/javascript; charset=utf-8", "/status.json": "application/json",
		"/rates.json": "application/json",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			answer := ask(t, page, method, "127.0.0.1:9469", path)
			if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != want {
				t.Errorf("%s %s: %d %s", method, path, answer.Code, answer.Header().Get("Content-Type"))
			}
			checkHeaders(t, path, answer.Header())
		}
	}
}

// checkHeaders checks what keeps answers from other pages, and other content from the page.
func checkHeaders(t *testing.T, path string, header http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; ", "Cross-Origin-Opener-Policy": "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
	} {
		if got := header.Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s is %q, want %q", path, name, got, want)
		}
	}
	if got := header.Get("Content-Security-Policy"); strings.Contains(got, "unsafe") {
		t.Errorf("%s: the policy is %q", path, got)
	}
	if got := header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("%s: other pages may read it: %q", path, got)
	}
}

func TestOtherRequestsAreRefused(t *testing.T) {
	page, _ := newPage(t)
	for _, test := range []struct {
		method, path string
		want         int
	}{
		{http.MethodPost, "/", http.StatusMethodNotAllowed},
		{http.MethodPut, "/status.json", http.StatusMethodNotAllowed},
		{http.MethodOptions, "/status.json", http.StatusMethodNotAllowed},
		{http.MethodDelete, "/rates.json", http.StatusMethodNotAllowed},
		{http.MethodGet, "/index.html", http.StatusNotFound},
		{http.MethodGet, "/assets/page.js", http.StatusNotFound},
		{http.MethodGet, "/debug/pprof/", http.StatusNotFound},
	} {
		answer := ask(t, page, test.method, "localhost", test.path)
		if answer.Code != test.want {
			t.Errorf("%s %s: %d, want %d", test.method, test.path, answer.Code, test.want)
		}
		checkHeaders(t, test.path, answer.Header())
	}
}

// A name that its owner has given a loopback address is not that of this machine.
func TestOtherHostsAreRefused(t *testing.T) {
	page, _ := newPage(t)
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1:9469", "127.1.2.3:1", "localhost", "localhost:8080", "[::1]", "[::1]:9469",
		"[::ffff:127.0.0.1]:1",
	} {
		if got := ask(t, page, http.MethodGet, host, "/status.json").Code; got != http.StatusOK {
			t.Errorf("%s: %d", host, got)
		}
	}
	for _, host := range []string{
		"", "attacker.example", "attacker.example:9469", "localhost.attacker.example", "127.0.0.1.attacker.example",
		"192.0.2.1", "192.0.2.1:9469", "[2001:db8::1]:9469", "0.0.0.0", "[", "[]", ":9469", "localhost.",
	} {
		answer := ask(t, page, http.MethodGet, host, "/status.json")
		if answer.Code != http.StatusMisdirectedRequest || strings.Contains(answer.Body.String(), "b1:00.1") {
			t.Errorf("%q: %d %s", host, answer.Code, answer.Body)
		}
	}
}

// Names of peers are data, which neither ends a script nor controls a terminal.
func TestPeerTextIsNoMarkup(t *testing.T) {
	page, _ := newPage(t)
	text := ask(t, page, http.MethodGet, "localhost", "/status.json").Body.String()
	for _, raw := range []string{"<", ">", "\x1b", "\u202e"} {
		if strings.Contains(text, raw) {
			t.Errorf("%q is in %s", raw, text)
		}
	}
	var doc status.Document
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	want := `</script><img src=x onerror=alert(1)>\x1b[2J\u202e`
	if got := doc.Connections[0]; got.Key != want || got.Request.Path != want || doc.Failures[0].Error != want {
		t.Errorf("got %+v and %+v", got, doc.Failures)
	}
	for _, path := range []string{"/", "/page.js", "/page.css"} {
		if body := ask(t, page, http.MethodGet, "localhost", path).Body.String(); strings.Contains(body, "onerror") {
			t.Errorf("%s has text of a peer", path)
		}
	}
}

// Nothing in the files needs an exception of the policy, or another server.
func TestFilesKeepThePolicy(t *testing.T) {
	for name, pattern := range map[string]string{
		"an inline script": `<script[^>]*>[^<]`, "an inline style": `<style|\sstyle=`,
		"an event handler": `\son[a-z]+=`,
		"another server":   `(?:src|href)="(?:[a-z]+:|//)`, "an inline URL": `javascript:|data:`,
	} {
		if found := regexp.MustCompile(pattern).FindString(document); found != "" {
			t.Errorf("the document has %s: %s", name, found)
		}
	}
	for name, pattern := range map[string]string{
		"markup":         `innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser`,
		"text as code":   `\beval\(|\bFunction\(|set(?:Timeout|Interval)\(["']`,
		"another server": `fetch\(["']http|WebSocket|EventSource`,
	} {
		if found := regexp.MustCompile(pattern).FindString(script); found != "" {
			t.Errorf("the script has %s: %s", name, found)
		}
	}
	if found := regexp.MustCompile(`@import|url\(`).FindString(style); found != "" {
		t.Errorf("the style sheet loads something: %s", found)
	}
}

// The script and the document name the same elements.
func TestScriptFindsItsElements(t *testing.T) {
	for _, used := range regexp.MustCompile(`element\("([a-z-]+)"\)`).FindAllStringSubmatch(script, -1) {
		if !strings.Contains(document, fmt.Sprintf(`id="%s"`, used[1])) {
			t.Errorf("the document has no element %s", used[1])
		}
	}
	for _, label := range regexp.MustCompile(`aria-labelledby="([^"]+)"`).FindAllStringSubmatch(document, -1) {
		for id := range strings.FieldsSeq(label[1]) {
			if !strings.Contains(document, fmt.Sprintf(`id="%s"`, id)) {
				t.Errorf("the document has no label %s", id)
			}
		}
	}
}

func TestRatesFollowTheSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../../docs/rates.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		push := service.Record{Session: service.Session{ID: 1}, Request: 1, Operation: service.Push}
		history := traffic.NewHistory(func() service.Status {
			return service.Status{Connections: []service.ConnectionStatus{{Request: &push, Moved: 5}}}
		})
		defer history.Close()
		page := New(status.Daemon{}, history)
		history.Began(push)
		time.Sleep(traffic.Interval)
		synctest.Wait()
		body := ask(t, page, http.MethodGet, "localhost", "/rates.json").Body.Bytes()
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		var rates Rates
		if err := json.Unmarshal(body, &rates); err != nil {
			t.Fatal(err)
		}
		if len(rates.Samples) != 1 || rates.Samples[0].Received != 5 {
			t.Errorf("got %s", body)
		}
	})
}
