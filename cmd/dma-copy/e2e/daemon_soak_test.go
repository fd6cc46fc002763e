package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

var daemonSoakCommands = flag.Int("soak.commands", 64, "how many commands TestDaemonSoak runs")

const (
	soakClients = 16 // commands at the same time

	// mappingGrowth and threadGrowth are what Go may add until both stay constant.
	mappingGrowth = 64
	threadGrowth  = 16
)

// TestDaemonSoak runs many commands against one daemon, 16 at a time: copies of files of random sizes and of trees in
// both directions, requests that are refused, and commands that are killed. At the end the daemon holds what it held
// after the first of them, and the directories contain nothing else.
func TestDaemonSoak(t *testing.T) {
	t.Parallel()
	s := &daemonSoak{daemonFixture: newDaemonFixture(t, "dpu"), seed: rand.Uint64()}
	t.Logf("seed %d", s.seed)
	d := s.serve("")
	s.daemon = d
	s.run(max(4*soakClients, *daemonSoakCommands/10))
	before := d.resources()
	started, bytes := time.Now(), s.bytes.Load()
	s.run(*daemonSoakCommands)
	t.Logf("%d commands in %s, %s", *daemonSoakCommands, time.Since(started).Round(time.Second),
		quantity.Bytes(uint64(s.bytes.Load()-bytes)))
	d.expectResources(before)
	now := d.resources()
	t.Logf("the daemon held %+v, and now %+v", before, now)
	if now.threads > before.threads+threadGrowth || now.mappings > before.mappings+mappingGrowth ||
		now.resident > before.resident+memoryGrowth && !raceDetector {
		t.Errorf("the daemon has grown from\n%+v to\n%+v", before, now)
	}
	for _, root := range []string{s.share(), s.local()} {
		if left := namesIn(t, root); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
	d.stop()
}

// daemonSoak is a daemon and what its clients have in common.
type daemonSoak struct {
	*daemonFixture
	daemon daemon
	seed   uint64
	count  atomic.Int64 // of commands so far
	bytes  atomic.Int64 // copied in files
}

// run runs a number of commands.
func (s *daemonSoak) run(commands int) {
	s.t.Helper()
	var clients sync.WaitGroup
	last := s.count.Load() + int64(commands)
	for range soakClients {
		clients.Go(func() {
			for n := s.count.Add(1); n <= last && !s.t.Failed(); n = s.count.Add(1) {
				c := soakClient{s, rand.New(rand.NewPCG(s.seed, uint64(n))), fmt.Sprint(n)}
				c.run()
			}
		})
	}
	clients.Wait()
	s.count.Store(last)
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// soakClient is one command. What it copies has a name of its own.
type soakClient struct {
	*daemonSoak
	random *rand.Rand
	name   string
}

func (c soakClient) run() {
	here, there := filepath.Join(c.commands(), c.name), ":files/"+c.name
	switch c.random.IntN(10) {
	case 0, 1, 2:
		c.createSource(c.local(c.name))
		c.expectCopy("push", here, there)
	case 3, 4, 5:
		c.createSource(c.share(c.name))
		c.expectCopy("pull", there, here)
	case 6:
		c.createTree(c.local(c.name))
		c.expectCopy("sync --delete=force", here, there)
	case 7:
		c.createTree(c.share(c.name))
		c.expectCopy("pull", there, here)
	case 8:
		c.expectRefused()
	case 9:
		c.kill(here, there)
	}
	for _, path := range []string{c.local(c.name), c.share(c.name)} {
		if err := os.RemoveAll(path); err != nil {
			c.t.Error(err)
		}
	}
}

// createSource makes a file. Of four files three have at most one chunk.
func (c soakClient) createSource(path string) {
	size := c.random.Int64N(soakChunk)
	if c.random.IntN(4) == 0 {
		size = c.random.Int64N(soakSize)
	}
	c.bytes.Add(size)
	if err := writeRandomFile(path, path, size); err != nil {
		c.t.Error(err)
	}
}

func (c soakClient) createTree(path string) {
	if err := filetree.New(filetree.Source, 1+c.random.IntN(20)).Write(c.t.Context(), path); err != nil {
		c.t.Error(err)
	}
}

// expectCopy makes a copy that has to succeed.
func (c soakClient) expectCopy(verb, source, target string) {
	run := c.command(strings.Join([]string{verb, "--quiet", source, target}, " "))
	run.expectExit(exitOK)
	if err := sameTree.Compare(c.t.Context(), c.local(c.name), c.share(c.name)); err != nil {
		c.t.Errorf("%s: %v", verb, err)
	}
}

// expectRefused makes a request that the daemon refuses.
func (c soakClient) expectRefused() {
	refused := []struct {
		line string
		code int
	}{
		{"pull :files/missing " + c.commands() + "/missing", exitSource},
		{"pull :other/file " + c.commands() + "/missing", exitRefused},
		{"ls :files/missing", exitSource},
	}
	request := refused[c.random.IntN(len(refused))]
	c.command(request.line).expectExit(request.code)
}

// kill kills a push after a random time, which may be too late, and repeats it.
func (c soakClient) kill(here, there string) {
	c.createSource(c.local(c.name))
	killed := c.command("push --quiet " + here + " " + there)
	sleepFraction(100*time.Millisecond, c.random.Float64())
	killed.kill()
	killed.expectExitIn(exitKilled, exitOK)
	c.daemon.waitForStatus("done with "+c.name, func(s daemonStatus) bool { // which has locked its target
		_, runs := s.movedOf(c.name)
		return !runs
	})
	c.expectCopy("push", here, there)
}
