package serve

import (
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/daemon/metrics"
	"github.com/dma-copy/dma-copy/internal/daemon/page"
	"github.com/dma-copy/dma-copy/internal/daemon/runtimedir"
	"github.com/dma-copy/dma-copy/internal/daemon/status"
	"github.com/dma-copy/dma-copy/internal/daemon/traffic"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/release"
	"github.com/dma-copy/dma-copy/internal/service"
)

// watching is what dma-copy status and the status page show next to the status of the server.
type watching struct {
	recent  *status.Recent
	history *traffic.History // nil: there is no page
}

// watch begins to count and to remember what the server will do.
func (d *daemon) watch() watching {
	now := func() service.Status { return d.server.Status() }
	d.numbers = metrics.New(release.Version(), now)
	w := watching{recent: new(status.Recent)}
	if d.settings.StatusPage {
		w.history = traffic.NewHistory(now)
		d.onClose(func() error { w.history.Close(); return nil })
	}
	return w
}

func (w watching) observers() service.Observers {
	if w.history == nil {
		return service.Observers{w.recent}
	}
	return service.Observers{w.recent, w.history}
}

// publish opens the socket of dma-copy status, and the address of the metrics and the status page.
func (d *daemon) publish(runtime *runtimedir.Dir, w watching) error {
	d.shown = status.Daemon{
		PID: os.Getpid(), Software: release.SoftwareName(), Authenticates: d.settings.Auth == contact.AuthKeys,
		Status: d.server.Status, Recent: w.recent,
	}
	socket, err := status.Listen(d.socketPath(runtime), d.shown, d.log)
	if err != nil {
		return err
	}
	d.onClose(socket.Close)
	if d.settings.Metrics == "" {
		return nil
	}
	var handler http.Handler
	if w.history != nil {
		handler = page.New(d.shown, w.history)
	}
	serving, err := d.numbers.Listen(d.settings.Metrics, handler, d.log)
	if err != nil {
		return err
	}
	d.onClose(serving.Close)
	d.metrics = metricsAt(serving.Addr(), handler != nil)
	return nil
}

// metricsAt says where the metrics are, with the port that was chosen if it was 0, and the status page.
func metricsAt(at net.Addr, page bool) string {
	what, scheme := "metrics", "http://"
	if page {
		what = "metrics and status page"
	}
	if at.Network() == "unix" {
		scheme = "unix:"
	}
	return fmt.Sprintf("%s at %s%s", what, scheme, quote.Printable(at.String()))
}

func (d *daemon) socketPath(runtime *runtimedir.Dir) string {
	if d.settings.Socket != "" {
		return d.settings.Socket
	}
	return runtime.File(status.SocketName)
}
