package job_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job/jobtest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
)

func find(t *testing.T, path string, overwrite bool) (*job.LocalFile, error) {
	return job.Find(t.Context(), job.Search{Path: path, Overwrite: overwrite, IdleTimeout: time.Minute})
}

// mustInspect closes what it returns at the end of the test.
func mustInspect(t *testing.T, path string, overwrite bool) *job.LocalFile {
	t.Helper()
	p, err := find(t, path, overwrite)
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

func mustNotInspect(t *testing.T, path string, overwrite bool, kind error) {
	t.Helper()
	p, err := find(t, path, overwrite)
	if err == nil {
		p.Close()
	}
	jobtest.MustFail(t, err, kind)
	if shown := quote.Bare(path); !strings.Contains(err.Error(), shown[max(0, len(shown)-len(filepath.Base(path))):]) {
		t.Errorf("%q does not name %s", err, path)
	}
}

func TestInspectFile(t *testing.T) {
	path := jobtest.WriteFile(t, "file", "content")
	p := mustInspect(t, path, false)
	if p.Source == nil || p.Source.Info().Size != 7 || p.Path != path {
		t.Errorf("%s became %+v", path, p)
	}
	if local := p.Local(); !local.HasFile || local.Size != 7 {
		t.Errorf("the peer is told %+v", local)
	}
}

func TestInspectEmptyFile(t *testing.T) {
	if local := mustInspect(t, jobtest.WriteFile(t, "file", ""), false).Local(); !local.HasFile || local.Size != 0 {
		t.Errorf("the peer is told %+v", local)
	}
}

func TestInspectAbsent(t *testing.T) {
	directory := t.TempDir()
	for _, overwrite := range []bool{false, true} {
		p := mustInspect(t, filepath.Join(directory, "file"), overwrite)
		if p.Source != nil || p.Exists || p.Overwrite != overwrite || p.Local().HasFile {
			t.Errorf("nothing became %+v", p)
		}
	}
	jobtest.MustHold(t, directory)
}

func TestInspectOverwrite(t *testing.T) {
	path := jobtest.WriteFile(t, "file", "content")
	p := mustInspect(t, path, true)
	if p.Source != nil || !p.Exists || !p.Overwrite || p.Local().HasFile {
		t.Errorf("a file to be replaced became %+v", p)
	}
	jobtest.MustContain(t, path, "content")
}

func TestInspectLink(t *testing.T) {
	path := jobtest.WriteFile(t, "file", "content")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(path, link))
	for _, overwrite := range []bool{false, true} {
		if p := mustInspect(t, link, overwrite); p.Path != path {
			t.Errorf("the link leads to %s, not %s", p.Path, path)
		}
	}
}

// TestInspectFollowsTheKernel looks at paths that another directory would be made of by cleaning them as text.
func TestInspectFollowsTheKernel(t *testing.T) {
	root := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "elsewhere", "inner"), 0o700))
	must(t, os.Symlink("elsewhere/inner", filepath.Join(root, "lnk")))
	must(t, os.WriteFile(filepath.Join(root, "elsewhere", "file"), []byte("content"), 0o600))
	through := root + "/lnk/../file"
	if p := mustInspect(t, through, false); p.Source == nil || p.Source.Info().Size != 7 || p.Path != through {
		t.Errorf("%s became %+v", through, p)
	}
	if p := mustInspect(t, through, true); !p.Exists || p.Path != through {
		t.Errorf("%s became %+v", through, p)
	}
	mustNotInspect(t, root+"/missing/../name", false, job.ErrTarget)
	mustNotInspect(t, root+"/missing/../name", true, job.ErrTarget)
	mustNotInspect(t, root+"/elsewhere/file/../name", false, job.ErrSource)
	mustNotInspect(t, root+"/"+strings.Repeat("n", 256), false, job.ErrSettings)
	mustNotInspect(t, root+strings.Repeat("/.", 2048)+"/name", false, job.ErrSettings)
	for path, overwrite := range map[string]bool{root + "/elsewhere/": false, root + "/..": true} {
		if p := mustInspect(t, path, overwrite); !p.Directory || p.Exists != overwrite {
			t.Errorf("%s became %+v", path, p)
		}
	}
}

// The symlink of another user in a directory like /tmp is no target for root, whatever fs.protected_symlinks is set to.
func TestInspectRefusesUntrustedSymlinks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give symlinks away")
	}
	folder := t.TempDir()
	must(t, os.Chmod(folder, os.ModeSticky|0o777))
	for name, to := range map[string]string{
		"link": jobtest.WriteFile(t, "file", "content"), "dangling": filepath.Join(folder, "new"),
	} {
		must(t, os.Symlink(to, filepath.Join(folder, name)))
		must(t, os.Lchown(filepath.Join(folder, name), 65534, 65534))
	}
	mustNotInspect(t, filepath.Join(folder, "link"), true, disk.ErrUntrustedLink)
	mustNotInspect(t, filepath.Join(folder, "link"), true, job.ErrTarget)
	jobtest.MustHold(t, folder, "dangling", "link")
}

func otherKind(kind error) error {
	if kind == job.ErrSource {
		return job.ErrTarget
	}
	return job.ErrSource
}

// What is neither a file nor a directory fails as what this side would have used it for.
func TestInspectRefusesWhatIsNoFile(t *testing.T) {
	directory := t.TempDir()
	pipe := filepath.Join(directory, "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	dangling := filepath.Join(directory, "dangling")
	must(t, os.Symlink(filepath.Join(directory, "nowhere"), dangling))
	loop := filepath.Join(directory, "loop")
	must(t, os.Symlink(loop, loop))
	socket := filepath.Join(directory, "socket")
	must(t, unix.Mknod(socket, unix.S_IFSOCK|0o600, 0))
	for _, path := range []string{pipe, socket, dangling, "/dev/null"} {
		for _, s := range []struct {
			search job.Search
			kind   error
		}{
			{job.Search{}, job.ErrSource},
			{job.Search{Use: job.SourceUse}, job.ErrSource},
			{job.Search{Use: job.TargetUse}, job.ErrTarget},
			{job.Search{Use: job.TargetUse, Overwrite: true}, job.ErrTarget},
			{job.Search{Overwrite: true}, job.ErrTarget},
			{job.Search{IgnoreExisting: true}, job.ErrTarget},
		} {
			s.search.Path, s.search.IdleTimeout = path, time.Minute
			_, err := job.Find(t.Context(), s.search)
			jobtest.MustFail(t, err, s.kind)
			if other := otherKind(s.kind); errors.Is(err, other) {
				t.Errorf("%+v: %v is %v, too", s.search, err, other)
			}
		}
	}
	mustNotInspect(t, loop, false, job.ErrSource)
	mustNotInspect(t, loop, true, job.ErrTarget)
}

// A target that cannot be read, so that it cannot be compared, is not taken for a source.
func TestInspectUnreadableTarget(t *testing.T) {
	m := disktest.NewMemory("/there")
	m.Put("/there/file", "content")
	on := disktest.NewFaulty(m, func(_ int, op, _ string) *disktest.Fault {
		if op == "open" {
			return &disktest.Fault{Err: unix.EACCES}
		}
		return nil
	})
	for use, kind := range map[job.Use]error{
		job.AnyUse: job.ErrSource, job.SourceUse: job.ErrSource, job.TargetUse: job.ErrTarget,
	} {
		_, err := job.Find(t.Context(), job.Search{FS: on, Path: "/there/file", Use: use, IdleTimeout: time.Minute})
		jobtest.MustFail(t, err, kind)
		if errors.Is(err, otherKind(kind)) || !errors.Is(err, unix.EACCES) {
			t.Errorf("use %d: %v", use, err)
		}
	}
}

// A directory is sent, or received into with Overwrite. What an interrupted transfer has left says so.
func TestInspectFindsDirectories(t *testing.T) {
	directory := t.TempDir()
	link := filepath.Join(directory, "link")
	target := filepath.Join(directory, "target")
	must(t, os.Mkdir(target, 0o700))
	must(t, os.Symlink(target, link))
	for _, path := range []string{target, link} {
		for _, overwrite := range []bool{false, true} {
			p := mustInspect(t, path, overwrite)
			if !p.Directory || p.Unfinished || p.Overwrite != overwrite || p.Path != target {
				t.Errorf("%s became %+v", path, p)
			}
			if has := p.Local().HasFile; has == overwrite {
				t.Errorf("%s, overwrite %t: the side has it: %t", path, overwrite, has)
			}
		}
	}
	tree, err := disk.OpenTree(disk.OS, target, disk.TreeOptions{Overwrite: true})
	must(t, err)
	must(t, tree.Close(false))
	for _, use := range []job.Use{job.AnyUse, job.SourceUse, job.TargetUse} {
		p, err := job.Find(t.Context(), job.Search{Path: target, Use: use, IdleTimeout: time.Minute})
		must(t, err)
		if !p.Directory || !p.Unfinished || !p.Local().HasFile {
			t.Errorf("an unfinished directory became %+v", p)
		}
	}
}

// A slash at the end of a path that does not exist permits a directory there, and no file.
func TestInspectTrailingSlash(t *testing.T) {
	directory := t.TempDir()
	for _, slashes := range []string{"/", "//"} {
		p := mustInspect(t, filepath.Join(directory, "new")+slashes, false)
		if want := filepath.Join(directory, "new"); p.Name != want || p.Path != want || p.Local().HasFile {
			t.Errorf("a path with a slash became %+v", p)
		}
		jobtest.MustFail(t, p.CheckFile(wire.Host), job.ErrTarget)
	}
	must(t, mustInspect(t, filepath.Join(directory, "new"), false).CheckFile(wire.Host))
	must(t, os.Symlink("nowhere", filepath.Join(directory, "dangling")))
	for _, path := range []string{"missing/new/", "dangling/"} {
		if _, err := find(t, filepath.Join(directory)+"/"+path, true); err == nil {
			t.Errorf("%s can be created", path)
		}
	}
	jobtest.MustHold(t, directory, "dangling")
}

func TestInspectWantsADirectory(t *testing.T) {
	file := jobtest.WriteFile(t, "file", "content")
	mustNotInspect(t, filepath.Join(t.TempDir(), "missing", "name"), false, job.ErrTarget)
	mustNotInspect(t, filepath.Join(t.TempDir(), "missing", "name"), true, job.ErrTarget)
	mustNotInspect(t, filepath.Join(file, "name"), false, job.ErrSource)
	mustNotInspect(t, filepath.Join(file, "name"), true, job.ErrTarget)
	_, err := job.Find(t.Context(), job.Search{FS: disk.OS, Path: filepath.Join(file, "name"), Use: job.TargetUse})
	jobtest.MustFail(t, err, job.ErrTarget)
}

// Only others than root are kept out by permissions.
func TestInspectMinds(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may do everything")
	}
	closed := t.TempDir()
	must(t, os.Chmod(closed, 0o500))
	mustNotInspect(t, filepath.Join(closed, "name"), false, job.ErrTarget)
	unreadable := jobtest.WriteFile(t, "file", "content")
	must(t, os.Chmod(unreadable, 0))
	mustNotInspect(t, unreadable, false, job.ErrSource)
}

// In a file system that is one directory the same is found as in that of the operating system, and nothing outside.
func TestInspectInARoot(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{"root", "root/dir", "root/unfinished", "outside"} {
		must(t, os.Mkdir(filepath.Join(directory, name), 0o700))
	}
	for _, name := range []string{"root/file", "root/dir/inner", "outside/file"} {
		must(t, os.WriteFile(filepath.Join(directory, name), []byte(name), 0o600))
	}
	for name, text := range map[string]string{
		"link": "file", "dir/up": "../link", "to dir": "dir", "dangling": "absent", "loop": "loop",
		"out": "../outside", "out file": "../outside/file", "out new": "../outside/new",
		"absolute": directory + "/root/file",
	} {
		must(t, os.Symlink(text, filepath.Join(directory, "root", name)))
	}
	tree, err := disk.OpenTree(disk.OS, directory+"/root/unfinished", disk.TreeOptions{Overwrite: true})
	must(t, err)
	must(t, tree.Close(false))
	root, err := disk.OpenRoot(disk.OS, directory+"/root")
	must(t, err)
	defer root.Close()
	for _, s := range []job.Search{{}, {Use: job.SourceUse}, {Use: job.TargetUse}, {Overwrite: true}} {
		for _, name := range []string{
			"file", "dir", "dir/", "dir/inner", "link", "dir/up", "to dir", "to dir/inner", "dangling", "loop", "new",
			"new/", "dir/new", "missing/new", "file/new", "file/", "unfinished", ".", "dir/../file",
		} {
			mustInspectAlike(t, s, directory+"/root/", name, root)
		}
		for _, name := range []string{
			"out", "out/file", "out/new", "out file", "out new", "absolute", "..", "/etc/passwd",
		} {
			s.Path, s.FS, s.IdleTimeout = name, root, time.Minute
			if f, err := job.Find(t.Context(), s); err == nil {
				t.Errorf("%q became %+v", name, f)
				f.Close()
			}
		}
	}
	jobtest.MustHold(t, directory+"/outside", "file")
}

// mustInspectAlike looks for a name in a directory with its path, and in the Root of the directory.
func mustInspectAlike(t *testing.T, s job.Search, directory, name string, root *disk.Root) {
	t.Helper()
	s.IdleTimeout, s.Path = time.Minute, directory+name
	want, wantErr := job.Find(t.Context(), s)
	s.FS, s.Path = root, name
	got, err := job.Find(t.Context(), s)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%+v: %v, and %v", s, err, wantErr)
	}
	if err != nil {
		for _, kind := range []error{job.ErrSource, job.ErrTarget, job.ErrSettings} {
			if errors.Is(err, kind) != errors.Is(wantErr, kind) {
				t.Errorf("%+v: %v, and %v", s, err, wantErr)
			}
		}
		return
	}
	defer want.Close()
	defer got.Close()
	if directory+got.Path != want.Path || directory+got.Name != want.Name || got.Local() != want.Local() ||
		got.Directory != want.Directory || got.Exists != want.Exists || got.Unfinished != want.Unfinished ||
		got.NoFile != want.NoFile {
		t.Errorf("%+v became %+v, and %+v", s, got, want)
	}
}

// Sides without a data path in common learn what to do about it, which differs by the kind of connection.
func TestExplainNoPath(t *testing.T) {
	for side, want := range map[wire.Side]string{
		wire.Client: "a daemon permits only tls unless its --path lists others",
		wire.Server: "a daemon permits only tls unless its --path lists others",
		wire.Host:   "one of them does not use DMA, and one not the fast path",
		wire.DPU:    "one of them does not use DMA, and one not the fast path",
	} {
		err := new(job.LocalFile).Explain(side, wire.ErrNoPath)
		if !errors.Is(err, job.ErrCapability) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", side, err, want)
		}
	}
}
