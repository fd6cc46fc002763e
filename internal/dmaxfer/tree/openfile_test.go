package tree_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

func TestFewDirectoriesStayOpen(t *testing.T) {
	root := t.TempDir()
	for i := range 300 {
		build(t, root, fmt.Sprintf("d%03d/a/b/file", i))
	}
	before := openDescriptors(t)
	w := openLimited(t, root, tree.Options{}, tree.Limits{})
	entries := walk(t, w)
	if open := openDescriptors(t) - before; open > 70 {
		t.Errorf("%d descriptors are open while all files are held", open)
	}
	for _, e := range entries {
		if e.Kind == wire.EntryFile {
			mustBeNamed(t, &e)
		}
	}
	if open := openDescriptors(t) - before; open > 70 {
		t.Errorf("%d descriptors are open after all files were opened", open)
	}
	w.Close()
	for _, e := range entries {
		e.Release()
	}
	if open := openDescriptors(t) - before; open > 0 {
		t.Errorf("%d descriptors remain", open)
	}
}

// mustBeNamed opens a file of build and checks its content.
func mustBeNamed(t *testing.T, e *tree.Entry) {
	t.Helper()
	if err := checkContent(e); err != nil {
		t.Error(err)
	}
}

func checkContent(e *tree.Entry) error {
	content, err := contentOf(e)
	if err == nil && content != e.Path() {
		err = fmt.Errorf("%s contains %q", e.Path(), content)
	}
	return err
}

func contentOf(e *tree.Entry) (string, error) {
	source, err := e.Open()
	if err != nil {
		return "", err
	}
	defer source.Close()
	content := make([]byte, source.Info().Size)
	err = source.ReadAt(content, 0)
	return string(content), err
}

func TestFilesAreOpenedConcurrently(t *testing.T) {
	root := t.TempDir()
	for i := range 60 {
		build(t, root, fmt.Sprintf("d%02d/x", i), fmt.Sprintf("d%02d/e/f/y", i))
	}
	before := openDescriptors(t)
	w := openLimited(t, root, tree.Options{}, tree.Limits{OpenFolders: 4})
	var files []*tree.Entry
	var lanes sync.WaitGroup
	found := make(chan *tree.Entry)
	for range 4 {
		lanes.Go(func() {
			for e := range found {
				if err := checkContent(e); err != nil {
					t.Error(err)
				}
				e.Dir.Hold()
				e.Dir.Release()
			}
		})
	}
	for {
		e, err := w.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		if e.Kind == wire.EntryFile {
			files = append(files, &e)
			found <- &e
		}
	}
	for _, i := range rand.Perm(len(files)) {
		found <- files[i]
	}
	close(found)
	lanes.Wait()
	if open := openDescriptors(t) - before; open > 5 {
		t.Errorf("%d folders are open", open)
	}
	for _, e := range files {
		e.Release()
	}
}

func TestFilesThatAreReplacedAreNotOpened(t *testing.T) {
	for name, replace := range map[string]func(dir, file string) error{
		"another file": func(dir, file string) error { return os.Rename(dir+"/other", file) },
		"removed":      func(_, file string) error { return os.Remove(file) },
		"symlink": func(_, file string) error {
			return errorOf(os.Remove(file), os.Symlink("other", file))
		},
		"directory": func(_, file string) error { return errorOf(os.Remove(file), os.Mkdir(file, 0o755)) },
		"fifo":      func(_, file string) error { return errorOf(os.Remove(file), unix.Mkfifo(file, 0o600)) },
		"socket": func(_, file string) error {
			return errorOf(os.Remove(file), unix.Mknod(file, unix.S_IFSOCK|0o600, 0))
		},
		"none above":      func(dir, _ string) error { return os.Rename(dir, dir+"-x") },
		"directory above": func(dir, _ string) error { return errorOf(os.Rename(dir, dir+"-x"), copyOf(dir)) },
		"symlink above": func(dir, _ string) error {
			return errorOf(os.Rename(dir, dir+"-x"), os.Symlink(dir+"-x", dir))
		},
		"file above": func(dir, _ string) error {
			return errorOf(os.Rename(dir, dir+"-x"), os.WriteFile(dir, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			build(t, root, "dir/file", "dir/other", "z1/x", "z2/x", "z3/x")
			w := openLimited(t, root, tree.Options{}, tree.Limits{OpenFolders: 2})
			entries := walk(t, w) // dir was closed meanwhile
			must(t, replace(filepath.Join(root, "dir"), filepath.Join(root, "dir/file")))
			_, err := entries[2].Open()
			mustBeSource(t, err, disk.ErrSourceChanged, "dir/file", "during the copy")
			mustBeNamed(t, &entries[5])
			for _, e := range entries {
				e.Release()
			}
		})
	}
}

func errorOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// copyOf makes a directory like that of TestFilesThatAreReplacedAreNotOpened.
func copyOf(dir string) error {
	return errorOf(os.Mkdir(dir, 0o755), os.WriteFile(dir+"/file", []byte("dir/file"), 0o644))
}

func TestFileThatIsWrittenIsStillTheSame(t *testing.T) {
	root := t.TempDir()
	build(t, root, "file")
	w := openLimited(t, root, tree.Options{}, tree.Limits{})
	file := walk(t, w)[1]
	must(t, os.WriteFile(filepath.Join(root, "file"), []byte("longer than before"), 0o644))
	source, err := file.Open()
	must(t, err)
	defer source.Close()
	if source.Info().Identity == file.Info.Identity || source.Info().Size != 18 {
		t.Errorf("the source is %+v, the entry was %+v", source.Info(), file.Info)
	}
}

// A file that was announced keeps its size, and its times unless it may change.
func TestAnnouncedFileThatIsWritten(t *testing.T) {
	root := t.TempDir()
	build(t, root, "file")
	path := filepath.Join(root, "file")
	file := walk(t, openLimited(t, root, tree.Options{}, tree.Limits{}))[1]
	mustOpen := func(mayChange bool) {
		t.Helper()
		source, err := file.OpenAnnounced(mayChange)
		must(t, err)
		source.Close()
	}
	mustOpen(false)
	must(t, os.Chtimes(path, time.Time{}, time.Unix(1000, 0)))
	mustOpen(true)
	_, err := file.OpenAnnounced(false)
	mustBeSource(t, err, disk.ErrSourceChanged, "file", "changed during the copy")
	must(t, os.WriteFile(path, []byte("longer than before"), 0o644))
	_, err = file.OpenAnnounced(true)
	mustBeSource(t, err, disk.ErrSourceChanged, "file", "changed during the copy")
}

// A file of the kernel has content, but no size that could be announced.
func TestAnnouncedFileWithoutASize(t *testing.T) {
	for _, e := range walk(t, openLimited(t, "/proc/sys/kernel/random", tree.Options{}, tree.Limits{})) {
		if e.Name == "poolsize" {
			_, err := e.OpenAnnounced(false)
			mustBeSource(t, err, disk.ErrSource, "poolsize", "has content, although its size is 0")
			return
		}
	}
	t.Error("there is no such file")
}

// TestExchangedDirectoriesNeverLeadOut walks a tree in which another goroutine keeps exchanging a directory and a
// symlink to one outside.
func TestExchangedDirectoriesNeverLeadOut(t *testing.T) {
	outside := t.TempDir()
	build(t, outside, "root/dir/sub/file", "secrets/sub/file")
	root := filepath.Join(outside, "root")
	build(t, root, "link -> ../secrets")
	secret, err := disk.OS.Stat(filepath.Join(outside, "secrets/sub/file"))
	must(t, err)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go exchange(root, stop, stopped)
	for _, o := range []tree.Options{{}, follow} {
		for range 500 {
			mustStayInside(t, root, o, secret)
		}
	}
	close(stop)
	<-stopped
}

func exchange(root string, stop, stopped chan struct{}) {
	defer close(stopped)
	for {
		select {
		case <-stop:
			return
		default:
		}
		_ = unix.Renameat2(unix.AT_FDCWD, root+"/dir", unix.AT_FDCWD, root+"/link", unix.RENAME_EXCHANGE)
	}
}

func mustStayInside(t *testing.T, root string, o tree.Options, secret disk.Info) {
	t.Helper()
	w, err := tree.Open(disk.OS, root, o)
	must(t, err)
	defer w.Close()
	w.Restrict(tree.Limits{OpenFolders: 1})
	for {
		e, err := w.Next()
		if err == io.EOF {
			return
		}
		must(t, err)
		if e.Info.SameFile(secret.Identity) {
			t.Fatalf("%s is outside", e.Path())
		}
		if e.Kind == wire.EntryFile && e.Err == nil {
			if source, err := e.Open(); err == nil {
				if source.Info().SameFile(secret.Identity) {
					t.Fatalf("%s was opened, which is outside", e.Path())
				}
				source.Close()
			}
		}
		e.Release()
	}
}
