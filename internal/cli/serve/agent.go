package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/daemon/sandbox"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/share"
	"github.com/dma-copy/dma-copy/internal/sshstart"
)

// The limits of an agent.
const (
	requestTime = 30 * time.Second // for the request on stdin
	lonelyTime  = time.Minute      // without a connection
	partingTime = 2 * time.Second  // for running requests when stdin has ended
)

// AgentCommand returns the hidden command agent, which ssh starts for a command on another machine.
func AgentCommand() root.Command {
	s := new(Settings)
	return root.Command{
		Name:    "agent",
		Summary: "Serve the command that has started this with ssh",
		About: `Serves one directory to the command on another machine that has started this
with ssh, until stdin ends. Both exchange keys over stdin and stdout.
`,
		Examples: "dpu$ echo REQUEST | dma-copy agent\n",
		Settings: s,
		Run: func(ctx context.Context, streams root.Streams, _ []string, log zerolog.Logger) error {
			root.IgnoreSIGPIPE()
			return runAgent(ctx, streams, s, log)
		},
	}
}

// runAgent serves the request on stdin until stdin ends, or nobody is connected for a while.
func runAgent(ctx context.Context, streams root.Streams, s *Settings, log zerolog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests, refused := make(chan sshstart.Request, 1), make(chan error, 1)
	go func() { // it ends with the process if stdin does not end
		request, err := sshstart.ReadRequest(streams.Stdin)
		if err != nil {
			refused <- err
			return
		}
		requests <- request
		_, _ = io.Copy(io.Discard, streams.Stdin)
		cancel()
	}()
	d := &daemon{Side: &connect.Side{Is: wire.Server}, streams: streams, settings: s, log: log}
	var err error
	select {
	case request := <-requests:
		err = errors.Join(d.serveRequest(ctx, cancel, request), d.close())
	case err = <-refused:
	case <-time.After(requestTime):
		err = exit.Errorf(exit.Protocol, "", "timeout: no request on stdin within %s", requestTime)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = sshstart.WriteFailure(streams.Stdout, err) // of no effect behind an answer
	}
	return err
}

// serveRequest serves the directory of a request to its key until ctx ends.
func (d *daemon) serveRequest(ctx context.Context, cancel func(), request sshstart.Request) error {
	if err := d.settings.setRequest(request); err != nil {
		return err
	}
	var err error
	if d.key, err = identity.Generate(); err != nil {
		return err
	}
	d.watch()
	key := onlyKey{Name: "client", Key: request.Key, Owner: true}
	if d.server, err = service.NewServer(d.serverConfig(key, d.numbers)); err != nil {
		return err
	}
	listening, err := d.listen(ctx)
	if err != nil {
		return err
	}
	d.onClose(listening.Close)
	if err := d.restrict(sandbox.Policy{}); err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(listening.Address())
	if err != nil {
		return err
	}
	answer := sshstart.Answer{Key: d.key.Public(), Port: at.Port(), Addresses: d.addresses()}
	if err := answer.Write(d.streams.Stdout); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	go d.endIfLonely(ctx, cancel)
	err = listening.Run(ctx)
	d.drain()
	return err
}

// setRequest replaces the settings of a daemon by the settings of a request. The client is the user who has logged in,
// so it decides alone about digest and durability.
func (s *Settings) setRequest(request sshstart.Request) error {
	var err error
	if s.Paths, err = device.ParsePathList(request.Path); err != nil {
		return exit.Errorf(exit.Protocol, "", "the path of the request: %w", err)
	}
	directory := request.Directory
	if below, is := strings.CutPrefix(directory, "~"); is {
		if directory, err = os.UserHomeDir(); err != nil {
			return exit.Usagef("%w", err)
		}
		directory = filepath.Join(directory, below)
	}
	_, err = disk.OS.Stat(directory)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case missing && request.Create:
		if err := disk.MakeAbove(disk.OS, filepath.Join(directory, "name")); err != nil {
			return disk.CannotCreate(directory, err)
		}
	case missing && request.Access.Allows(share.Write):
		return exit.Errorf(exit.Target, "create it, or use --mkpath, or mkdir -p", "directory %s does not exist",
			quote.Text(directory))
	}
	s.Shares = []share.Share{{Name: share.LoginShare, Path: directory, Access: request.Access, Privileged: true}}
	s.Listen = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	s.Device, s.Representors, s.Auth, s.DrainTimeout = "", nil, contact.AuthKeys, partingTime
	s.Metrics, s.StatusPage, s.AuditLog = "", false, ""
	if err := s.Validate(); err != nil {
		return err
	}
	s.Options.Digest, s.Options.Durability = digest.None, wire.DurabilityNone
	return nil
}

// onlyKey trusts the key of a request.
type onlyKey identity.Grant

var _ service.Trust = onlyKey{}

// Find implements service.Trust.
func (k onlyKey) Find(key identity.Public) (identity.Grant, bool) {
	return identity.Grant(k), key == k.Key
}

// All implements service.Trust.
func (k onlyKey) All() []identity.Grant { return []identity.Grant{identity.Grant(k)} }

// addresses returns the addresses of this machine, first the one that the client of ssh has used.
func (d *daemon) addresses() (found []netip.Addr) {
	if fields := strings.Fields(d.streams.Env.Get("SSH_CONNECTION")); len(fields) == 4 {
		if used, err := netip.ParseAddr(fields[2]); err == nil {
			found = append(found, used.Unmap().WithZone(""))
		}
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		d.log.Info().Err(err).Msg("the addresses of this machine are unknown")
	}
	for _, each := range all {
		prefix, err := netip.ParsePrefix(each.String())
		if err == nil && prefix.Addr().IsGlobalUnicast() && (len(found) == 0 || prefix.Addr() != found[0]) {
			found = append(found, prefix.Addr())
		}
	}
	return found
}

// endIfLonely calls end when no client was connected for a while: ssh does not always notice that it is gone.
func (d *daemon) endIfLonely(ctx context.Context, end func()) {
	const interval = lonelyTime / 4
	lonely := time.Duration(0)
	for lonely < lonelyTime {
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return
		}
		if lonely += interval; len(d.server.Status().Connections) > 0 {
			lonely = 0
		}
	}
	d.log.Warn().Msg("no client was connected for " + lonelyTime.String())
	end()
}
