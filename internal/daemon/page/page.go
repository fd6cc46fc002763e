// Package page serves the status page of a daemon: what dma-copy status shows, and the rates of the last ten minutes,
// for a browser. It can only be read, and must not change what the daemon does.
//
// The page is a fixed document, style sheet and script. The script fetches JSON and puts it into the page as text, so
// that no name of a peer is ever markup. docs/guide/service.md says who can see it.
package page

import (
	_ "embed" // the files of the page
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/dma-copy/dma-copy/internal/daemon/status"
	"github.com/dma-copy/dma-copy/internal/daemon/traffic"
)

//go:embed assets/page.html
var document string

//go:embed assets/page.css
var style string

//go:embed assets/page.js
var script string

// policy lets the page load its own style sheet and script and fetch its own JSON, and nothing else. No other page may
// embed it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'"

// version is the version of the document with the rates. Within it fields are only added.
const version = 1

// Rates is the answer for /rates.json, which docs/rates.schema.json describes.
type Rates struct {
	V        int              `json:"v"`
	Time     time.Time        `json:"time"` // of this answer, in UTC
	Interval float64          `json:"interval_seconds"`
	Samples  []traffic.Sample `json:"samples"` // oldest first; at other times no copy ran
}

// New returns the handler of the page at /, and of its JSON at /status.json and /rates.json. Any goroutine may call it.
func New(daemon status.Daemon, history *traffic.History) http.Handler {
	mux := http.NewServeMux()
	for path, file := range map[string]struct{ content, kind string }{
		"/{$}":      {document, "text/html; charset=utf-8"},
		"/page.css": {style, "text/css; charset=utf-8"},
		"/page.js":  {script, "text/javascript; charset=utf-8"},
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", file.kind)
			_, _ = w.Write([]byte(file.content)) // the client may have left
		})
	}
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, daemon.Document(time.Now()))
	})
	mux.HandleFunc("GET /rates.json", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, Rates{version, time.Now().UTC(), traffic.Interval.Seconds(), history.Samples()})
	})
	return protected(mux)
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the client may have left
}

// protected refuses requests that name another server, and keeps the answers from other pages of the browser and from
// its cache.
func protected(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		if !namesThisMachine(r.Host) {
			http.Error(w, "the status page is served to this machine only: use 127.0.0.1 or localhost as its address",
				http.StatusMisdirectedRequest)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// namesThisMachine reports whether the host of a request is localhost or a loopback address. With any other name a page
// of another server could read the status in the browser of a user here, after changing the address of its own name.
func namesThisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if len(host) > 2 && host[0] == '[' {
		host = host[1 : len(host)-1]
	}
	if host == "localhost" {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.Unmap().IsLoopback()
}
