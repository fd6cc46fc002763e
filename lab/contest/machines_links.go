package contest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/service"
)

// networkPath is a data path of network connections.
type networkPath struct {
	path      wire.Path
	network   string
	encrypted bool
}

// networkPaths are the data paths by their names. Without an RDMA device UCX accesses memory within this machine.
var networkPaths = map[string]networkPath{
	"tls": {wire.PathTLS, networkTCP, true},
	"tcp": {wire.PathTCP, networkTCP, false},
	"am":  {wire.PathMessages, networkTCP, false},
	"rma": {wire.PathRMA, networkShared, false},
}

// networkLink is a daemon that permits one data path, and a connection to it.
type networkLink struct {
	link
	networkPath
	settings CopySettings // with this path only
}

// connect starts a daemon for each path, and connects to it.
func (b *machinesBench) connect(ctx context.Context) error {
	for _, name := range b.Machines.Paths {
		path, known := networkPaths[name]
		if !known {
			return fmt.Errorf("path %s is not one of a network connection: use one of %s", name,
				strings.Join(NetworkPaths, ", "))
		}
		settings := b.Machines.CopySettings
		settings.Paths = []string{name}
		l := &networkLink{
			link:        link{workspace: b.workspace, placement: b.Machines.Placement, software: b.Software},
			networkPath: path, settings: settings,
		}
		b.links = append(b.links, l)
		if err := b.connectTo(ctx, l, name); err != nil {
			return fmt.Errorf("path %s: %w", name, err)
		}
	}
	return nil
}

func (b *machinesBench) connectTo(ctx context.Context, l *networkLink, path string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	address := net.JoinHostPort(loopback, strconv.Itoa(port))
	l.daemon, err = b.config.launch(ctx, b.workspace,
		&daemon{meeting: service.Meeting{Side: wire.Client}}, []string{"--listen", address, "--path", path})
	if err != nil {
		return err
	}
	l.client, err = b.dial(ctx, address, l.networkPath)
	return err
}

func (b *machinesBench) dial(ctx context.Context, address string, path networkPath) (*service.Client, error) {
	settings := network.Settings{Paths: job.PathsOf(path.path)}
	control, err := network.Dial(ctx, address, meetingTime, settings)
	if err != nil {
		return nil, err
	}
	return service.Connect(ctx, service.ClientConfig{
		Conn:   control,
		Memory: func(peer *secure.Conn) window.Memory { return control.Memory(peer, settings) },
		Verify: secure.AnyKey, Anonymous: true, Software: b.Software, Log: zerolog.Nop(),
	})
}

func (b *machinesBench) close() error {
	var err error
	for _, l := range b.links {
		err = errors.Join(err, l.close())
	}
	return err
}

// fileEntries returns the candidates that copy a file over this link.
func (l *networkLink) fileEntries(t fileTask) (entries []networkEntry) {
	known := NetworkResult{Network: l.network, Encrypted: l.encrypted}
	for _, v := range l.settings.variants() {
		entries = append(entries, networkEntry{
			copyEntry{l.newCopy(t, v, t.workspace.target(), false), v.result(t.size)}, known,
		})
	}
	return entries
}

// addTo adds the candidates that copy a tree over this link.
func (l *networkLink) addTo(g *treeGroup) {
	for _, v := range l.settings.variants() {
		g.addOwn(v.result(g.tree.Bytes),
			func(t task, target string) copyCandidate { return l.newCopy(t, v, target, false) },
			func(t task, target string) copyCandidate { return l.newCopy(t, v, target, true) })
	}
}
