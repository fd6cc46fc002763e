package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// unhurried makes a copy of slowSize bytes take two seconds, in pieces that are small beside it.
const unhurried = "--chunk 64KiB --depth 2 --bwlimit 2M -l INFO "

// TestTwoReceiversOfOneName starts two copies to one name at once. One of them wins, whole; the other is told on both sides that the file is
// being received.
func TestTwoReceiversOfOneName(t *testing.T) {
	t.Parallel()
	for _, sender := range []string{"host", "dpu"} {
		t.Run(sender+"s_send", func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.put(sender, slowSize)
			must(t, writeNoise(s.path(sender)+"2", "another", slowSize-1))
			names := map[string]string{sender: sender + "/file2", otherThan(sender): otherThan(sender) + "/file"}
			pairs := [][2]side{
				{s.start("host 1", ourHost), s.start("DPU 1", ourDPU+unhurried)},
				{
					s.start("host 2", "dma-copy -p b1:00.0 -f "+names["host"]),
					s.start("DPU 2", "dma-copy -p 03:00.0 -r b1:00.0 -f "+names["dpu"]+" "+unhurried),
				},
			}
			s.oneWins(pairs, [2]string{s.path(sender), s.path(sender) + "2"}, s.path(otherThan(sender)))
		})
	}
}

func (s *stage) oneWins(pairs [][2]side, sources [2]string, target string) {
	s.t.Helper()
	winners := 0
	for i, pair := range pairs {
		<-pair[0].ended
		if exitCodeOf(pair[0].command.ProcessState) == exitOK {
			winners++
			pair[1].ends(exitOK)
			if err := compareFiles(sources[i], target); err != nil {
				s.t.Error(err)
			}
			continue
		}
		for _, one := range pair {
			one.ends(exitTarget)
			if said := one.stderr.String(); !strings.Contains(said, "is being received by another process") {
				s.t.Errorf("%s said\n%s", one.name, said)
			}
		}
	}
	if winners != 1 {
		s.t.Errorf("%d of two copies to one name succeeded", winners)
	}
	s.clean()
}

// changes are what another program may do to a source.
var changes = map[string]func(path string) error{
	"truncated": func(path string) error { return os.Truncate(path, slowSize/2) },
	"appended":  func(path string) error { return writeInto(path, slowSize, "more") },
	"rewritten": func(path string) error { return writeInto(path, slowSize/2, "other") },
	"rewritten_with_its_time_restored": func(path string) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return errors.Join(writeInto(path, 0, "other"), os.Chtimes(path, info.ModTime(), info.ModTime()))
	},
	"replaced": func(path string) error {
		return errors.Join(writeNoise(path+".new", "other", slowSize), os.Rename(path+".new", path))
	},
	"removed": os.Remove,
}

func writeInto(path string, offset int64, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte(text), offset)
	return errors.Join(err, file.Close())
}

// TestSourceChangesAtAnyMoment changes the source at a random moment of a copy. Both sides end with 10, and the receiver keeps nothing: neither
// under the final name, where the old file stays, nor to go on with.
func TestSourceChangesAtAnyMoment(t *testing.T) {
	t.Parallel()
	for name, change := range changes {
		for _, sender := range []string{"host", "dpu"} {
			t.Run(fmt.Sprintf("%s_%s_sends", name, sender), func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.put(sender, slowSize)
				receiver := otherThan(sender)
				must(t, writeNoise(s.path(receiver), "old", 1000))
				must(t, writeNoise(s.path(receiver)+".old", "old", 1000))
				sides := s.copyingWith(map[string]string{receiver: "--overwrite"})
				moment := rand.N(1500 * time.Millisecond)
				time.Sleep(moment)
				must(t, change(s.path(sender)))
				for _, one := range sides {
					one.ends(exitSourceChanged)
				}
				must(t, compareFiles(s.path(receiver)+".old", s.path(receiver)))
				s.clean()
				if t.Failed() {
					t.Logf("it was changed %s after the copy had begun", moment)
				}
			})
		}
	}
}

// TestTargetDirectoryVanishes removes the receiver's directory in the middle of a copy, which ends with 5 on both sides.
func TestTargetDirectoryVanishes(t *testing.T) {
	t.Parallel()
	for _, sender := range []string{"host", "dpu"} {
		t.Run(sender+"_sends", func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.put(sender, slowSize)
			sides := s.copyingWith(nil)
			folder := filepath.Dir(s.path(otherThan(sender)))
			must(t, os.RemoveAll(folder))
			for _, one := range sides {
				one.ends(exitTarget)
			}
			if _, err := os.Lstat(folder); err == nil {
				t.Error("the directory is back")
			}
		})
	}
}

// notDense makes a source of noise with a hole in it, for which no room is made beforehand: that there is none is found in the middle.
func (s *stage) notDense(where string, size int64) {
	s.t.Helper()
	s.put(where, size)
	must(s.t, os.Truncate(s.path(where), size+1<<20))
}

// TestDiskFullInTheMiddle lets a receiver find that there is no room when it has written some of the file.
func TestDiskFullInTheMiddle(t *testing.T) {
	if may, err := canMount(); err != nil || !may {
		t.Skipf("mounting a small disk takes CAP_SYS_ADMIN (%v)", err)
	}
	for _, sender := range []string{"host", "dpu"} {
		t.Run(sender+"_sends", func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.notDense(sender, 6<<20)
			folder := filepath.Dir(s.path(otherThan(sender)))
			must(t, unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=0755,size=4m"))
			t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
			s.noRoom(sender, "", "no space left on device")
		})
	}
}

// TestNoInodesLeft is of a receiver on a disk that has space, and no inode for the partial file or for its journal.
func TestNoInodesLeft(t *testing.T) {
	if may, err := canMount(); err != nil || !may {
		t.Skipf("mounting a small disk takes CAP_SYS_ADMIN (%v)", err)
	}
	for _, sender := range []string{"host", "dpu"} {
		for inodes := 1; inodes <= 2; inodes++ { // one is the directory's
			t.Run(fmt.Sprintf("%s_sends_%d", sender, inodes), func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				s.put(sender, 1000)
				folder := filepath.Dir(s.path(otherThan(sender)))
				must(t, unix.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("mode=0755,size=4m,nr_inodes=%d", inodes)))
				t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
				for _, one := range []side{s.start("host", ourHost), s.start("dpu", ourDPU)} {
					one.ends(exitTarget)
					if said := one.stderr.String(); !strings.Contains(said, "no inode may be left (df -i)") {
						t.Errorf("the %s does not say that there are no inodes:\n%s", one.name, said)
					}
				}
				mustHoldOnly(t, folder)
			})
		}
	}
}

// TestFileSizeLimit is of a receiver that may not make files of that size.
func TestFileSizeLimit(t *testing.T) {
	for _, sender := range []string{"host", "dpu"} {
		t.Run(sender+"_sends", func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.notDense(sender, 6<<20)
			limited := "ulimit -f 6144 || exit\nexec \"$@\"\n" // of 512 bytes; 1024 in some shells
			must(t, os.WriteFile(filepath.Join(s.folder, "limited"), []byte(limited), 0o644))
			s.noRoom(sender, "/bin/sh limited ", "file too large")
		})
	}
}

// noRoom expects both sides to end with 5, the old file to stay, and nothing else but what can be gone on with.
func (s *stage) noRoom(sender, prefix, reason string) {
	s.t.Helper()
	receiver := otherThan(sender)
	must(s.t, writeNoise(s.path(receiver), "old", 1000))
	must(s.t, writeNoise(filepath.Join(s.folder, "old"), "old", 1000))
	lines := map[string]string{"host": ourHost, "dpu": ourDPU + "--chunk 64KiB --depth 2 "}
	lines[receiver] = prefix + lines[receiver] + "--overwrite"
	sides := map[string]side{"host": s.start("host", lines["host"]), "dpu": s.start("dpu", lines["dpu"])}
	for _, one := range sides {
		one.ends(exitTarget)
		if said := one.stderr.String(); !strings.Contains(said, reason) {
			s.t.Errorf("the %s does not say %q:\n%s", one.name, reason, said)
		}
	}
	must(s.t, compareFiles(filepath.Join(s.folder, "old"), s.path(receiver)))
	mustHoldOnly(s.t, filepath.Dir(s.path(receiver)), "file", partOfFile, journalOfFile)
}
