package disk_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Another process that may write to the directory changes the partial file.

// tampering has changes to a partial file by its name.
var tampering = map[string]func(t *testing.T, at testDir){
	"truncated": func(t *testing.T, at testDir) {
		change(t, at, func(file disk.File) error { return file.Truncate(100) })
	},
	"extended": func(t *testing.T, at testDir) {
		change(t, at, func(file disk.File) error { return file.Truncate(int64(len(newText)) + 5000) })
	},
	"emptied": func(t *testing.T, at testDir) { change(t, at, func(file disk.File) error { return file.Truncate(0) }) },
}

// unseen has changes that only the times of the file show.
var unseen = map[string]func(t *testing.T, at testDir){
	"rewritten": func(t *testing.T, at testDir) {
		change(t, at, func(file disk.File) error {
			_, err := file.WriteAt([]byte("x"), 7)
			return err
		})
	},
	"cut and restored": func(t *testing.T, at testDir) {
		change(t, at, func(file disk.File) error {
			return errors.Join(file.Truncate(10), file.Truncate(int64(len(newText))))
		})
	},
	"given another mode": func(t *testing.T, at testDir) {
		change(t, at, func(file disk.File) error { return file.SetMode(0o666) })
	},
	"linked": func(t *testing.T, at testDir) {
		dir, err := at.fs.OpenDir(at.folder)
		must(t, err)
		must(t, dir.Link(partialName, "second"))
		must(t, dir.Close())
	},
	"dated back": func(t *testing.T, at testDir) {
		change(t, at, func(file disk.File) error {
			info, err := file.Info()
			_, writeErr := file.WriteAt([]byte("x"), 7)
			return errors.Join(err, writeErr, file.SetModified(info.Modified))
		})
	},
}

func change(t *testing.T, at testDir, how func(file disk.File) error) {
	t.Helper()
	dir, err := at.fs.OpenDir(at.folder)
	must(t, err)
	file, err := dir.Open(partialName, false)
	must(t, err)
	must(t, how(file))
	must(t, file.Close())
	must(t, dir.Close())
}

// A partial file that another process truncates or extends at any time is detected, even if later writes restore its
// length.
func TestPartialThatIsTamperedWithIsNotCommitted(t *testing.T) {
	for name, tamper := range tampering {
		for _, when := range []string{"before the first byte", "in the middle", "before Prepare", "before Commit"} {
			t.Run(name+" "+when, func(t *testing.T) {
				everywhere(t, func(t *testing.T, at testDir) {
					p := mustOpen(t, at, "file", copies["new"])
					err := receiveInSteps(t, p, func(now string) {
						if now == when {
							tamper(t, at)
						}
					})
					mustBeTampered(t, at, p, err)
				})
			})
		}
	}
}

// receiveInSteps receives and commits newText, and calls reached between the steps.
func receiveInSteps(t *testing.T, p *disk.Partial, reached func(now string)) error {
	half := len(newText) / 2
	must(t, p.Allocate(t.Context(), nil))
	reached("before the first byte")
	must(t, p.WriteAt([]byte(newText[:half]), 0))
	reached("in the middle")
	must(t, p.WriteAt([]byte(newText[half:]), int64(half)))
	must(t, p.Advance(int64(len(newText))))
	reached("before Prepare")
	err := p.Prepare(t.Context(), newMeta, wire.DurabilityFull, nil)
	reached("before Commit")
	if err == nil {
		err = p.Commit(wire.DurabilityFull)
	}
	return err
}

// Every change between Prepare and the rename is detected.
func TestPreparedPartialThatChangesIsNotCommitted(t *testing.T) {
	for name, tamper := range unseen {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, at testDir) {
				want := copies["new"]
				want.Preserve = disk.Preserve{Mode: true, Times: true, Owner: true}
				p := mustOpen(t, at, "file", want)
				must(t, write(t, p, newText))
				before := mustInfo(t, p.File())
				meta := disk.Metadata{
					Size: int64(len(newText)), Mode: 0o600, UID: before.UID, GID: before.GID, Modified: before.Modified,
				}
				must(t, p.Prepare(t.Context(), meta, wire.DurabilityFull, nil))
				awaitTick(t, at, p)
				tamper(t, at)
				err := p.Commit(wire.DurabilityFull)
				if _, second := at.get("second"); second {
					mustFail(t, err, disk.ErrChanged, "2 hard links")
					dir, dirErr := at.fs.OpenDir(at.folder)
					must(t, dirErr)
					must(t, dir.Remove("second"))
					must(t, dir.Close())
				}
				mustBeTampered(t, at, p, err)
			})
		})
	}
}

// From Flush on, which precedes reading back, no other process may change the file.
func TestPartialThatChangesWhileItIsReadBack(t *testing.T) {
	for _, name := range []string{"rewritten", "dated back"} {
		everywhere(t, func(t *testing.T, at testDir) {
			p := mustOpen(t, at, "file", copies["new"])
			must(t, write(t, p, newText))
			must(t, p.Flush(t.Context(), nil))
			awaitTick(t, at, p)
			unseen[name](t, at)
			err := p.Prepare(t.Context(), newMeta, wire.DurabilityFull, nil)
			mustBeTampered(t, at, p, err)
		})
	}
}

// awaitTick waits for the next tick of the file system's clock, because two changes in one tick have the same time.
func awaitTick(t *testing.T, at testDir, p *disk.Partial) {
	t.Helper()
	dir, err := at.fs.OpenDir(at.folder)
	must(t, err)
	defer dir.Close()
	for sealed := mustInfo(t, p.File()).Changed; ; {
		probe := mustCreate(t, dir, "probe")
		now := mustInfo(t, probe).Changed
		must(t, errors.Join(probe.Close(), dir.Remove("probe")))
		if now != sealed {
			return
		}
	}
}

func mustBeTampered(t *testing.T, at testDir, p *disk.Partial, err error) {
	t.Helper()
	mustFail(t, err, disk.ErrTarget, "another process")
	mustBe(t, err, disk.ErrChanged)
	if kept := p.Keep(); kept != 0 || p.Lost() == "" {
		t.Errorf("%d bytes are kept; %q", kept, p.Lost())
	}
	at.mustHold(t)
}

// named returns a file system without unnamed files.
func named(at testDir) testDir {
	at.fs = disktest.NewFaulty(at.fs, func(_ int, op, _ string) *disktest.Fault {
		if op == "create unnamed" {
			return &disktest.Fault{Err: errors.ErrUnsupported}
		}
		return nil
	})
	return at
}

// If nothing is to be kept, the received file has no name before the commit, and the file with the partial's name is
// only a placeholder.
func TestUnnamedPartialIsOutOfReach(t *testing.T) {
	for name, want := range map[string]disk.Wanted{
		"no resume": copies["no resume"], "no digest": with(func(w *disk.Wanted) { w.Digest = 0 }),
		"stream": {Digest: 1}, "replacing": copies["unnamed, replacing"],
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, at testDir) {
				names := []string{"file"}
				if want.Overwrite {
					at.put("file", oldText)
					names = append(names, "file~")
				}
				p := mustOpen(t, at, "file", want)
				for _, tamper := range tampering {
					tamper(t, at)
				}
				if info := mustInfo(t, p.File()); info.Links != 0 {
					t.Errorf("what is received has %d names", info.Links)
				}
				must(t, p.WriteAt([]byte(newText), 0))
				must(t, p.Prepare(t.Context(), newMeta, wire.DurabilityFull, nil))
				for _, tamper := range unseen {
					tamper(t, at)
				}
				must(t, p.Commit(wire.DurabilityFull))
				at.mustContain(t, "file", newText)
				at.mustHold(t, append(names, "second")...)
			})
		})
	}
}

// The temporary link of a transfer that was killed during its commit is replaced.
func TestLinkThatIsLeftIsReplaced(t *testing.T) {
	everywhere(t, func(t *testing.T, at testDir) {
		at.put("file", oldText)
		at.put(".file.dma-copy-new", "left")
		p := mustOpen(t, at, "file", copies["unnamed, replacing"])
		must(t, receive(t, p, newText, wire.DurabilityNone))
		must(t, p.Commit(wire.DurabilityNone))
		at.mustContain(t, "file", newText)
		at.mustHold(t, "file", "file~")
	})
}

// A stream has no size to compare, but a loss of its bytes is detected.
func TestStreamsPartialThatIsTamperedWith(t *testing.T) {
	for name, tamper := range tampering {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, at testDir) {
				p := mustOpen(t, named(at), "file", disk.Wanted{Digest: 1})
				half := len(newText) / 2
				must(t, p.WriteAt([]byte(newText[:half]), 0))
				tamper(t, at)
				err := p.Advance(int64(half))
				if err == nil {
					must(t, p.WriteAt([]byte(newText[half:]), int64(half)))
					err = p.Prepare(t.Context(), newMeta, wire.DurabilityFull, nil)
				}
				mustFail(t, err, disk.ErrTarget, "another process")
				p.Discard()
				at.mustHold(t)
			})
		})
	}
}

// whenRenamed calls do right before the final rename.
func whenRenamed(m *disktest.Memory, do func(m *disktest.Memory)) *disktest.Faulty {
	done := false
	return disktest.NewFaulty(m, func(_ int, op, name string) *disktest.Fault {
		if op == "rename" && name == "file" && !done {
			done = true
			do(m)
		}
		return nil
	})
}

// The target is examined after the rename too, because another process can replace or change it until then.
func TestTargetThatIsNotWhatWasReceived(t *testing.T) {
	for name, attack := range map[string]func(m *disktest.Memory){
		"exchanged": func(m *disktest.Memory) { m.Put("/there/"+partialName, "something else") },
		"rewritten": func(m *disktest.Memory) { m.Write("/there/"+partialName, "x", 5) },
		"extended":  func(m *disktest.Memory) { m.Write("/there/"+partialName, "x", 1<<20) },
		"linked":    func(m *disktest.Memory) { m.Link("/there/"+partialName, "/there/second") },
	} {
		t.Run(name, func(t *testing.T) {
			_, m := inMemory()
			err := copyAll(t, whenRenamed(m, attack), copies["new"], (*disk.Partial).Discard)
			mustFail(t, err, disk.ErrTarget, "another process", "during the final rename")
			mustBe(t, err, disk.ErrChanged)
			if open := m.Handles(); open != 0 {
				t.Errorf("%d handles are still open", open)
			}
		})
	}
}

// Keep reports nothing as kept if the partial file or its journal was removed, replaced or truncated.
func TestNothingIsKeptOfWhatIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		tamper func(t *testing.T, at testDir, dir disk.Dir)
		why    string
		left   []string
	}{
		"partial removed": {func(t *testing.T, at testDir, dir disk.Dir) {
			must(t, dir.Remove(partialName))
		}, "partial file was removed", nil},
		"partial replaced": {func(t *testing.T, at testDir, dir disk.Dir) {
			must(t, dir.Remove(partialName))
			at.put(partialName, "another's")
		}, "partial file was removed or replaced", []string{partialName}},
		"journal removed": {func(t *testing.T, at testDir, dir disk.Dir) {
			must(t, dir.Remove(journalName))
		}, "journal was removed", nil},
		"journal replaced": {func(t *testing.T, at testDir, dir disk.Dir) {
			must(t, dir.Remove(journalName))
			at.put(journalName, "another's")
		}, "journal was removed or replaced", []string{journalName}},
		"partial cut": {func(t *testing.T, at testDir, _ disk.Dir) { tampering["truncated"](t, at) }, "truncated", nil},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, at testDir) {
				p := mustOpen(t, at, "file", copies["new"])
				must(t, write(t, p, newText))
				dir, err := at.fs.OpenDir(at.folder)
				must(t, err)
				c.tamper(t, at, dir)
				must(t, dir.Close())
				if kept := p.Keep(); kept != 0 || !strings.Contains(p.Lost(), c.why) {
					t.Errorf("%d bytes are kept; %q", kept, p.Lost())
				}
				at.mustHold(t, c.left...)
			})
		})
	}
}

// After a failed rename the partial file can be kept as long as it has its name.
func TestWhatAFailedCommitKeepsIsThere(t *testing.T) {
	at, _ := inMemory()
	p := mustOpen(t, at, "file", copies["new"])
	must(t, receive(t, p, newText, wire.DurabilityNone))
	at.put("file", "another's")
	mustFail(t, p.Commit(wire.DurabilityNone), disk.ErrExists)
	dir, err := at.fs.OpenDir(at.folder)
	must(t, err)
	must(t, dir.Remove(partialName))
	must(t, dir.Close())
	if kept := p.Keep(); kept != 0 || !strings.Contains(p.Lost(), "removed or replaced") {
		t.Errorf("%d bytes are kept; %q", kept, p.Lost())
	}
	at.mustHold(t, "file")
}

// A file with the partial's name is checked before it is changed.
func TestSecondNameIsRefusedUnchanged(t *testing.T) {
	at, m := inMemory()
	at.put("precious", oldText)
	setMode(t, at, "precious", 0o444)
	m.Link("/there/precious", "/there/"+partialName)
	before, err := at.fs.Stat(at.path("precious"))
	must(t, err)
	_, err = disk.OpenPartial(at.fs, at.path("file"), copies["new"])
	mustFail(t, err, disk.ErrTarget, "cannot use "+partialName, "more than one hard link")
	if after, err := at.fs.Stat(at.path("precious")); err != nil || after != before {
		t.Errorf("%+v became %+v, %v", before, after, err)
	}
	if open := m.Handles(); open != 0 {
		t.Errorf("%d handles are still open", open)
	}
}

// In a directory like /tmp another user's files with our names, even hostile ones, do not prevent the transfer.
func TestNamesThatAnotherUserHasTaken(t *testing.T) {
	for _, name := range []string{partialName, journalName, ".file.dma-copy-new"} {
		for kind, take := range map[string]func(t *testing.T, at testDir, path string){
			"file": func(t *testing.T, _ testDir, path string) { giveAway(t, path) },
			"symlink": func(t *testing.T, at testDir, path string) {
				must(t, os.Symlink("file", path))
				must(t, os.Lchown(path, otherUser, otherUser))
			},
			"directory": func(t *testing.T, _ testDir, path string) {
				must(t, os.Mkdir(path, 0o700))
				must(t, os.Chown(path, otherUser, otherUser))
			},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				at := sticky(t)
				at.put("file", oldText)
				take(t, at, at.path(name))
				p := mustOpen(t, at, "file", copies["backup"])
				if !strings.Contains(p.Renamed(), name) {
					t.Errorf("%q does not name %s", p.Renamed(), name)
				}
				must(t, write(t, p, newText))
				if kept := p.Keep(); kept != int64(len(newText)) {
					t.Errorf("%d bytes are kept; %q", kept, p.Lost())
				}
				p = mustOpen(t, at, "file", copies["backup"])
				if p.Resumable() != int64(len(newText)) {
					t.Errorf("%d bytes can be resumed", p.Resumable())
				}
				must(t, receive(t, p, newText, wire.DurabilityFull))
				must(t, p.Commit(wire.DurabilityFull))
				at.mustContain(t, "file", newText)
				at.mustContain(t, "file~", oldText)
				at.mustHold(t, name, "file", "file~")
			})
		}
	}
}

// The partial file of another target whose name resembles one with a tag is not used.
func TestOtherPartialIsNoRenamedOne(t *testing.T) {
	at, m := inMemory()
	m.SetDirectory("/there", os.ModeSticky|0o777, 0)
	other := mustOpen(t, at, "file.20261122", copies["new"])
	must(t, write(t, other, newText))
	if kept := other.Keep(); kept != int64(len(newText)) {
		t.Fatalf("%d bytes are kept", kept)
	}
	self := m.Self()
	m.SetSelf(disk.Self{UID: otherUser})
	at.put(partialName, "another's")
	m.SetSelf(self)
	p := mustOpen(t, at, "file", copies["new"])
	if p.Renamed() == "" {
		t.Error("the partial file has its usual name")
	}
	p.Discard()
	other = mustOpen(t, at, "file.20261122", copies["new"])
	defer other.Discard()
	if other.Resumable() != int64(len(newText)) {
		t.Errorf("%d bytes of the other target can be resumed", other.Resumable())
	}
}

// In other directories such files are refused; the user can inspect and remove them.
func TestNamesThatAreTakenElsewhere(t *testing.T) {
	at, m := inMemory()
	m.SetSelf(disk.Self{UID: otherUser})
	at.put(partialName, "another's")
	m.SetSelf(disk.Self{UID: 1000})
	_, err := disk.OpenPartial(at.fs, at.path("file"), copies["new"])
	mustFail(t, err, disk.ErrTarget, "belongs to user")
	m.SetDirectory("/there", os.ModeSticky|0o777, 0)
	p := mustOpen(t, at, "file", copies["new"])
	must(t, receive(t, p, newText, wire.DurabilityNone))
	must(t, p.Commit(wire.DurabilityNone))
	at.mustHold(t, partialName, "file")
	at.mustContain(t, partialName, "another's")
}
