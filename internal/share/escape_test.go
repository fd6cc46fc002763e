package share_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/share"
)

var flips = flag.Int("share.flips", 50_000, "how often TestNothingEscapes exchanges directories and symlinks")

// What is outside of the attacked share, and never in it: the content of the files, and a name that no path has. Paths
// do have the name of the files.
const (
	canary = "canary"
	unseen = "unseen"
)

// TestNothingEscapes uses every operation of a share while its directories are exchanged with symlinks that lead out
// of it, renamed, and moved out and back. Nothing outside may be seen or changed.
func TestNothingEscapes(t *testing.T) {
	t.Run("openat2", func(t *testing.T) { mustConfine(t, disk.OS) })
	t.Run("by component", func(t *testing.T) { mustConfine(t, otherFS{disk.OS}) })
}

// otherFS is the file system of the operating system as one that cannot resolve paths by itself.
type otherFS struct{ disk.FS }

func (f otherFS) OpenDir(path string) (disk.Dir, error) { return otherDirOf(f.FS.OpenDir(path)) }

type otherDir struct{ disk.Dir }

func otherDirOf(dir disk.Dir, err error) (disk.Dir, error) {
	if err != nil {
		return nil, err
	}
	return otherDir{dir}, nil
}

func (d otherDir) OpenDir(path string) (disk.Dir, error) { return otherDirOf(d.Dir.OpenDir(path)) }

func (d otherDir) OpenBeneath(path string) (disk.Dir, error) {
	return otherDirOf(d.Dir.OpenBeneath(path))
}

func (d otherDir) LinkTo(name string, in disk.Dir, as string) error {
	return d.Dir.LinkTo(name, in.(otherDir).Dir, as)
}

func mustConfine(t *testing.T, on disk.FS) {
	parent := inMemory(t)
	build(t, parent, "outside/inner/", "aside/", "share/flipped/inner/", "share/moved/sub/", "share/deep/",
		"share/file", "share/flipped/file", "share/flipped/inner/file")
	for _, in := range []string{"outside", "outside/inner"} {
		for _, name := range []string{canary, unseen} {
			must(t, os.WriteFile(filepath.Join(parent, in, name), []byte(canary), 0o644))
		}
	}
	before := state(t, filepath.Join(parent, "outside"))
	o, err := share.Open(share.Share{Name: "s", Path: parent + "/share", Access: share.ReadWrite}, on)
	must(t, err)
	defer o.Close()
	a := &attacker{t: t, left: int64(*flips)}
	a.exchange(parent+"/share", "flipped", "../outside", parent+"/outside")
	a.exchange(parent+"/share/flipped", "inner", "../../outside/inner", "../../outside")
	a.exchange(parent+"/share", "file", "../outside/"+canary, parent+"/outside/"+canary)
	a.move(parent, "share/moved", "aside/moved", "share/deep/moved", "aside/other")
	u := &user{t: t, o: o, outside: inodes(t, parent+"/outside"), random: rand.New(rand.NewPCG(1, 2))}
	for !a.ended() || u.done < 100 || u.refused < 100 {
		u.use()
	}
	a.stop.Store(true)
	a.running.Wait()
	t.Logf("%d calls, of which %d failed", u.done+u.refused, u.refused)
	if after := state(t, filepath.Join(parent, "outside")); after != before {
		t.Errorf("outside there was\n%sand is\n%s", before, after)
	}
}

// inMemory returns a directory on tmpfs, where renames are fastest, or another one.
func inMemory(t *testing.T) string {
	parent, err := os.MkdirTemp("/dev/shm", "dma-copy-share-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(parent)) })
	return parent
}

// state describes everything below a directory that a share could change.
func state(t *testing.T, root string) string {
	t.Helper()
	var text strings.Builder
	each(t, root, func(path string, stat *unix.Stat_t) {
		fmt.Fprintln(&text, path, stat.Ino, stat.Mode, stat.Nlink, stat.Size, stat.Mtim, stat.Ctim)
	})
	return text.String()
}

func inodes(t *testing.T, root string) map[uint64]bool {
	t.Helper()
	found := make(map[uint64]bool)
	each(t, root, func(_ string, stat *unix.Stat_t) { found[stat.Ino] = true })
	return found
}

func each(t *testing.T, root string, call func(path string, stat *unix.Stat_t)) {
	t.Helper()
	must(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		var stat unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &stat)
		}
		if err == nil {
			call(path, &stat)
		}
		return err
	}))
}

// attacker changes the directories of a share, for as many flips as there are left and until it is stopped.
type attacker struct {
	t       *testing.T
	left    int64
	running sync.WaitGroup
	stop    atomic.Bool
}

func (a *attacker) ended() bool { return atomic.LoadInt64(&a.left) <= 0 }

// flipped counts a flip; it reports whether there are to be more.
func (a *attacker) flipped() bool {
	atomic.AddInt64(&a.left, -1)
	return !a.stop.Load()
}

// exchange exchanges an entry with a symlink that has one of two texts. It uses the handle of the directory that
// contains both, so that it does not follow another attacker's symlinks itself.
func (a *attacker) exchange(parent, name string, texts ...string) {
	in, err := openUnflipped(parent)
	must(a.t, err)
	must(a.t, replaceLink(in, texts[0], name+".other"))
	a.running.Go(func() {
		defer unix.Close(in)
		for i := 0; a.flipped(); i++ {
			err := error(nil)
			if i%20 == 0 { // an even number of exchanges: the symlink has the other name
				err = replaceLink(in, texts[i/20%len(texts)], name+".other")
			}
			if err == nil {
				err = unix.Renameat2(in, name, in, name+".other", unix.RENAME_EXCHANGE)
			}
			if err != nil {
				a.t.Error(err)
				return
			}
		}
	})
}

// openUnflipped opens a directory that another attacker may exchange with a symlink: never what the symlink points to.
func openUnflipped(path string) (dir int, err error) {
	for {
		dir, err = unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
			return dir, err
		}
	}
}

// replaceLink creates a symlink, or replaces it so that the name always exists.
func replaceLink(in int, text, name string) error {
	if err := unix.Symlinkat(text, in, name+".new"); err != nil {
		return err
	}
	return unix.Renameat(in, name+".new", in, name)
}

// move renames a directory to each of these paths in turn, or exchanges it with one that the user has created there.
func (a *attacker) move(parent string, paths ...string) {
	in, err := unix.Open(parent, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(a.t, err)
	a.running.Go(func() {
		defer unix.Close(in)
		for i := 0; a.flipped(); i++ {
			from, to := paths[i%len(paths)], paths[(i+1)%len(paths)]
			err := unix.Renameat(in, from, in, to)
			if err != nil {
				err = unix.Renameat2(in, from, in, to, unix.RENAME_EXCHANGE)
			}
			if err != nil {
				a.t.Error(err)
				return
			}
		}
	})
}

// user uses a share.
type user struct {
	t             *testing.T
	o             *share.Opened
	outside       map[uint64]bool
	random        *rand.Rand
	done, refused int
}

// attackedPaths are directories and files of the share that are exchanged or moved.
var attackedPaths = []string{
	"flipped", "flipped/inner", "flipped/inner/", "file", "flipped/file", "flipped/inner/file", "moved", "moved/sub",
	"moved/..", "moved/../flipped/inner", "moved/sub/../../flipped/file", "moved/sub/../../outside/" + canary,
	"moved/../outside", "flipped/../file", "flipped/inner/../../file", "flipped/" + canary, "file.other",
	"flipped.other/inner", "deep/moved/../..", "deep/moved/sub/../../../outside", ".",
}

func (u *user) use() {
	path := attackedPaths[u.random.IntN(len(attackedPaths))]
	calls := []func(string) error{u.stat, u.read, u.list, u.openDir, u.receive, u.receiveTree, u.makeDir, u.remove}
	switch err := calls[u.random.IntN(len(calls))](path); {
	case err == nil:
		u.done++
	default:
		u.refused++
	}
}

func (u *user) check(what, path string, info disk.Info, err error) error {
	if err == nil && u.outside[info.Inode] {
		u.t.Errorf("%s of %s leads out", what, path)
	}
	return err
}

func (u *user) stat(path string) error {
	info, err := u.o.FS().Stat(path)
	if err := u.check("stat", path, info, err); err != nil {
		return err
	}
	clean, err := share.CleanPath(path)
	if err == nil {
		_, err = u.o.Stat(clean, share.ListOptions{})
	}
	return err
}

func (u *user) read(path string) error {
	source, err := disk.OpenSource(u.o.FS(), path)
	if err != nil {
		return err
	}
	defer source.Close()
	content := make([]byte, min(source.Info().Size, int64(len(canary))))
	if err := source.ReadAt(content, 0); err == nil && string(content) == canary {
		u.t.Errorf("%s was read outside", path)
	}
	return u.check("open", path, source.Info(), nil)
}

func (u *user) list(path string) error {
	clean, err := share.CleanPath(path)
	if err != nil {
		return err
	}
	return u.o.List(context.Background(), clean, share.ListOptions{Recursive: true}, func(e share.Entry) error {
		if strings.Contains(e.Path, unseen) {
			u.t.Errorf("%s was listed below %s", e.Path, path)
		}
		return nil
	})
}

func (u *user) openDir(path string) error {
	dir, err := u.o.FS().OpenDir(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Info()
	if err := u.check("opendir", path, info, err); err != nil {
		return err
	}
	above, err := dir.OpenDir("../inner")
	if err != nil {
		return err
	}
	defer above.Close()
	info, err = above.Info()
	return errors.Join(u.check("opendir", path, info, err), dir.SetModified(disk.Timestamp{Sec: 1}), dir.SetMode(0o711))
}

func (u *user) receive(path string) error {
	text := []byte("received")
	want := disk.Wanted{Size: int64(len(text)), Known: true, Digest: 1, Resume: u.random.IntN(2) == 0, Overwrite: true}
	p, err := disk.OpenPartial(u.o.FS(), path+"/new", want)
	if err != nil {
		return err
	}
	defer p.Discard()
	err = p.WriteAt(text, 0)
	if err == nil {
		err = p.Prepare(context.Background(), disk.Metadata{Size: want.Size}, wire.DurabilityNone, nil)
	}
	if err == nil {
		err = p.Commit(wire.DurabilityNone)
	}
	return err
}

func (u *user) receiveTree(path string) error {
	preserve := disk.Preserve{Mode: true, Times: true}
	received, err := disk.OpenTree(u.o.FS(), path, disk.TreeOptions{Overwrite: true, Preserve: preserve})
	if err != nil {
		return err
	}
	defer received.Close(true)
	meta := disk.Metadata{Mode: 0o755, Modified: disk.Timestamp{Sec: 2}}
	root := received.Root()
	below, _, err := root.Enter("inner", true)
	if err != nil {
		return err
	}
	defer below.Release()
	return errors.Join(
		below.Put("put", []byte("put"), meta), below.Symlink("put link", "put", meta), root.Link("hard", "inner/put"),
		below.Leave(meta), root.Leave(meta),
	)
}

func (u *user) makeDir(path string) error {
	clean, err := share.CleanPath(path)
	if err != nil {
		return err
	}
	clean = strings.TrimSuffix(clean, "/")
	return errors.Join(disk.MakeDir(u.o.FS(), path+"/made"), u.o.MakeDir(clean+"/by/parents", true))
}

func (u *user) remove(path string) error {
	clean, err := share.CleanPath(path)
	if err != nil {
		return err
	}
	r, err := u.o.Remover(clean)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, name := range []string{"new", "made/dir", "made", "inner/put", "inner/" + canary, "hard"} {
		err = errors.Join(err, r.Remove(name))
	}
	return errors.Join(err, remove(u.o, strings.TrimSuffix(clean, "/")+"/"+canary))
}
