package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSavedKeyIsLoaded(t *testing.T) {
	key := newKey(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	must(t, key.Save(path))
	loaded, err := load(path)
	if err != nil || loaded.Public() != key.Public() || !loaded.private.Equal(key.private) {
		t.Errorf("loaded %v, %v", loaded, err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	checkNames(t, dir, "key")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkNames expects these files in a directory and nothing else.
func checkNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("the directory has %q, want %q", names, want)
	}
}

// A key is never written over something else, whatever that is.
func TestSaveReplacesNothing(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"file":             func(path string) error { return os.WriteFile(path, []byte("other"), 0o600) },
		"dangling symlink": func(path string) error { return os.Symlink("elsewhere", path) },
		"directory":        func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "key")
			must(t, make(path))
			if err := newKey(t).Save(path); !errors.Is(err, fs.ErrExist) {
				t.Errorf("got %v", err)
			}
			checkNames(t, dir, "key")
		})
	}
}

func TestSaveInADirectoryOfOthers(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o777))
	checkUnsafe(t, newKey(t).Save(filepath.Join(dir, "key")), "mode 0777")
	checkNames(t, dir)
}

// checkUnsafe expects an UnsafeError about this problem.
func checkUnsafe(t *testing.T, err error, problem string) {
	t.Helper()
	var refused *UnsafeError
	if !errors.As(err, &refused) || !strings.Contains(refused.Problem, problem) {
		t.Errorf("got %v, want a refusal because of %q", err, problem)
	}
}

func TestUnsafeKeyFilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(path string) error
		problem string
	}{
		"read by the group":    {func(path string) error { return os.Chmod(path, 0o640) }, "mode 0640"},
		"read by others":       {func(path string) error { return os.Chmod(path, 0o604) }, "mode 0604"},
		"written by the group": {func(path string) error { return os.Chmod(path, 0o620) }, "mode 0620"},
		"executed by others":   {func(path string) error { return os.Chmod(path, 0o701) }, "mode 0701"},
		"symlink":              {behindASymlink, "symlink"},
		"FIFO": {func(path string) error {
			return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600))
		}, "not a regular file"},
		"directory": {func(path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		}, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			must(t, newKey(t).Save(path))
			must(t, c.spoil(path))
			key, err := load(path)
			checkUnsafe(t, err, c.problem)
			if key != nil {
				t.Error("there is a key nevertheless")
			}
		})
	}
}

func behindASymlink(path string) error {
	return errors.Join(os.Rename(path, path+"-real"), os.Symlink(path+"-real", path))
}

// Each of the conditions refuses by itself, for a user and for root.
func TestCheck(t *testing.T) {
	const user = 1000
	good := unix.Stat_t{Mode: unix.S_IFREG | 0o600, Uid: user}
	for name, c := range map[string]struct {
		change  func(*unix.Stat_t)
		e       exposure
		user    int
		refused bool
	}{
		"own":                        {func(*unix.Stat_t) {}, private, user, false},
		"own, read-only":             {func(s *unix.Stat_t) { s.Mode = unix.S_IFREG | 0o400 }, private, user, false},
		"root's":                     {func(s *unix.Stat_t) { s.Uid = 0 }, private, user, false},
		"root's for root":            {func(s *unix.Stat_t) { s.Uid = 0 }, private, 0, false},
		"another user's":             {func(s *unix.Stat_t) { s.Uid = 1001 }, private, user, true},
		"a user's for root":          {func(*unix.Stat_t) {}, private, 0, true},
		"a large user's for another": {func(s *unix.Stat_t) { s.Uid = 1<<32 - 1 }, unwritable, user, true},
		"public, read by all":        {func(s *unix.Stat_t) { s.Mode = unix.S_IFREG | 0o644 }, unwritable, user, false},
		"public, of the group":       {func(s *unix.Stat_t) { s.Mode = unix.S_IFREG | 0o664 }, unwritable, user, true},
		"public, of others":          {func(s *unix.Stat_t) { s.Mode = unix.S_IFREG | 0o646 }, unwritable, user, true},
		"device":                     {func(s *unix.Stat_t) { s.Mode = unix.S_IFCHR | 0o600 }, private, user, true},
		"no type":                    {func(s *unix.Stat_t) { s.Mode = 0o600 }, private, user, true},
	} {
		stat := good
		c.change(&stat)
		if err := check("f", &stat, unix.S_IFREG, c.user, c.e); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFilesWithoutAKeyAreRefused(t *testing.T) {
	public := newKey(t).Public()
	good := pemOf(t, newKey(t).private)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	for name, text := range map[string][]byte{
		"empty":          nil,
		"text":           []byte("a key\n"),
		"cut":            good[:len(good)/2],
		"two keys":       append(bytes.Clone(good), good...),
		"another type":   pemOf(t, other),
		"public key":     pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public[:]}),
		"no PKCS #8":     pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: public[:]}),
		"larger than 16": append(bytes.Repeat([]byte("\n"), maxKeyFile), good...),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			must(t, os.WriteFile(path, text, 0o600))
			if key, err := load(path); err == nil || key != nil {
				t.Errorf("loaded %v, %v", key, err)
			}
		})
	}
	if _, err := load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

func pemOf(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})
}

func TestCertificateHasTheKey(t *testing.T) {
	key := newKey(t)
	certificate, err := key.TLS()
	must(t, err)
	parsed, err := x509.ParseCertificate(certificate.Certificate[0])
	must(t, err)
	if got, is := parsed.PublicKey.(ed25519.PublicKey); !is || Public(got) != key.Public() {
		t.Errorf("the certificate is for %v", parsed.PublicKey)
	}
	must(t, parsed.CheckSignature(parsed.SignatureAlgorithm, parsed.RawTBSCertificate, parsed.Signature))
}

// FuzzKeyFile loads arbitrary files. What is accepted is a key that can be saved and loaded again.
func FuzzKeyFile(f *testing.F) {
	f.Add([]byte{})
	f.Add(pemOf(f, newKey(f).private))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := parseKey(text)
		if err != nil {
			return
		}
		again, err := parseKey(pemOf(t, key.private))
		if err != nil || again.Public() != key.Public() {
			t.Errorf("%s became %v, %v", key.Public(), again, err)
		}
	})
}

// load reads a private key of this user.
func load(path string) (*Key, error) { return loadKey(unix.AT_FDCWD, path, path, os.Geteuid()) }
