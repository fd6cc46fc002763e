package main

import (
	"fmt"
	"net"
	"os"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/runtimedir"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/status"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// publish opens the socket of dma-copy status, and the address of the metrics.
func (d *daemon) publish(runtime *runtimedir.Dir, recent *status.Recent) error {
	d.shown = status.Daemon{
		PID: os.Getpid(), Software: softwareName(), Authenticates: d.settings.Auth == config.AuthKeys,
		Status: d.server.Status, Recent: recent,
	}
	socket, err := status.Listen(d.socketPath(runtime), d.shown, d.log)
	if err != nil {
		return err
	}
	d.onClose(socket.Close)
	if d.settings.Metrics == "" {
		return nil
	}
	serving, err := d.numbers.Listen(d.settings.Metrics, d.log)
	if err != nil {
		return err
	}
	d.onClose(serving.Close)
	d.metrics = metricsAt(serving.Addr())
	return nil
}

// metricsAt says where the metrics are, with the port that was chosen if it was 0.
func metricsAt(at net.Addr) string {
	scheme := "http://"
	if at.Network() == "unix" {
		scheme = "unix:"
	}
	return fmt.Sprintf("metrics at %s%s", scheme, quote.Printable(at.String()))
}

func (d *daemon) socketPath(runtime *runtimedir.Dir) string {
	if d.settings.Socket != "" {
		return d.settings.Socket
	}
	return runtime.File(status.SocketName)
}
