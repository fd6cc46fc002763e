package connect

import (
	"errors"
	"io/fs"
	"os"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// OpenKeys opens a directory of keys, the default one if the path is empty. getenv is
// as os.Getenv.
func OpenKeys(getenv func(string) string, path string) (*identity.Store, error) {
	if path == "" {
		var err error
		if path, err = identity.DefaultDirectory(os.Geteuid(), getenv); err != nil {
			return nil, exit.Usagef("%w", err)
		}
	}
	return identity.OpenStore(path)
}

// KeysError gives an error of package identity its exit code; system is the code for an error of the system.
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
func (id Identity) WarnOfKeys(log zerolog.Logger) {
	for _, refused := range id.trusted.Refused() {
		log.Warn().Err(refused).Msg("a trusted key is not used")
	}
	if id.Anonymous {
		log.Warn().Msg("--auth none: nobody checks who the daemon is, nor who this side is")
	}
}

// Keys says which keys prove who the two sides are.
type Keys struct {
	Directory  string // of this side's key and of the trusted keys; empty: the default one
	Anonymous  bool   // nobody is authenticated
	TrustFirst bool   // trust the key of a daemon while none is trusted
	Pinned     string // name of a trusted key, or the line of a key, that the daemon must have; empty: any trusted key
	Origin     string // of Pinned, for errors

	Getenv func(string) string // as os.Getenv
}

// Identity is who this side is, and whom it accepts as the daemon.
type Identity struct {
	Anonymous bool // nobody is authenticated

	key     *identity.Key // nil: none of its own
	store   *identity.Store
	trusted *identity.Trusted // empty if nobody is authenticated
	verify  func(identity.Public) error
	first   bool // the daemon's key is to be trusted from now on, if it is not
}

// Identify reads the keys.
func Identify(s Keys) (Identity, error) {
	store, err := OpenKeys(s.Getenv, s.Directory)
	if err != nil {
		return Identity{}, KeysError(err, exit.Usage)
	}
	id := Identity{Anonymous: s.Anonymous, store: store, trusted: new(identity.Trusted), verify: secure.AnyKey}
	id.key, err = store.Key()
	if s.Anonymous {
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
	// A file that is refused may hold the daemon's key, and no other key is to be trusted instead.
	id.first = s.TrustFirst && len(id.trusted.All()) == 0 && len(id.trusted.Refused()) == 0
	id.verify, err = id.verifier(s)
	return id, err
}

var errNotTrusted = errors.New("it is not trusted here")

// verifier returns the check of the daemon's key.
func (id Identity) verifier(s Keys) (func(identity.Public) error, error) {
	if s.Pinned == "" {
		return func(key identity.Public) error {
			if _, trusted := id.trusted.Find(key); !trusted && !id.first {
				return errNotTrusted
			}
			return nil
		}, nil
	}
	pinned, _, err := identity.ParsePublic(s.Pinned)
	if grant, named := id.trusted.Named(s.Pinned); named {
		pinned, err = grant.Key, nil
	}
	if err != nil {
		return nil, exit.Usagef("%s: key %s: neither the name of a trusted key nor a key: run dma-copy keys list",
			s.Origin, quote.Text(s.Pinned))
	}
	return func(key identity.Public) error {
		if key != pinned {
			return errors.New("it is not the one that the configuration has for this peer")
		}
		return nil
	}, nil
}

// remember trusts the key that the daemon has proved if it is to be trusted from now on, and reports whether it was.
func (id Identity) remember(name string, key identity.Public) (bool, error) {
	if !id.first {
		return false, nil
	}
	return true, KeysError(id.store.Trust(identity.Grant{Name: name, Key: key}, false), exit.Target)
}
