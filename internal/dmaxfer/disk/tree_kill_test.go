package disk_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// fillVariable makes the test binary a process that fills the tree named by the variable until it is killed.
const fillVariable = "DMA_COPY_TEST_FILL"

const (
	killedFiles  = 100
	killedRounds = 5 // different contents of a file
)

// killedText returns the content of a file in a round.
func killedText(file, round int) string {
	return text(round%killedRounds, 1+file*97+round%killedRounds)
}

// fill receives the same files again and again.
func fill(path string) {
	tree, err := disk.OpenTree(disk.OS, path, disk.TreeOptions{Overwrite: true, Preserve: allTimes})
	fmt.Println("filling", err)
	if err != nil {
		return
	}
	for round := 0; ; round++ {
		if err := fillRound(tree.Root(), round); err != nil {
			fmt.Println(err)
			return
		}
	}
}

func fillRound(root *disk.Directory, round int) error {
	dir, err := enterAgain(root, "dir")
	if err != nil {
		return err
	}
	defer dir.Release()
	for i := range killedFiles {
		content := killedText(i, round)
		if err := dir.Put(fmt.Sprint(i), []byte(content), metaOf(content)); err != nil {
			return err
		}
		if err := dir.Symlink("link", fmt.Sprint(i), metaOf("")); err != nil {
			return err
		}
	}
	return dir.Leave(metaOf(""))
}

// enterAgain returns a directory in which entries may be replaced, which is not so in a new one.
func enterAgain(in *disk.Directory, name string) (*disk.Directory, error) {
	dir, _, err := in.Enter(name, false)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if dir, _, err = in.Enter(name, true); err != nil {
		return nil, err
	}
	dir.Release()
	dir, _, err = in.Enter(name, false)
	return dir, err
}

// A killed process leaves whole files, and the next one continues.
func TestKilledTreeIsContinued(t *testing.T) {
	for name, folder := range map[string]string{"disk": t.TempDir(), "tmpfs": shared(t)} {
		t.Run(name, func(t *testing.T) {
			at := onDisk(t, folder)
			for kills := 1; kills <= 10; kills++ {
				killWhileFilling(t, at.path("tree"))
				if state, err := disk.FindTree(at.fs, at.path("tree")); state != disk.TreeUnfinished || err != nil {
					t.Fatalf("the tree is in state %d, %v", state, err)
				}
				if in := inside(at, "tree/dir"); hasEntry(t, inside(at, "tree"), "dir") {
					mustHoldWholeFiles(t, in, kills)
				}
			}
			tree := mustOpenTree(t, at, "tree", disk.TreeOptions{Overwrite: true, Preserve: allTimes})
			must(t, fillRound(tree.Root(), 3))
			must(t, tree.Close(true))
			at.mustHold(t, "tree")
			names := inside(at, "tree/dir").names(t)
			if len(names) != killedFiles+1 {
				t.Errorf("there is %q", names)
			}
		})
	}
}

func hasEntry(t *testing.T, in testDir, name string) bool {
	t.Helper()
	for _, found := range in.names(t) {
		if found == name {
			return true
		}
	}
	return false
}

// killWhileFilling kills a process that fills a tree, after a random time.
func killWhileFilling(t *testing.T, path string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), fillVariable+"="+path)
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	must(t, err)
	if line != "filling <nil>\n" {
		t.Fatalf("the process says %q", line)
	}
	time.Sleep(time.Duration(rand.IntN(30_000)) * time.Microsecond)
	must(t, command.Process.Kill())
	_, _ = io.Copy(io.Discard, output) // until the process has ended
	if err := command.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
}

// mustHoldWholeFiles checks that every file has the content of one round. Each kill may leave the temporary name of an
// entry that was about to replace another one.
func mustHoldWholeFiles(t *testing.T, in testDir, kills int) {
	t.Helper()
	for i := range killedFiles {
		got, found := in.get(fmt.Sprint(i))
		whole := !found
		for round := range killedRounds {
			whole = whole || got == killedText(i, round)
		}
		if !whole {
			t.Errorf("file %d has %d bytes that are not whole", i, len(got))
		}
	}
	temporary := 0
	for _, name := range in.names(t) {
		if disk.IsReserved(name) {
			temporary++
		}
	}
	if temporary > kills {
		t.Errorf("%d temporary names are left", temporary)
	}
}
