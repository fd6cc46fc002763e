package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/daemon/unixsocket"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// The limits of the HTTP server. A scrape takes milliseconds.
const (
	readTimeout  = 5 * time.Second
	writeTimeout = 10 * time.Second
	idleTimeout  = 2 * time.Minute // longer than the usual interval of a scrape
	largestHead  = 16 << 10        // bytes
	atOnce       = 4               // scrapes; more are answered with 503
	pagesAtOnce  = 16              // requests of status pages: a browser makes some at once
)

// socketMode lets the group of the daemon read the metrics, such as an agent that forwards them.
const socketMode = 0o660

// Server serves metrics over HTTP, and the status page if there is one.
type Server struct {
	http  *http.Server
	addr  net.Addr
	ended chan error
}

// Listen serves the metrics at /metrics of an address, and everything else by page unless that is nil. The address is a
// loopback IP address with a port, or unix:PATH. Any other is refused, because there is neither authentication nor
// encryption.
//
// log gets what the libraries that serve them report, also through their global logger, instead of stderr.
func (m *Metrics) Listen(address string, page http.Handler, log zerolog.Logger) (*Server, error) {
	listener, err := listen(address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", limited(atOnce, m.answer))
	if page != nil {
		mux.Handle("GET /", limited(pagesAtOnce, page.ServeHTTP))
	}
	s := &Server{
		http: &http.Server{
			Handler: mux, ReadTimeout: readTimeout, ReadHeaderTimeout: readTimeout, WriteTimeout: writeTimeout,
			IdleTimeout: idleTimeout, MaxHeaderBytes: largestHead, ErrorLog: logOfLibraries(log),
		},
		addr: listener.Addr(), ended: make(chan error, 1),
	}
	go func() { s.ended <- s.http.Serve(listener) }()
	return s, nil
}

// limited has a handler answer that many requests at a time, each in a limited time.
func limited(atOnce int, answer http.HandlerFunc) http.Handler {
	permits := make(chan struct{}, atOnce)
	permitted := func(w http.ResponseWriter, r *http.Request) {
		select {
		case permits <- struct{}{}:
			defer func() { <-permits }()
			answer(w, r)
		default:
			http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		}
	}
	return http.TimeoutHandler(http.HandlerFunc(permitted), writeTimeout/2, "the daemon did not answer in time")
}

// answer answers with all metrics.
func (m *Metrics) answer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	m.write(w)
}

func listen(address string) (net.Listener, error) {
	if path, is := strings.CutPrefix(address, "unix:"); is {
		listener, err := unixsocket.Listen(path, socketMode)
		if err != nil {
			return nil, exit.Errorf(exit.Usage, "name another path with --metrics unix:PATH", "serve metrics: %w", err)
		}
		return listener, nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsLoopback() {
		return nil, exit.Usagef("cannot serve metrics on %s: anybody could read them there; give a loopback address "+
			"such as 127.0.0.1:9469, or unix:PATH", quote.Text(address))
	}
	// TCP as such: a listener of Go would use MPTCP.
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	listener, err := config.Listen(context.Background(), "tcp", at.String())
	if err != nil {
		return nil, exit.Errorf(exit.Usage, "choose another port", "serve metrics: %w", err)
	}
	return listener, nil
}

// Addr returns the address on which the metrics are served, with the port that was chosen if it was 0.
func (s *Server) Addr() net.Addr { return s.addr }

// Close ends the server at once.
func (s *Server) Close() error {
	err := s.http.Close()
	if served := <-s.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("end the metrics: %w", err)
	}
	return nil
}
