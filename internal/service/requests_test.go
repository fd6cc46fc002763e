//go:build cgo

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/secure"
	"github.com/dma-copy/dma-copy/internal/share"
)

// list returns what a client sees at a place such as "box/d", a line for each entry.
func (w *world) list(c *Client, at string, flags protocol.ListFlags) (lines []string, err error) {
	name, path, _ := strings.Cut(at, "/")
	_, err = c.List(w.Context(), protocol.Place{Share: name, Path: path}, flags, func(e share.Entry) error {
		line := fmt.Sprintf("%d %s %q %d", e.Depth, e.Kind, e.Path, e.Size)
		if e.Link != "" {
			line += " to " + e.Link
		}
		lines = append(lines, line)
		return nil
	})
	return lines, err
}

func (w *world) mustList(c *Client, at string, flags protocol.ListFlags, want ...string) {
	w.Helper()
	got, err := w.list(c, at, flags)
	must(w.T, err)
	if !slices.Equal(got, want) {
		w.Errorf("%s has\n%q\nwant\n%q", at, got, want)
	}
}

func TestList(t *testing.T) {
	inWorld(t, func(w *world) {
		makeDirectories(t, w.remote, "/srv/box/d", "/srv/box/d/e")
		w.remote.Put("/srv/box/d/e/x", "12345")
		w.remote.Put("/srv/box/d/a", "1")
		w.remote.Put("/srv/box/z", "12")
		w.remote.Symlink("../../../etc/passwd", "/srv/box/d/link", 0)
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		w.mustList(c, "box", 0, `0 directory "" 0`, `1 directory "d" 0`, `1 file "z" 2`)
		w.mustList(c, "box/d", protocol.ListRecursive, `0 directory "" 0`, `1 file "a" 1`, `1 directory "e" 0`,
			`2 file "e/x" 5`, `1 symlink "link" 0 to ../../../etc/passwd`)
		w.mustList(c, "box/d", protocol.ListItself, `0 directory "" 0`)
		w.mustList(c, "box/z", 0, `0 file "" 2`)
		w.mustList(c, "box/d/link", 0, `0 symlink "" 0 to ../../../etc/passwd`)
		_, err := w.list(c, "box/none", 0)
		mustRefuse(w.T, err, wire.AbortSource, "none does not exist")
	})
}

// To look for one entry is no failure of the daemon if there is none: the answer says so. Anything else is one.
func TestLookupOfNothing(t *testing.T) {
	inWorld(t, func(w *world) { w.remote.Put("/srv/box/file", "") }, func(w *world) {
		c := w.alice()
		defer c.Close()
		for i, test := range []struct {
			at    string
			flags protocol.ListFlags
			code  wire.AbortCode
			fails bool
		}{
			{"box/none", protocol.ListItself, wire.AbortSource, false},
			{"box/none/deeper", protocol.ListItself | protocol.ListIdentify, wire.AbortSource, false},
			{"box/file/deeper", protocol.ListItself, wire.AbortSource, false},
			{"box/none", 0, wire.AbortSource, true},
			{"in/none", protocol.ListItself, wire.AbortRefused, true},
		} {
			_, err := w.list(c, test.at, test.flags)
			mustRefuse(w.T, err, test.code, "")
			r := w.records()[i]
			if r.Lookup != test.flags.Has(protocol.ListItself) || (r.Err != nil) != test.fails ||
				(r.Code != 0) != test.fails || r.Entries != 0 {
				w.Errorf("%s: the record is %+v", test.at, r)
			}
		}
		if failed := w.server.Status().Totals.Failed; failed != 2 {
			w.Errorf("%d requests have failed", failed)
		}
	})
}

// A list of more entries than a message has is whole and in order.
func TestLongList(t *testing.T) {
	const entries = 1000
	inWorld(t, func(w *world) {
		for i := range entries {
			w.remote.Put(fmt.Sprintf("/srv/box/%04d", i), "")
		}
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		got, err := w.list(c, "box", 0)
		must(w.T, err)
		if len(got) != 1+entries || !slices.IsSorted(got) {
			w.Errorf("%d entries (sorted: %t)", len(got), slices.IsSorted(got))
		}
		if r := w.records(); len(r) != 1 || r[0].Entries != 1+entries || r[0].Operation != List {
			w.Errorf("the records are %+v", r)
		}
	})
}

// A symlink that does not fit into a message is left out, and the list is not complete then.
func TestListOfALongSymlink(t *testing.T) {
	inWorld(t, func(w *world) {
		w.remote.Symlink(strings.Repeat("a", 4095), "/srv/box/link", 0)
		w.remote.Put("/srv/box/z", "1")
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		var names []string
		end, err := c.List(w.Context(), protocol.Place{Share: "box"}, 0, func(e share.Entry) error {
			names = append(names, e.Path)
			return nil
		})
		must(w.T, err)
		if !slices.Equal(names, []string{"", "z"}) || end.Code != wire.AbortLimit ||
			!strings.Contains(end.Text, `symlink "link"`) {
			w.Errorf("%q is listed, which ends with %+v", names, end)
		}
		_, err = w.list(c, "box/link", protocol.ListItself)
		mustRefuse(w.T, err, wire.AbortLimit, "its text has 4095 bytes")
		w.mustList(c, "box/z", 0, `0 file "" 1`)
	})
}

func TestListOfShares(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.alice()
		defer c.Close()
		modes := make(map[string]uint32)
		_, err := c.List(w.Context(), protocol.Place{}, 0, func(e share.Entry) error {
			modes[e.Path] = e.Mode
			return nil
		})
		must(w.T, err)
		want := map[string]uint32{"": 0, "box": 0o600, "in": 0o200, "out": 0o400, "keep": 0o600}
		if fmt.Sprint(modes) != fmt.Sprint(want) {
			w.Errorf("got %v, want %v", modes, want)
		}
	})
}

// An entry that the client does not want ends its connection, not the server's other ones.
func TestListGivenUp(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.alice()
		defer c.Close()
		enough := errors.New("enough")
		_, err := c.List(w.Context(), protocol.Place{}, 0, func(share.Entry) error { return enough })
		mustBe(w.T, err, enough)
		_, err = c.RoundTrip(w.Context(), nil)
		mustBe(w.T, err, enough)
	})
}

func TestRemove(t *testing.T) {
	inWorld(t, func(w *world) {
		makeDirectories(t, w.remote, "/srv/box/d", "/srv/box/d/full")
		w.remote.Put("/srv/box/d/a", "1")
		w.remote.Put("/srv/box/d/full/x", "1")
		w.remote.Put("/srv/keep/a", "1")
		w.remote.Put("/srv/out/a", "1")
		w.remote.Put("/srv/secret", "1")
		w.remote.Symlink("/srv", "/srv/box/d/up", 0)
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		codes := make(map[string]wire.AbortCode)
		remove := func(name, path string, paths ...string) error {
			place := protocol.Place{Share: name, Path: path}
			return c.Remove(w.Context(), removing(place, paths...), func(path string, r protocol.Removal) error {
				codes[path] = r.Code
				return nil
			})
		}
		must(w.T, remove("box", "d", "a", "none", "full", "up/secret", "up"))
		mustLack(w.T, w.remote, "/srv/box/d/a")
		mustHave(w.T, w.remote, "/srv/box/d/full/x", "1")
		mustHave(w.T, w.remote, "/srv/secret", "1")
		for path, failed := range map[string]bool{
			"a": false, "none": false, "full": true, "up/secret": true, "up": false,
		} {
			if got, found := codes[path]; !found || (got != 0) != failed {
				w.Errorf("%s: code %d (found: %t)", path, got, found)
			}
		}
		if r := w.records()[0]; !slices.Equal(r.Removed, []string{"a", "up"}) || r.Entries != 2 || r.Err == nil {
			w.Errorf("the record is %+v", r)
		}
		mustRefuse(w.T, remove("keep", "", "a"), wire.AbortRefused, "nooverwrite")
		mustRefuse(w.T, remove("out", "", "a"), wire.AbortRefused, `may not write to share "out"`)
		mustHave(w.T, w.remote, "/srv/keep/a", "1")
		mustHave(w.T, w.remote, "/srv/out/a", "1")
	})
}

// Special files are removed like files, and mount points are not. Both are listed where all are asked for.
func TestRemoveSpecialFilesAndMountPoints(t *testing.T) {
	inWorld(t, func(w *world) {
		makeDirectories(t, w.remote, "/srv/box/d", "/srv/box/d/disk")
		w.remote.Special("/srv/box/d/pipe", fs.ModeNamedPipe)
		w.remote.Special("/srv/box/d/socket", fs.ModeSocket)
		w.remote.Mount("/srv/box/d/disk")
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		w.mustList(c, "box/d", 0, `0 directory "" 0`, `1 directory "disk" 0`)
		w.mustList(c, "box/d", protocol.ListAll, `0 directory "" 0`, `1 directory "disk" 0`,
			`1 special file "pipe" 0`, `1 special file "socket" 0`)
		w.mustList(c, "box/d/pipe", protocol.ListItself|protocol.ListAll, `0 special file "" 0`)
		_, err := w.list(c, "box/d/pipe", protocol.ListItself)
		mustRefuse(w.T, err, wire.AbortSource, "neither a file")
		mounted := false
		place := protocol.Place{Share: "box", Path: "d/disk"}
		_, err = c.List(w.Context(), place, protocol.ListItself|protocol.ListAll, func(e share.Entry) error {
			mounted = e.Mounted
			return nil
		})
		if err != nil || !mounted {
			w.Errorf("mounted %t, %v", mounted, err)
		}
		place.Path = "d"
		removed := func(why string) func(string, protocol.Removal) error {
			return func(path string, r protocol.Removal) error {
				if (r.Code == 0) != (why == "") || !strings.Contains(r.Text, why) {
					w.Errorf("%s: %+v, want %q", path, r, why)
				}
				return nil
			}
		}
		must(w.T, c.Remove(w.Context(), removing(place, "pipe"), removed("")))
		files := removing(place, "socket")
		files.Files = true
		must(w.T, c.Remove(w.Context(), files, removed("")))
		must(w.T, c.Remove(w.Context(), removing(place, "disk"), removed("it is a mount point")))
		w.mustList(c, "box/d", protocol.ListAll, `0 directory "" 0`, `1 directory "disk" 0`)
	})
}

// A removal of files refuses directories, and reports what is not there. Links on the way to the place are followed
// within the share, and the last one is removed itself.
func TestRemoveFiles(t *testing.T) {
	inWorld(t, func(w *world) {
		makeDirectories(t, w.remote, "/srv/box/d", "/srv/box/d/empty")
		w.remote.Put("/srv/box/d/a", "1")
		w.remote.Put("/srv/box/d/b", "1")
		w.remote.Symlink("d", "/srv/box/link", 0)
		w.remote.Symlink("/srv", "/srv/box/out", 0)
		w.remote.Put("/srv/secret", "1")
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		remove := func(path, name string) (code wire.AbortCode, err error) {
			place := protocol.Place{Share: "box", Path: path}
			files := removing(place, name)
			files.Files = true
			err = c.Remove(w.Context(), files, func(_ string, r protocol.Removal) error {
				code = r.Code
				return nil
			})
			return code, err
		}
		for _, test := range []struct {
			path, name string
			want       wire.AbortCode
		}{
			{"d", "a", 0}, {"d", "a", wire.AbortSource}, {"d", "empty", wire.AbortTarget}, {"link", "b", 0},
			{"", "link", 0}, {"", "out/secret", wire.AbortTarget},
		} {
			if code, err := remove(test.path, test.name); err != nil || code != test.want {
				w.Errorf("%s in %s: %d, %v", test.name, test.path, code, err)
			}
		}
		_, err := remove("out", "secret")
		mustRefuse(w.T, err, wire.AbortSource, "leads out of the shared directory")
		mustHave(w.T, w.remote, "/srv/secret", "1")
		w.mustList(c, "box/d", 0, `0 directory "" 0`, `1 directory "empty" 0`)
	})
}

func TestMakeDir(t *testing.T) {
	inWorld(t, func(w *world) {
		makeDirectories(t, w.remote, "/srv/box/d")
		w.remote.Put("/srv/box/file", "1")
		w.remote.Symlink("d", "/srv/box/link", 0)
		w.remote.Symlink("none", "/srv/box/dangling", 0)
		w.remote.Symlink("../keep", "/srv/box/outside", 0)
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		for _, test := range []struct {
			at      string
			parents bool
			want    string
		}{
			{"box/new", false, ""}, {"box/new", false, "new exists"}, {"box/new", true, ""},
			{"box/file", true, "file exists"},
			{"box/a/b/c", false, "use -p"}, {"box/a/b/c", true, ""}, {"box/link/in", false, ""},
			{"box/file/x", true, "not a directory"}, {"box/dangling", false, "dangling symlink"},
			{"box/dangling/x", true, "cannot create the directory of"}, {"box/outside/x", true, "leads out of"},
			{"box/.x.dma-copy-part", false, "reserved"}, {"keep/d", false, ""}, {"out/d", false, "may not write"},
			{"none/d", false, "no share"},
		} {
			name, path, _ := strings.Cut(test.at, "/")
			err := c.MakeDir(w.Context(), protocol.Place{Share: name, Path: path}, test.parents)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				w.Errorf("%s (parents: %t): %v, want %q", test.at, test.parents, err, test.want)
			}
		}
		w.mustList(c, "box", protocol.ListRecursive, `0 directory "" 0`, `1 directory "a" 0`, `2 directory "a/b" 0`,
			`3 directory "a/b/c" 0`, `1 directory "d" 0`, `2 directory "d/in" 0`, `1 symlink "dangling" 0 to none`,
			`1 file "file" 1`, `1 symlink "link" 0 to d`, `1 directory "new" 0`, `1 symlink "outside" 0 to ../keep`)
		if r := w.records()[0]; r.Operation != Mkdir || r.Path != "new" || r.Share != "box" || r.Entries != 1 {
			w.Errorf("the record is %+v", r)
		}
	})
}

// What is removed before the share hangs is in the record.
func TestRemoveInAShareThatHangs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.remote.Put("/srv/box/a", "1")
		w.remote.Put("/srv/box/b", "1")
		w.faulty = "b"
	}, func(w *world) {
		hang := make(chan struct{})
		w.fault.Store(&disktest.Fault{Hang: hang})
		c := w.alice()
		place := protocol.Place{Share: "box"}
		err := c.Remove(w.Context(), removing(place, "a", "b"), func(string, protocol.Removal) error { return nil })
		if refusal, is := errors.AsType[*protocol.Refusal](err); !is || !refusal.Final {
			w.Errorf("got %v", err)
		}
		mustLack(w.T, w.remote, "/srv/box/a")
		if r := w.records()[0]; !slices.Equal(r.Removed, []string{"a"}) || r.Entries != 1 || r.Err == nil {
			w.Errorf("the record is %+v", r)
		}
		close(hang)
		must(w.T, c.Close())
	})
}

// More paths than a message has are removed all the same.
func TestRemoveMany(t *testing.T) {
	const files = 500
	var paths []string
	for i := range files {
		paths = append(paths, fmt.Sprintf("%s-%d", strings.Repeat("n", 50), i))
	}
	inWorld(t, func(w *world) {
		for _, path := range paths {
			w.remote.Put("/srv/box/"+path, "")
		}
	}, func(w *world) {
		c := w.alice()
		defer c.Close()
		var removed []string
		place := protocol.Place{Share: "box"}
		err := c.Remove(w.Context(), removing(place, paths...), func(path string, r protocol.Removal) error {
			if r.Code != 0 {
				return errors.New(r.Text)
			}
			removed = append(removed, path)
			return nil
		})
		must(w.T, err)
		if !slices.Equal(removed, paths) {
			w.Errorf("%d results", len(removed))
		}
		w.mustList(c, "box", 0, `0 directory "" 0`)
	})
}

func TestPing(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.alice()
		defer c.Close()
		for _, size := range []int{0, 1, c.MaxPing()} {
			if _, err := c.RoundTrip(w.Context(), make([]byte, size)); err != nil {
				w.Errorf("%d bytes: %v", size, err)
			}
		}
		if _, err := c.RoundTrip(w.Context(), make([]byte, c.MaxPing()+1)); err == nil {
			w.Error("a payload that is too long was sent")
		}
		got, err := c.Text(w.Context(), "hello there")
		must(w.T, err)
		if got != "hello" {
			w.Errorf("the answer is %q", got)
		}
		if r := w.records(); len(r) != 1 || r[0].Operation != Ping || r[0].Text != "hello there" {
			w.Errorf("the records are %+v", r)
		}
	})
}

// A daemon refuses the offer of a consumer, and goes on.
func TestPingWithAConsumer(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.alice()
		defer c.Close()
		err := c.send(w.Context(), func(s *protocol.Session, dst []byte) ([]byte, error) {
			return s.Ping(dst, protocol.Consumer{ID: 1, Size: 64}.Append(nil), protocol.PingConsumer)
		})
		must(w.T, err)
		_, err = c.answer(w.Context())
		refused, is := errors.AsType[*protocol.Refusal](err)
		if !is || refused.Final || !strings.Contains(refused.Text, "over the control channel only") {
			w.Errorf("got %v", err)
		}
		_, err = c.RoundTrip(w.Context(), nil)
		must(w.T, err)
	})
}

// A client whose daemon is gone, or silent, ends in time.
func TestDaemonThatIsSilent(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.alice()
		defer c.Close()
		silent, _ := comch.Pipe(testMessage)
		c.exchange.conn = mute{c.exchange.conn, silent}
		var log bytes.Buffer
		c.config.Log = zerolog.New(&log)
		time.Sleep(5 * time.Second)
		waits := make(chan string, 1)
		time.AfterFunc(10*time.Second, func() { waits <- c.Waits() })
		err := c.MakeDir(w.Context(), protocol.Place{Share: "box", Path: "new"}, false)
		if err == nil || !strings.Contains(err.Error(), "no message from the daemon for 30s") {
			w.Errorf("got %v", err)
		}
		const asked = "the command waits for the daemon to answer mkdir of box/new; asked 10.0s ago, " +
			"last message of the daemon 15.0s ago"
		if got := <-waits; got != asked {
			w.Errorf("it waits: %s", got)
		}
		w.mustHaveStalled(&log, "the command waits for the daemon to answer mkdir of box/new; asked 30.0s ago, "+
			"last message of the daemon 35.0s ago")
		if got := c.Waits(); got != "" {
			w.Errorf("after the end it waits: %s", got)
		}
	})
}

// mustHaveStalled checks that a log has the line of a timeout, once and at level WARNING.
func (w *world) mustHaveStalled(log *bytes.Buffer, line string) {
	w.Helper()
	if strings.Count(log.String(), `{"level":"warn",`) != 1 || !strings.Contains(log.String(), job.Stall+line+`"}`) {
		w.Errorf("the log has not the line %q alone:\n%s", line, log.String())
	}
}

// A command waits no longer than it may for a daemon that does not authenticate, or then does not greet. It has a
// second for both in any case.
func TestDaemonThatIsSilentAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, authenticates := range []bool{false, true} {
			for wait, want := range map[time.Duration]time.Duration{0: time.Second, 3 * time.Second: 3 * time.Second} {
				command, daemon := comch.Pipe(testMessage)
				if authenticates {
					go func() {
						own := secure.Config{Key: newKey(t), Verify: secure.AnyKey}
						_, err := secure.Server(t.Context(), daemon, own)
						must(t, err)
					}()
				}
				began := time.Now()
				_, err := Connect(t.Context(), ClientConfig{
					Conn: command, Memory: fixed(&bus{}), Key: newKey(t), Verify: secure.AnyKey, Log: zerolog.Nop(),
				}.waiting(wait))
				if took := time.Since(began); took != want || !errors.Is(err, secure.ErrTimeout) { // virtual
					t.Errorf("authenticates %v, wait %s: %v after %s", authenticates, wait, err, took)
				}
				must(t, daemon.Close())
			}
		}
	})
}

// mute is a connection from which nothing arrives any more.
type mute struct {
	comch.Conn
	silent *comch.PipeEnd
}

// Recv implements comch.Conn.
func (m mute) Recv(ctx context.Context) ([]byte, error) { return m.silent.Recv(ctx) }

func TestInterruptedRequest(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		c := w.alice()
		defer c.Close()
		silent, _ := comch.Pipe(testMessage)
		c.exchange.conn = mute{c.exchange.conn, silent}
		ctx, cancel := context.WithCancelCause(w.Context())
		time.AfterFunc(time.Second, func() { cancel(errStopped) })
		_, err := c.RoundTrip(ctx, nil)
		mustBe(w.T, err, errStopped)
		_, err = c.RoundTrip(w.Context(), nil) // the answer to the first one may still come
		mustBe(w.T, err, errStopped)
	})
}
