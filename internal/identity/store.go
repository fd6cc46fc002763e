package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/quote"
)

const (
	trustedName = "trusted" // directory of the trusted keys
	trustedEnd  = ".key"    // of the name of a file there
)

// SystemDirectory is the directory of keys of root.
const SystemDirectory = "/etc/dma-copy"

// DefaultDirectory returns the directory of keys of a user: SystemDirectory of root, else dma-copy in the directory of
// the user's configuration. variable looks up the environment, as os.Getenv does.
func DefaultDirectory(user int, variable func(string) string) (string, error) {
	if user == 0 {
		return SystemDirectory, nil
	}
	if dir := variable("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dma-copy"), nil
	}
	if home := variable("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "dma-copy"), nil
	}
	return "", errors.New("no directory of keys: neither XDG_CONFIG_HOME nor HOME is an absolute path (use --keys DIR)")
}

// Store is a directory of keys. Every call opens and checks the directory anew. Calls may be concurrent, also of
// several processes.
type Store struct {
	path string
	user int // who may own files, besides root
}

// ErrNoKey means that the directory has no private key.
var ErrNoKey = errors.New("there is no key yet")

// ErrNotTrusted means that no trusted key has a name.
var ErrNotTrusted = errors.New("no trusted key has that name")

// ErrExists means that a key is there already, under the name or another one.
var ErrExists = errors.New("exists already")

// OpenStore returns the directory of keys at a path of the operator, in which symlinks are followed. It may not exist
// yet. One that another user can change is an UnsafeError.
func OpenStore(path string) (*Store, error) {
	s := &Store{path: path, user: os.Geteuid()}
	dir, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("directory of keys: %w", err)
	}
	return s, dir.Close()
}

// KeyPath returns the path of the private key.
func (s *Store) KeyPath() string { return filepath.Join(s.path, KeyFile) }

// Key loads the private key of the directory. ErrNoKey, or why its file cannot be used.
func (s *Store) Key() (*Key, error) { return s.key(s.user) }

// Public returns the public part of Key, to root also if the private key belongs to another user, as a service's key
// does: nobody takes it for root's.
func (s *Store) Public() (Public, error) {
	owner := s.user
	if owner == 0 {
		owner = anyUser
	}
	key, err := s.key(owner)
	if err != nil {
		return Public{}, err
	}
	return key.Public(), nil
}

func (s *Store) key(owner int) (*Key, error) {
	dir, err := s.open()
	if err == nil {
		defer func() { _ = dir.Close() }()
		var key *Key
		if key, err = loadKey(int(dir.Fd()), KeyFile, s.KeyPath(), owner); err == nil {
			return key, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s (make one with dma-copy keys new)", ErrNoKey, quote.Bare(s.KeyPath()))
	}
	return nil, err
}

// SaveKey makes the directory if needed and saves the private key there. ErrExists if there is one.
func (s *Store) SaveKey(key *Key) error {
	if err := s.make(); err != nil {
		return err
	}
	err := key.Save(s.KeyPath())
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s %w", quote.Bare(s.KeyPath()), ErrExists)
	}
	return err
}

// Load reads the trusted keys. An error means that the directory itself is not usable, so that no key is trusted; a
// directory that does not exist has none. A file that is refused does not affect the other ones.
func (s *Store) Load() (*Trusted, error) {
	t := &Trusted{byKey: make(map[Public]Grant)}
	dir, err := s.openTrusted()
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("trusted keys: %w", err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("trusted keys: %w", err)
	}
	slices.Sort(names)
	twice := make(map[Public]bool)
	for _, file := range names {
		name, is := strings.CutSuffix(file, trustedEnd)
		if !is || strings.HasPrefix(file, ".") {
			continue
		}
		grant, err := s.read(dir, name)
		if err != nil {
			t.refused = append(t.refused, err)
			continue
		}
		if other, is := t.byKey[grant.Key]; is {
			twice[grant.Key] = true
			t.refused = append(t.refused, fmt.Errorf("%s has the same key as %s: neither is trusted (remove one)",
				quote.Bare(s.grantPath(name)), other.Name))
			continue
		}
		t.byKey[grant.Key] = grant
	}
	for key := range twice {
		delete(t.byKey, key)
	}
	return t, nil
}

func (s *Store) read(dir *os.File, name string) (Grant, error) {
	path := s.grantPath(name)
	text, err := readFile(int(dir.Fd()), name+trustedEnd, path, s.user, unwritable, maxGrantFile)
	if err != nil {
		return Grant{}, err
	}
	grant, err := parseGrant(name, text)
	if err != nil {
		return Grant{}, fmt.Errorf("%s is refused: %w", quote.Bare(path), err)
	}
	return grant, nil
}

// Trust makes the directories if needed and saves a grant. ErrExists if the key is trusted under another name; or if
// the name is used, unless replace says that the grant takes its place.
func (s *Store) Trust(g Grant, replace bool) error {
	text, err := g.text()
	if err != nil {
		return fmt.Errorf("trust the key: %w", err)
	}
	trusted, err := s.Load()
	if err != nil {
		return err
	}
	if other, is := trusted.byKey[g.Key]; is && other.Name != g.Name {
		return fmt.Errorf("trust the key: it %w as %s", ErrExists, other.Name)
	}
	if err := s.make(trustedName); err != nil {
		return err
	}
	dir, err := s.openTrusted()
	if err != nil {
		return fmt.Errorf("trust the key: %w", err)
	}
	defer func() { _ = dir.Close() }()
	err = createFile(dir, g.Name+trustedEnd, text, 0o644, replace)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("trust the key: %s %w", quote.Bare(s.grantPath(g.Name)), ErrExists)
	}
	if err != nil {
		return fmt.Errorf("trust the key: %w", err)
	}
	return nil
}

// Remove ends the trust in the key with a name, whether or not its file is valid. ErrNotTrusted if there is none.
func (s *Store) Remove(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	dir, err := s.openTrusted()
	if err == nil {
		defer func() { _ = dir.Close() }()
		if err = unix.Unlinkat(int(dir.Fd()), name+trustedEnd, 0); err == nil {
			return dir.Sync()
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", name, ErrNotTrusted)
	}
	return fmt.Errorf("remove %s: %w", name, err)
}

func (s *Store) grantPath(name string) string {
	return filepath.Join(s.path, trustedName, name+trustedEnd)
}

func (s *Store) open() (*os.File, error) {
	return openDirectory(unix.AT_FDCWD, s.path, s.path, s.user, true)
}

// Path returns the path of the directory, as it was given to OpenStore.
func (s *Store) Path() string { return s.path }

func (s *Store) openTrusted() (*os.File, error) {
	dir, err := s.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return openDirectory(int(dir.Fd()), trustedName, filepath.Join(s.path, trustedName), s.user, false)
}

// make makes the directory with its parents, and below it one more if it has a name.
func (s *Store) make(name ...string) error {
	path := filepath.Join(append([]string{s.path}, name...)...)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("make the directory of keys: %w", err)
	}
	dir, err := s.open()
	if err != nil {
		return fmt.Errorf("directory of keys: %w", err)
	}
	return dir.Close()
}

// Trusted is the set of trusted keys as it was when Load read it. It does not change, and is safe for concurrent use.
type Trusted struct {
	byKey   map[Public]Grant
	refused []error
}

// Find returns what a key may do, if it is trusted.
func (t *Trusted) Find(key Public) (Grant, bool) {
	g, is := t.byKey[key]
	g.Shares = maps.Clone(g.Shares)
	return g, is
}

// Named returns the trusted key with a name.
func (t *Trusted) Named(name string) (Grant, bool) {
	for _, g := range t.All() {
		if g.Name == name {
			return g, true
		}
	}
	return Grant{}, false
}

// All returns the trusted keys by name.
func (t *Trusted) All() []Grant {
	all := slices.Collect(maps.Values(t.byKey))
	slices.SortFunc(all, func(a, b Grant) int { return strings.Compare(a.Name, b.Name) })
	for i := range all {
		all[i].Shares = maps.Clone(all[i].Shares)
	}
	return all
}

// Refused returns why files of trusted keys were not read, one error each, by name of the file.
func (t *Trusted) Refused() []error { return slices.Clone(t.refused) }
