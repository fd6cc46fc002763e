package identity

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dma-copy/dma-copy/internal/share"
)

// newStore returns a store whose directory does not exist yet.
func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := OpenStore(filepath.Join(t.TempDir(), "keys"))
	must(t, err)
	return s
}

func mustLoad(t *testing.T, s *Store) *Trusted {
	t.Helper()
	trusted, err := s.Load()
	must(t, err)
	return trusted
}

func TestStoreHasOneKey(t *testing.T) {
	s := newStore(t)
	if _, err := s.Key(); !errors.Is(err, ErrNoKey) {
		t.Errorf("without a key: %v", err)
	}
	key := newKey(t)
	must(t, s.SaveKey(key))
	if err := s.SaveKey(newKey(t)); !errors.Is(err, ErrExists) {
		t.Errorf("a second key: %v", err)
	}
	loaded, err := s.Key()
	if err != nil || loaded.Public() != key.Public() {
		t.Errorf("loaded %v, %v", loaded, err)
	}
}

func TestTrustedKeys(t *testing.T) {
	s := newStore(t)
	if trusted := mustLoad(t, s); len(trusted.All()) > 0 || len(trusted.Refused()) > 0 {
		t.Error("a directory that does not exist has keys")
	}
	host := Grant{Name: "host", Key: newKey(t).Public(), Comment: "root@host"}
	dpu := Grant{Name: "dpu", Key: newKey(t).Public(), Owner: true,
		Shares: map[string]share.Access{"inbox": share.Write}}
	must(t, s.Trust(host, false))
	must(t, s.Trust(dpu, false))
	trusted := mustLoad(t, s)
	if all := trusted.All(); !reflect.DeepEqual(all, []Grant{dpu, host}) {
		t.Errorf("trusted are %+v", all)
	}
	if g, is := trusted.Find(host.Key); !is || g.Name != "host" {
		t.Errorf("host's key is that of %+v, %t", g, is)
	}
	if g, is := trusted.Named("dpu"); !is || g.Key != dpu.Key {
		t.Errorf("dpu is %+v, %t", g, is)
	}
	if g, is := trusted.Find(newKey(t).Public()); is {
		t.Errorf("an unknown key is that of %+v", g)
	}
	if g, is := trusted.Named("other"); is {
		t.Errorf("other is %+v", g)
	}
	g, _ := trusted.Find(dpu.Key)
	g.Shares["outbox"] = share.ReadWrite
	if again, _ := trusted.Find(dpu.Key); len(again.Shares) != 1 {
		t.Error("the caller of Find can change the grant of others")
	}
	must(t, s.Remove("host"))
	if err := s.Remove("host"); !errors.Is(err, ErrNotTrusted) {
		t.Errorf("removed twice: %v", err)
	}
	if _, is := mustLoad(t, s).Find(host.Key); is {
		t.Error("a removed key is trusted")
	}
	checkNames(t, filepath.Join(s.path, trustedName), "dpu.key")
}

func TestTrustReplacesOnlyIfTold(t *testing.T) {
	s := newStore(t)
	old := Grant{Name: "host", Key: newKey(t).Public()}
	must(t, s.Trust(old, false))
	if err := s.Trust(Grant{Name: "other", Key: old.Key}, true); !errors.Is(err, ErrExists) {
		t.Errorf("one key under two names: %v", err)
	}
	changed := Grant{Name: "host", Key: newKey(t).Public(), Connections: 1}
	if err := s.Trust(changed, false); !errors.Is(err, ErrExists) {
		t.Errorf("another key under the name: %v", err)
	}
	must(t, s.Trust(changed, true))
	if all := mustLoad(t, s).All(); !reflect.DeepEqual(all, []Grant{changed}) {
		t.Errorf("trusted are %+v", all)
	}
	checkNames(t, filepath.Join(s.path, trustedName), "host.key")
}

func TestTrustRefusesWhatAFileCannotHave(t *testing.T) {
	key := newKey(t).Public()
	for name, g := range map[string]Grant{
		"no name":        {Key: key},
		"a path":         {Name: "../x", Key: key},
		"hidden":         {Name: ".x", Key: key},
		"no key":         {Name: "x"},
		"comment":        {Name: "x", Key: key, Comment: "two\nlines"},
		"no share":       {Name: "x", Key: key, Shares: map[string]share.Access{}},
		"name of share":  {Name: "x", Key: key, Shares: map[string]share.Access{"a b": share.Read}},
		"no access":      {Name: "x", Key: key, Shares: map[string]share.Access{"a": 0}},
		"unknown access": {Name: "x", Key: key, Shares: map[string]share.Access{"a": 8}},
		"max-bytes":      {Name: "x", Key: key, MaxBytes: -1},
		"max-entries":    {Name: "x", Key: key, MaxEntries: -1},
		"bandwidth":      {Name: "x", Key: key, Bandwidth: -1},
		"connections":    {Name: "x", Key: key, Connections: -1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			if err := s.Trust(g, false); err == nil {
				t.Error("trusted")
			}
			if _, err := os.Lstat(s.path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("something was written: %v", err)
			}
		})
	}
	if err := newStore(t).Remove("../x"); err == nil || errors.Is(err, ErrNotTrusted) {
		t.Errorf("a path was removed: %v", err)
	}
}

// A file that is refused does not trust its key, and does not keep other keys from being trusted.
func TestRefusedFilesOfTrustedKeys(t *testing.T) {
	text, err := Grant{Name: "x", Key: newKey(t).Public()}.text()
	must(t, err)
	for name, write := range map[string]func(dir string) error{
		"written by others": func(dir string) error {
			return errors.Join(os.WriteFile(dir+"/x.key", text, 0o600), os.Chmod(dir+"/x.key", 0o606))
		},
		"symlink": func(dir string) error {
			return errors.Join(os.WriteFile(dir+"/real", text, 0o600), os.Symlink("real", dir+"/x.key"))
		},
		"directory":   func(dir string) error { return os.Mkdir(dir+"/x.key", 0o755) },
		"damaged":     func(dir string) error { return os.WriteFile(dir+"/x.key", text[:len(text)-2], 0o644) },
		"name":        func(dir string) error { return os.WriteFile(dir+"/X Y.key", text, 0o644) },
		"empty":       func(dir string) error { return os.WriteFile(dir+"/x.key", nil, 0o644) },
		"far too big": func(dir string) error { return os.WriteFile(dir+"/x.key", bytes.Repeat(text, 2000), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			good := Grant{Name: "good", Key: newKey(t).Public()}
			must(t, s.Trust(good, false))
			must(t, write(filepath.Join(s.path, trustedName)))
			trusted := mustLoad(t, s)
			if all := trusted.All(); !reflect.DeepEqual(all, []Grant{good}) || len(trusted.Refused()) != 1 {
				t.Errorf("trusted are %+v, refused %v", all, trusted.Refused())
			}
		})
	}
}

// Files of editors and of interrupted writes are not trusted keys.
func TestOtherFilesAreIgnored(t *testing.T) {
	s := newStore(t)
	must(t, s.Trust(Grant{Name: "good", Key: newKey(t).Public()}, false))
	for _, name := range []string{"x.key~", ".x.key.new-ABC", ".hidden.key", "README"} {
		must(t, os.WriteFile(filepath.Join(s.path, trustedName, name), []byte("x"), 0o666))
	}
	if trusted := mustLoad(t, s); len(trusted.All()) != 1 || len(trusted.Refused()) != 0 {
		t.Errorf("trusted are %+v, refused %v", trusted.All(), trusted.Refused())
	}
}

// Of a key that two files grant different things, neither is what the operator meant.
func TestKeyInSeveralFilesIsNotTrusted(t *testing.T) {
	s := newStore(t)
	key := newKey(t).Public()
	must(t, s.Trust(Grant{Name: "a", Key: key, Shares: map[string]share.Access{"inbox": share.Write}}, false))
	for _, name := range []string{"b", "c"} {
		text, err := Grant{Name: name, Key: key}.text()
		must(t, err)
		must(t, os.WriteFile(filepath.Join(s.path, trustedName, name+".key"), text, 0o644))
	}
	trusted := mustLoad(t, s)
	if g, is := trusted.Find(key); is || len(trusted.All()) > 0 {
		t.Errorf("trusted as %+v", g)
	}
	if refused := trusted.Refused(); len(refused) != 2 || !strings.Contains(refused[0].Error(), "same key as a") {
		t.Errorf("refused %v", refused)
	}
}

// Nothing is trusted if another user could change what is.
func TestUnsafeDirectoriesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(s *Store) error
		problem string
	}{
		"keys": {func(s *Store) error { return os.Chmod(s.path, 0o775) }, "mode 0775"},
		"trusted": {func(s *Store) error {
			return os.Chmod(filepath.Join(s.path, trustedName), 0o777|os.ModeSticky)
		}, "mode 1777"},
		"trusted by symlink": {func(s *Store) error {
			return behindASymlink(filepath.Join(s.path, trustedName))
		}, "symlink"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			g := Grant{Name: "host", Key: newKey(t).Public()}
			must(t, s.SaveKey(newKey(t)))
			must(t, s.Trust(g, false))
			must(t, c.spoil(s))
			trusted, err := s.Load()
			if trusted != nil {
				t.Errorf("trusted are %+v", trusted.All())
			}
			checkUnsafe(t, err, c.problem)
			checkUnsafe(t, s.Trust(g, true), c.problem)
			checkUnsafe(t, s.Remove("host"), c.problem)
			if name != "keys" {
				return
			}
			_, err = s.Key()
			checkUnsafe(t, err, c.problem)
			checkUnsafe(t, s.SaveKey(newKey(t)), c.problem)
			_, err = OpenStore(s.path)
			checkUnsafe(t, err, c.problem)
		})
	}
}

func TestStoreOnAFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, nil, 0o600))
	if _, err := OpenStore(path); err == nil {
		t.Error("a file was opened as a directory of keys")
	}
}

func TestDefaultDirectory(t *testing.T) {
	for name, c := range map[string]struct {
		user      int
		variables map[string]string
		want      string
	}{
		"root":     {0, map[string]string{"XDG_CONFIG_HOME": "/c"}, "/etc/dma-copy"},
		"XDG":      {1000, map[string]string{"XDG_CONFIG_HOME": "/c", "HOME": "/h"}, "/c/dma-copy"},
		"home":     {1000, map[string]string{"HOME": "/h"}, "/h/.config/dma-copy"},
		"relative": {1000, map[string]string{"XDG_CONFIG_HOME": "c", "HOME": "/h"}, "/h/.config/dma-copy"},
		"none":     {1000, map[string]string{"HOME": "h"}, ""},
	} {
		got, err := DefaultDirectory(c.user, func(name string) string { return c.variables[name] })
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestGrantAccess(t *testing.T) {
	limited := Grant{Shares: map[string]share.Access{"inbox": share.Write, "both": share.ReadWrite}}
	for _, c := range []struct {
		grant Grant
		name  string
		own   share.Access
		want  share.Access
	}{
		{Grant{}, "any", share.Read, share.Read},
		{limited, "inbox", share.ReadWrite, share.Write},
		{limited, "inbox", share.Read, 0},
		{limited, "both", share.Read, share.Read},
		{limited, "other", share.ReadWrite, 0},
		{Grant{Shares: map[string]share.Access{}}, "any", share.ReadWrite, 0},
	} {
		if got := c.grant.Access(c.name, c.own); got != c.want {
			t.Errorf("%v of share %s with %v: %v, want %v", c.grant.Shares, c.name, c.own, got, c.want)
		}
	}
}

func anyGrant(key Public) *rapid.Generator[Grant] {
	return rapid.Custom(func(t *rapid.T) Grant {
		limit := rapid.Int64Range(0, 1<<63-1)
		g := Grant{
			Name: "x", Key: key, Comment: rapid.StringMatching(`[a-z@]{0,20}`).Draw(t, "comment"),
			Owner:    rapid.Bool().Draw(t, "owner"),
			MaxBytes: limit.Draw(t, "bytes"), MaxEntries: limit.Draw(t, "entries"),
			Bandwidth: limit.Draw(t, "bandwidth"), Connections: rapid.IntRange(0, 1<<31-1).Draw(t, "connections"),
		}
		access := rapid.SampledFrom([]share.Access{share.Read, share.Write, share.ReadWrite})
		if rapid.Bool().Draw(t, "limited") {
			g.Shares = rapid.MapOfN(rapid.StringMatching(`[a-z0-9_][a-z0-9._-]{0,20}`), access, 1, 20).Draw(t, "shares")
		}
		return g
	})
}

func TestGrantIsReadAgain(t *testing.T) {
	key := newKey(t).Public()
	rapid.Check(t, func(t *rapid.T) {
		g := anyGrant(key).Draw(t, "grant")
		text, err := g.text()
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseGrant(g.Name, text)
		if err != nil || !reflect.DeepEqual(got, g) {
			t.Fatalf("%+v became %+v, %v:\n%s", g, got, err, text)
		}
	})
}

// A file that lost its end grants nothing, or some of the shares with the same limits, wherever it ends.
func TestTruncatedGrantIsRefused(t *testing.T) {
	g := Grant{
		Name: "x", Key: newKey(t).Public(), Owner: true, MaxBytes: 1, MaxEntries: 2, Bandwidth: 3, Connections: 4,
		Shares: map[string]share.Access{"inbox": share.Write, "outbox": share.Read},
	}
	text, err := g.text()
	must(t, err)
	less := g
	less.Shares = map[string]share.Access{"inbox": share.Write}
	for end := range text {
		got, err := parseGrant("x", text[:end])
		if err == nil && !reflect.DeepEqual(got, less) {
			t.Errorf("%+v is granted by %q", got, text[:end])
		}
	}
}

func TestGrantFilesRefused(t *testing.T) {
	key := "key " + newKey(t).Public().String() + "\n"
	for name, text := range map[string]string{
		"no key":          "all-shares\n",
		"no shares":       key,
		"both":            key + "all-shares\nshare a=ro\n",
		"key twice":       key + key + "all-shares\n",
		"share twice":     key + "share a=ro\nshare a=ro\n",
		"owner twice":     key + "owner\nowner\nall-shares\n",
		"owner of what":   key + "owner no\nall-shares\n",
		"unknown word":    key + "max-byte 5\nall-shares\n",
		"limit after":     key + "all-shares\nmax-bytes 5\n",
		"limit after one": key + "share a=ro\nmax-bytes 5\nshare b=ro\n",
		"key after":       "all-shares\n" + key,
		"limit of zero":   key + "max-bytes 0\nall-shares\n",
		"negative limit":  key + "max-bytes -1\nall-shares\n",
		"limit too large": key + "max-bytes 9223372036854775808\nall-shares\n",
		"limit's unit":    key + "max-bytes 5K\nall-shares\n",
		"no limit":        key + "connections\nall-shares\n",
		"connections":     key + "connections 2147483648\nall-shares\n",
		"access":          key + "share a=rx\n",
		"no access":       key + "share a\n",
		"share's name":    key + "share ../a=ro\n",
		"capital":         key + "All-Shares\n",
	} {
		t.Run(name, func(t *testing.T) {
			if g, err := parseGrant("x", []byte(text)); err == nil {
				t.Errorf("granted %+v", g)
			}
		})
	}
	if _, err := parseGrant("x", []byte("\n# comment\n"+key+" all-shares \r\n")); err != nil {
		t.Errorf("comments and blanks: %v", err)
	}
}

// FuzzGrantFile reads arbitrary files of trusted keys. What is accepted can be written and means the same.
func FuzzGrantFile(f *testing.F) {
	for _, g := range []Grant{
		{Name: "x", Key: newKey(f).Public(), Comment: "root@host"},
		{Name: "x", Key: newKey(f).Public(), Shares: map[string]share.Access{"a": share.Read, "b": share.ReadWrite},
			Owner: true, MaxBytes: 1, MaxEntries: 2, Bandwidth: 3, Connections: 4},
	} {
		text, err := g.text()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := parseGrant("x", text)
		if err != nil {
			return
		}
		written, err := g.text()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseGrant("x", written); err != nil || !reflect.DeepEqual(again, g) {
			t.Errorf("%+v became %+v, %v", g, again, err)
		}
	})
}

// FuzzPublicLine parses arbitrary lines. What is accepted is the only line of its key and comment.
func FuzzPublicLine(f *testing.F) {
	f.Add(newKey(f).Public().String() + " root@host")
	f.Add(LinePrefix)
	f.Fuzz(func(t *testing.T, line string) {
		key, comment, err := ParsePublic(line)
		if err != nil {
			return
		}
		written, err := key.Line(comment)
		if err != nil || strings.Join(strings.Fields(written), " ") != strings.Join(strings.Fields(line), " ") {
			t.Errorf("%q became %q, %v", line, written, err)
		}
	})
}

// Root sees the public part of the key of a service, which it does not use.
func TestPublicPartOfAnotherUsersKey(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can read the private key of another user")
	}
	s, key := newStore(t), newKey(t)
	must(t, s.SaveKey(key))
	must(t, os.Chown(s.KeyPath(), 65534, -1))
	_, err := s.Key()
	checkUnsafe(t, err, "it belongs to user 65534")
	if public, err := s.Public(); err != nil || public != key.Public() {
		t.Errorf("got %v, %v", public, err)
	}
	must(t, os.Chmod(s.KeyPath(), 0o604))
	_, err = s.Public()
	checkUnsafe(t, err, "mode 0604")
}
