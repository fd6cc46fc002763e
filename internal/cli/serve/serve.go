// Package serve is the daemon, which lets commands on the other side use directories.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/dma-copy/dma-copy/internal/background"
	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/daemon/audit"
	"github.com/dma-copy/dma-copy/internal/daemon/metrics"
	"github.com/dma-copy/dma-copy/internal/daemon/notify"
	"github.com/dma-copy/dma-copy/internal/daemon/runtimedir"
	"github.com/dma-copy/dma-copy/internal/daemon/sandbox"
	"github.com/dma-copy/dma-copy/internal/daemon/status"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/release"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/service"
)

// Command returns the command serve.
func Command() root.Command {
	s := new(Settings)
	return root.Command{
		Name:    "serve",
		Summary: "Serve directories to commands on the other side",
		About: `Lets push, pull, sync, ls and ping on the other side use the directories that
--share names, until SIGTERM. On the DPU it serves the host functions of -r, on
the host the DPU, with --listen other machines. Only peers whose key is trusted
are served, see dma-copy keys; --auth none serves anybody.

SIGHUP reads shares and keys again, without an effect on running copies. SIGTERM
lets running copies end, for --drain-timeout, as does the end of its terminal; a
second SIGTERM ends at once. The flags may be in a --json file, in its group
"serve" (configs/serve.json).
`,
		Examples: `dpu$  dma-copy serve -r b1:00.1 --share inbox=/srv/inbox,rw
host$ dma-copy push image.bin :inbox/
lab$  dma-copy serve --listen :7483 --share inbox=/srv/inbox,rw
here$ dma-copy push image.bin ucx://lab.example/inbox/
`,
		Settings: s,
		Run: func(ctx context.Context, streams root.Streams, _ []string, log zerolog.Logger) error {
			if err := s.Validate(); err != nil {
				return err
			}
			root.IgnoreSIGPIPE()
			return runServe(ctx, streams, s, log)
		},
	}
}

func runServe(ctx context.Context, streams root.Streams, s *Settings, log zerolog.Logger) (err error) {
	chosen := inventory.Selection{Device: s.Device, Role: s.Role}
	if !s.ServesNetwork() {
		chosen.Otherwise = "serve other machines with --listen"
	}
	if len(s.Representors) > 0 {
		chosen.Representor = s.Representors[0]
	}
	on := &connect.Side{Is: wire.Server}
	if s.ServesDevice() {
		if on, err = connect.Open(s.Driver.Options(), chosen, log); err != nil {
			return err
		}
	}
	defer on.End(&err)
	d := &daemon{Side: on, streams: streams, settings: s, log: log}
	return errors.Join(d.run(ctx), d.close())
}

// daemon is the process of serve. It closes in the opposite order of opening.
type daemon struct {
	*connect.Side
	streams  root.Streams
	settings *Settings
	log      zerolog.Logger
	key      *identity.Key
	server   *service.Server
	numbers  *metrics.Metrics
	metrics  string // where they are served; empty: nowhere
	shown    status.Daemon
	manager  *notify.Manager
	audit    *audit.Log // nil: none
	confined *sandbox.Restriction
	closers  []func() error
}

func (d *daemon) run(ctx context.Context) error {
	if d.MovesNothing() {
		return connect.ErrMovesNothing
	}
	hangups := root.DivertHangups(ctx)
	store, err := connect.OpenKeys(d.streams.Env.Get, d.settings.Keys)
	if err != nil {
		return connect.KeysError(err, exit.Usage)
	}
	runtime, err := d.lock()
	if err != nil {
		return err
	}
	if err := d.start(ctx, store, runtime); err != nil {
		return err
	}
	meetings, err := d.open(ctx)
	if err != nil {
		return report.WithSide(d.Side.Is, err)
	}
	if err := d.confine(store, runtime); err != nil {
		return err
	}
	stop := background.Answer(root.ProgressRequests(ctx), func() {
		_ = status.WriteText(d.streams.Stderr, d.shown.Document(time.Now()), time.Local) // the reader may be gone
	})
	defer stop()
	d.announce()
	return report.WithSide(d.Side.Is, d.serve(ctx, meetings, hangups, store))
}

// acceptor brings commands to the server until ctx ends.
type acceptor interface {
	Run(ctx context.Context) error
}

// open offers the service over the device and to other machines.
func (d *daemon) open(ctx context.Context) ([]acceptor, error) {
	var meetings []acceptor
	if d.Device != nil {
		device, err := service.OpenDaemon(service.DaemonConfig{
			Server: d.server, Device: d.Device, Side: d.Side.Is, Representors: d.settings.Representors, Log: d.log,
		})
		if err != nil {
			return nil, err
		}
		d.onClose(device.Close)
		meetings = append(meetings, device)
	}
	if d.settings.ServesNetwork() {
		listening, err := d.listen(ctx)
		if err != nil {
			return nil, err
		}
		d.onClose(listening.Close)
		meetings = append(meetings, listening)
	}
	return meetings, nil
}

func (d *daemon) onClose(end func() error) { d.closers = append(d.closers, end) }

func (d *daemon) close() error {
	var failed error
	for i := len(d.closers) - 1; i >= 0; i-- {
		failed = errors.Join(failed, d.closers[i]())
	}
	return failed
}

// lock opens the runtime directory, and refuses to run next to another daemon for the same functions.
func (d *daemon) lock() (*runtimedir.Dir, error) {
	path := d.settings.RuntimeDir
	if path == "" {
		var err error
		if path, err = runtimedir.Default(d.streams.Env.Get, os.Geteuid()); err != nil {
			return nil, err
		}
	}
	dir, err := runtimedir.Open(path)
	if err != nil {
		return nil, err
	}
	var names []string
	if d.settings.ServesNetwork() {
		names = append(names, portName(d.settings))
	}
	if d.Device != nil {
		functions, err := d.functions()
		if err != nil {
			return nil, err
		}
		names = append(names, functions...)
	}
	for _, name := range names {
		locked, err := dir.Lock(name)
		if err != nil {
			return nil, err
		}
		d.onClose(locked.Close)
	}
	return dir, nil
}

// portName is what the user reads for the port of a daemon.
func portName(s *Settings) string { return "TCP " + s.Listen.String() }

// functions returns the names that every daemon uses for its device with each of the host functions, however they were
// given, or for the device alone.
func (d *daemon) functions() ([]string, error) {
	device := d.Device.Info().Name()
	if len(d.settings.Representors) == 0 {
		return []string{device}, nil
	}
	var names []string
	for _, given := range d.settings.Representors {
		rep, err := d.Device.OpenRepresentor(given)
		if err != nil {
			return nil, err
		}
		function := rep.Info().Name()
		if err := rep.Close(); err != nil {
			return nil, err
		}
		name := device + " " + function
		if slices.Contains(names, name) {
			return nil, exit.Usagef("--rep-pci names %s twice: leave one out", function)
		}
		names = append(names, name)
	}
	return names, nil
}

// start makes the server and everything that watches it.
func (d *daemon) start(ctx context.Context, store *identity.Store, runtime *runtimedir.Dir) error {
	s := d.settings
	trust, err := d.identify(store)
	if err != nil {
		return err
	}
	if err := placement.Apply(placement.ThisMachine, d.Near(), s.Placement, d.log); err != nil {
		return err
	}
	d.manager = notify.Connect(d.streams.Env.Get, os.Getpid(), d.log)
	d.onClose(d.manager.Close)
	texts := d.streams.Stdout
	if s.Quiet {
		texts = io.Discard
	}
	w := d.watch()
	observers := append(w.observers(), d.numbers, &sessionLog{log: d.log, stdout: texts})
	if d.audit, err = d.openAudit(); err != nil {
		return err
	}
	if d.audit != nil {
		d.onClose(d.audit.Close)
		observers = append(observers, d.audit)
	}
	if d.server, err = service.NewServer(d.serverConfig(trust, observers)); err != nil {
		return err
	}
	if err := d.publish(runtime, w); err != nil {
		return err
	}
	go d.manager.Watchdog(ctx, func() { d.server.Status() })
	return nil
}

// identify reads the keys. A daemon without trusted keys would serve nobody.
func (d *daemon) identify(store *identity.Store) (service.Trust, error) {
	var err error
	if d.key, err = store.Key(); d.settings.Auth == contact.AuthNone {
		if errors.Is(err, identity.ErrNoKey) {
			d.key, err = identity.Generate()
		}
		d.log.Warn().Msg("--auth none: anybody on the other side may use the shares")
		return nil, connect.KeysError(err, exit.Usage)
	}
	if err != nil {
		return nil, connect.KeysError(err, exit.Usage)
	}
	trusted, err := d.loadTrust(store)
	if err != nil {
		return nil, err
	}
	if len(trusted.All()) == 0 {
		return nil, exit.Usagef("no key is trusted: run dma-copy keys trust with the key of the other side, " +
			"or serve anybody with --auth none")
	}
	return trusted, nil
}

func (d *daemon) loadTrust(store *identity.Store) (*identity.Trusted, error) {
	trusted, err := store.Load()
	if err != nil {
		return nil, connect.KeysError(err, exit.Usage)
	}
	for _, refused := range trusted.Refused() {
		d.log.Warn().Err(refused).Msg("a trusted key is not used")
	}
	return trusted, nil
}

func (d *daemon) openAudit() (*audit.Log, error) {
	switch d.settings.AuditLog {
	case "":
		return nil, nil
	case option.Stream:
		return audit.New(d.streams.Stderr, d.log), nil
	}
	return audit.Open(d.settings.AuditLog, d.log)
}

func (d *daemon) serverConfig(trust service.Trust, observer service.Observer) service.ServerConfig {
	s := d.settings
	s.Path = s.DevicePath()
	return service.ServerConfig{
		Key: d.key, AuthNone: s.Auth == contact.AuthNone, Trust: trust, Shares: s.Shares,
		Forbidden: d.forbidden,
		Limits: service.Limits{
			Connections: s.MaxConnections, PerKey: s.MaxKeyConnections, Transfers: s.MaxTransfers, Memory: s.MaxMemory,
			Bandwidth: s.Options.Bandwidth, MaxBytes: s.Options.MaxBytes, MaxEntries: s.Options.MaxEntries,
			IdleTimeout: s.IdleTimeout,
		},
		Name: connect.MachineName(), User: connect.UserName(), Text: strings.TrimSpace(release.SoftwareName() + " on " +
			connect.MachineName()),
		Copy: copying.Options(s.Settings, d.Device, d.Side.Is, root.DataStreams{}, d.log), Observer: observer,
		Log: d.log,
	}
}

// announce tells the operator and the service manager that the daemon is ready.
func (d *daemon) announce() {
	s := d.settings
	var shares []string
	for _, each := range s.Shares {
		shares = append(shares, fmt.Sprintf("%s (%s)", each.Name, each.Access))
	}
	who := "trusted keys only; words of this side's key: " + d.key.Public().Words()
	if s.Auth == contact.AuthNone {
		who = "ANYBODY there (--auth none)"
	}
	if !s.Quiet {
		fmt.Fprintf(d.streams.Stderr, "ready %s on %s serves %s to %s\n      %s\n", release.SoftwareName(),
			d.where(), strings.Join(shares, ", "), quote.Printable(d.served()), who)
		if d.metrics != "" {
			fmt.Fprintf(d.streams.Stderr, "      %s\n", d.metrics)
		}
	}
	d.manager.Ready()
}

// where names the device and the port.
func (d *daemon) where() string {
	var names []string
	if d.Device != nil {
		names = append(names, d.Device.Info().Name())
	}
	if d.settings.ServesNetwork() {
		names = append(names, portName(d.settings))
	}
	return strings.Join(names, " and ")
}

// served names those whose commands can reach the daemon.
func (d *daemon) served() string {
	var names []string
	switch {
	case d.Device == nil:
	case d.Side.Is == wire.DPU:
		names = append(names, d.settings.Representors...)
	default:
		names = append(names, "the DPU")
	}
	if d.settings.ServesNetwork() {
		names = append(names, "other machines")
	}
	return strings.Join(names, ", ")
}

// serve brings commands to the server until ctx ends, or one of the meetings fails, and then drains it.
func (d *daemon) serve(
	ctx context.Context, meetings []acceptor, hangups <-chan struct{}, store *identity.Store,
) error {
	ended := make(chan error, 1)
	go func() {
		running, ctx := errgroup.WithContext(ctx)
		for _, each := range meetings {
			running.Go(func() error { return each.Run(ctx) })
		}
		ended <- running.Wait()
	}()
	for {
		select {
		case <-hangups:
			d.reload(store)
		case err := <-ended: // nil if ctx has ended
			d.manager.Stopping()
			d.drain()
			return err
		}
	}
}

// drain lets the running copies end, for --drain-timeout; 0 is no limit.
func (d *daemon) drain() {
	ctx := context.Background() // the program's context has ended, and running copies go on
	if limit := d.settings.DrainTimeout; limit > 0 {
		var cancel context.CancelFunc
		cause := fmt.Errorf("%w, and --drain-timeout (%s) is over", service.ErrDraining, limit)
		ctx, cancel = context.WithTimeoutCause(ctx, limit, cause)
		defer cancel()
	}
	d.server.Drain(ctx)
}
