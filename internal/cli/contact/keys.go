package contact

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// OpenKeys opens a directory of keys, the default one if the path is empty.
func OpenKeys(env option.Environment, path string) (*identity.Store, error) {
	if path == "" {
		var err error
		if path, err = identity.DefaultDirectory(os.Geteuid(), env.Get); err != nil {
			return nil, exit.Usagef("%w", err)
		}
	}
	return identity.OpenStore(path)
}

// KeysError gives an error of package identity its exit code; system is that of an error of the system.
func KeysError(err error, system int) error {
	_, coded := errors.AsType[*exit.Error](err)
	_, ofSystem := errors.AsType[*fs.PathError](err)
	switch {
	case err == nil || coded:
		return err
	case errors.Is(err, identity.ErrExists):
		return exit.Errorf(exit.Target, "", "%w", err)
	case errors.Is(err, identity.ErrNoKey), errors.Is(err, identity.ErrNotTrusted):
		return exit.Usagef("%w", err)
	case ofSystem:
		return exit.Errorf(system, "check the directory and its owner, or choose another one with --keys", "%w", err)
	default:
		return exit.Errorf(exit.Refused, "", "%w", err)
	}
}

// WarnOfKeys warns of what lets other peers be accepted than the trusted ones, or fewer.
func WarnOfKeys(id identification, auth AuthChoice, log zerolog.Logger) {
	for _, refused := range id.trusted.Refused() {
		log.Warn().Err(refused).Msg("a trusted key is not used")
	}
	if auth == AuthNone {
		log.Warn().Msg("--auth none: nobody checks who the daemon is, nor who this side is")
	}
}

// identification is who this side is, and whom it accepts as the daemon.
type identification struct {
	key     *identity.Key // nil: none of its own
	store   *identity.Store
	trusted *identity.Trusted // empty if nobody is authenticated
	verify  func(identity.Public) error
	first   bool // the daemon's key is to be trusted from now on, if it is not
}

// Identify reads the keys. peer may name the only key that the daemon may have.
func Identify(env option.Environment, s Contact, peer option.Peer) (identification, error) {
	store, err := OpenKeys(env, s.Keys)
	if err != nil {
		return identification{}, KeysError(err, exit.Usage)
	}
	id := identification{store: store, trusted: new(identity.Trusted), verify: secure.AnyKey}
	id.key, err = store.Key()
	if s.Auth == AuthNone {
		if errors.Is(err, identity.ErrNoKey) {
			err = nil
		}
		return id, KeysError(err, exit.Usage)
	}
	if err == nil {
		id.trusted, err = store.Load()
	}
	if err != nil {
		return id, KeysError(err, exit.Usage)
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
		return KeysError(err, exit.Target)
	}
	output.WriteTrusted(stderr, name, key.Words())
	return nil
}
