package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/inventory"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/share"
)

// reach is how a command reaches a daemon.
type reach struct {
	config.Contact
	config.Reach
	daemon    share.Remote      // how the user names it
	waits     output.WaitOutput // says that the daemon is awaited
	bandwidth int64             // bytes per second; 0 is no limit

	validate func(network bool) error // checks the other settings; may be nil

	// For one of many daemons: open opens a device, nil if the driver is opened for this daemon alone; warned says that
	// what concerns all of them was logged.
	open   func(chosen inventory.Selection) (*side, error)
	warned bool
}

// contact is a command's connection to a daemon.
type contact struct {
	*side
	client *service.Client
	path   output.Path // with the daemon as its Peer
	stop   func()      // no longer answers requests for progress
}

// connect connects to the daemon. Errors have the side. The context is that of the work until end: requests for
// progress are answered by what the client waits for outside of a copy, unless that is nothing.
func connect(ctx context.Context, streams streams, r reach, log zerolog.Logger) (context.Context, *contact, error) {
	peer, err := r.Choose(r.daemon, r.Device, r.Representor)
	if err != nil {
		return ctx, nil, err
	}
	network := peer.Address != ""
	if err := r.check(network); err != nil {
		return ctx, nil, err
	}
	id, err := identify(streams.env, r.Contact, peer)
	if err != nil {
		return ctx, nil, err
	}
	if !r.warned {
		warnOfKeys(id, r.Auth, log)
	}
	chosen := inventory.Selection{Device: peer.Device, Representor: peer.Representor, Role: r.Role}
	on := &side{side: wire.Client, address: peer.Address}
	switch {
	case network:
	case r.open != nil:
		on, err = r.open(chosen)
	default:
		on, err = openSide(r.Driver, chosen, log)
	}
	if err != nil {
		return ctx, nil, err
	}
	c := &contact{side: on, stop: func() {}}
	if err = c.authenticate(ctx, r, peer, id, log); err == nil {
		err = id.remember(r.nameOfKey(), c.client.Peer().Key, streams.stderr)
	}
	if err != nil {
		c.end(&err)
		return ctx, nil, err
	}
	if r.open == nil { // with many daemons there are only copies, and their reporter alone writes to stderr
		ctx, c.stop = answerBefore(ctx, func() bool {
			waits := c.client.Waits()
			if waits != "" {
				fmt.Fprintln(streams.stderr, waits)
			}
			return waits != ""
		})
	}
	return ctx, c, nil
}

// end closes the connection after work that ended with *err, to which it adds the side and the errors of the end.
func (c *contact) end(err *error) {
	c.stop()
	if c.client != nil {
		*err = errors.Join(*err, closeUnlessHung(*err, c.client.Close))
	}
	*err = withSide(c.side.side, *err)
	c.side.end(err)
}

// warnOfKeys warns of what lets other peers be accepted than the trusted ones, or fewer.
func warnOfKeys(id identification, auth config.AuthChoice, log zerolog.Logger) {
	for _, refused := range id.trusted.Refused() {
		log.Warn().Err(refused).Msg("a trusted key is not used")
	}
	if auth == config.AuthNone {
		log.Warn().Msg("--auth none: nobody checks who the daemon is, nor who this side is")
	}
}

// check checks the settings when it is known what the daemon is reached over.
func (r reach) check(network bool) error {
	validateDriver := r.Driver.ValidateForDevice
	if network {
		validateDriver = r.Driver.ValidateForNetwork
	}
	if err := validateDriver(); err != nil || r.validate == nil {
		return err
	}
	return r.validate(network)
}

// withSide returns the error with its side, unless it has one.
func withSide(side wire.Side, err error) error {
	if sided, is := errors.AsType[*output.SideError](err); err == nil || is && sided != nil {
		return err
	}
	if coded, is := errors.AsType[exit.Coder](err); is && coded.ExitCode() == exit.Usage {
		return err
	}
	return &output.SideError{Side: side, Err: err}
}

// authenticate meets the daemon and authenticates both sides.
func (c *contact) authenticate(
	ctx context.Context, r reach, peer option.Peer, id identification, log zerolog.Logger,
) error {
	wait := r.waitFor(c.side, peer)
	stop := output.Waiting(wait, r.waits, progressRequests(ctx))
	defer stop()
	client, err := meet(ctx, c.side, r, peer, service.ClientConfig{
		Key: id.key, Verify: id.verify, Anonymous: r.Auth == config.AuthNone, Software: softwareName(),
		Name: machineName(), User: userName(), IdleTimeout: r.IdleTimeout, Log: log,
		Waiting: func(ahead int) { log.Info().Int("copies", ahead).Msg("waiting until other copies have ended") },
	})
	if err != nil {
		return withDaemonHint(err, wait, c.device == nil)
	}
	c.client, c.path = client, c.side.path(r.Driver)
	known := client.Peer()
	grant, _ := id.trusted.Find(known.Key)
	c.path.Peer = &output.Peer{
		Key: grant.Name, Fingerprint: known.Key.String(), Software: known.Software,
		Machine: known.Name, User: known.User,
		Authenticated: known.Authenticates && r.Auth == config.AuthKeys,
	}
	return nil
}

// waitOutput returns how a command with one peer says that it waits.
func waitOutput(s streams, form option.OutputForm, quiet bool, log zerolog.Logger) output.WaitOutput {
	return output.NewWaitOutput(s.stdout, s.stderr, s.screen, form, quiet, log)
}

// waitFor describes the wait for the daemon.
func (r reach) waitFor(on *side, peer option.Peer) output.Wait {
	return output.WaitForDaemon(on.side, on.hostFunction(peer.Representor), peer.Address, r.Auth == config.AuthNone,
		r.Wait)
}

// meet connects to the daemon over the device, or over the network.
func meet(ctx context.Context, on *side, r reach, peer option.Peer, c service.ClientConfig) (*service.Client, error) {
	if on.device == nil {
		c.Log.Info().Str("address", peer.Address).Msg("connecting to the daemon")
		return dial(ctx, peer.Address, r, c)
	}
	c.Log.Info().Stringer("side", on.side).Str("device", on.device.Info().PCIAddress).Msg("waiting for the daemon")
	return service.Dial(ctx, service.Meeting{
		Device: on.device, Side: on.side, Representor: peer.Representor, Wait: r.Wait,
	}, c)
}

// nameOfKey returns the name under which --trust-first trusts the key of the daemon: that of the peer, or that of its
// machine.
func (r reach) nameOfKey() string {
	host, _, err := net.SplitHostPort(r.daemon.Address)
	if err != nil || share.CheckName(host) != nil {
		host = "daemon"
	}
	return cmp.Or(r.daemon.Peer, host)
}

// withDaemonHint says what is to be started where no peer has appeared.
func withDaemonHint(err error, wait output.Wait, overNetwork bool) error {
	if errors.Is(err, network.ErrNotListening) {
		next := "start it there, or give --wait to wait for it: " + wait.Start[0]
		return exit.Errorf(exit.Peer, next, "no daemon: %w", err)
	}
	if !errors.Is(err, comch.ErrPeerAbsent) {
		return err
	}
	next := wait.NextStep()
	if overNetwork {
		next = "check address and firewall, " + next
	}
	return exit.Errorf(exit.Peer, next, "no daemon: %w", err)
}

// machineName returns the name of this machine for the peer, empty if it has none that can be sent.
func machineName() string {
	name, _ := os.Hostname() // empty with an error
	return nameForPeers(name)
}

// userName returns the name of the user of this process for the peer, empty if there is none that can be sent.
func userName() string {
	account, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil {
		return ""
	}
	return nameForPeers(account.Username)
}

// nameForPeers returns a name if the service protocol can have it, which is printable ASCII, and otherwise nothing.
func nameForPeers(name string) string {
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	if len(name) > wire.MaxSoftwareName || strings.ContainsFunc(name, unprintable) {
		return ""
	}
	return name
}

// identification is who this side is, and whom it accepts as the daemon.
type identification struct {
	key     *identity.Key // nil: none of its own
	store   *identity.Store
	trusted *identity.Trusted // empty if nobody is authenticated
	verify  func(identity.Public) error
	first   bool // the daemon's key is to be trusted from now on, if it is not
}

// identify reads the keys. peer may name the only key that the daemon may have.
func identify(env option.Environment, s config.Contact, peer option.Peer) (identification, error) {
	store, err := openKeys(env, s.Keys)
	if err != nil {
		return identification{}, keysError(err, exit.Usage)
	}
	id := identification{store: store, trusted: new(identity.Trusted), verify: secure.AnyKey}
	id.key, err = store.Key()
	if s.Auth == config.AuthNone {
		if errors.Is(err, identity.ErrNoKey) {
			err = nil
		}
		return id, keysError(err, exit.Usage)
	}
	if err == nil {
		id.trusted, err = store.Load()
	}
	if err != nil {
		return id, keysError(err, exit.Usage)
	}
	// A file that is refused may be that of the daemon's key, in place of which no other one is to be trusted.
	id.first = s.TrustFirst && len(id.trusted.All()) == 0 && len(id.trusted.Refused()) == 0
	id.verify, err = verifier(id, peer)
	return id, err
}

var errNotTrusted = errors.New("it is not trusted here")

// verifier returns the check of the daemon's key.
func verifier(id identification, peer option.Peer) (func(identity.Public) error, error) {
	if peer.Key == "" {
		return func(key identity.Public) error {
			if _, trusted := id.trusted.Find(key); !trusted && !id.first {
				return errNotTrusted
			}
			return nil
		}, nil
	}
	pinned, _, err := identity.ParsePublic(peer.Key)
	if grant, named := id.trusted.Named(peer.Key); named {
		pinned, err = grant.Key, nil
	}
	if err != nil {
		return nil, exit.Usagef("%s: key %s: neither the name of a trusted key nor a key: run dma-copy keys list",
			peer.Origin, quote.Text(peer.Key))
	}
	return func(key identity.Public) error {
		if key != pinned {
			return errors.New("it is not the one that the configuration has for this peer")
		}
		return nil
	}, nil
}

// remember trusts the key that the daemon has proved, with --trust-first, and tells the user its words.
func (id identification) remember(name string, key identity.Public, stderr io.Writer) error {
	if !id.first {
		return nil
	}
	if err := id.store.Trust(identity.Grant{Name: name, Key: key}, false); err != nil {
		return keysError(err, exit.Target)
	}
	output.WriteTrusted(stderr, name, key.Words())
	return nil
}
