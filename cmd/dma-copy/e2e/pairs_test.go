package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// pairCount is how many hosts and DPU sides share one host function in TestManyPairs.
const pairCount = 10

// TestManyPairs starts ten hosts and ten DPU sides for one host function. Only one DPU side can serve it at a time, and
// it serves one host: all transfers complete, one after the other, in any order of starting.
func TestManyPairs(t *testing.T) {
	t.Parallel()
	orders := []pairOrder{
		{"hosts first", slices.Concat(numbered("host"), numbered("dpu"))},
		{"DPUs first", slices.Concat(numbered("dpu"), numbered("host"))},
		{"alternating", alternating()},
	}
	for protocol, flags := range map[string]string{"native": "", "reference": referenceFlag} {
		t.Run(protocol, func(t *testing.T) {
			for _, order := range byChance(orders) {
				t.Run(order.name, func(t *testing.T) { pairTest{flags}.test(t, order.sides) })
			}
		})
	}
}

// numberedSide is one of many processes of a side.
type numberedSide struct {
	side   string
	number int
}

// pairOrder is an order in which the processes are started.
type pairOrder struct {
	name  string
	sides []numberedSide
}

func numbered(side string) (sides []numberedSide) {
	for i := range pairCount {
		sides = append(sides, numberedSide{side, i})
	}
	return sides
}

func alternating() (sides []numberedSide) {
	for i := range pairCount {
		sides = append(sides, numberedSide{"host", i}, numberedSide{"dpu", i})
	}
	return sides
}

type pairTest struct{ flags string }

func (p pairTest) test(t *testing.T, order []numberedSide) {
	f := newFixture(t)
	var sides []side
	for _, one := range order {
		sides = append(sides, p.start(f, one))
	}
	for _, side := range sides {
		side.expectExit(exitOK)
	}
	if sent, received := f.contents("host"), f.contents("dpu"); !slices.Equal(sent, received) {
		t.Errorf("the %d files that were sent differ from the %d received", len(sent), len(received))
	}
	f.expectClean()
}

// start starts a host that sends a file of its own, or a DPU side that receives one, and returns when it waits for its
// peer.
func (p pairTest) start(f *fixture, one numberedSide) side {
	f.t.Helper()
	file := fmt.Sprintf("%s/%d", one.side, one.number)
	line := "dma-copy -p 03:00.1 -r b1:00.1 -f " + file
	if one.side == "host" {
		must(f.t, writeRandomFile(filepath.Join(f.dir, file), file, 10_000))
		line = "dma-copy -p b1:00.1 -f " + file
	}
	started := f.start(file, line+" -l INFO --wait 10m "+p.flags)
	started.waitForLog(logWaiting)
	return started
}

// contents returns the contents of all files of a side, sorted.
func (f *fixture) contents(side string) []string {
	f.t.Helper()
	files, err := os.ReadDir(filepath.Join(f.dir, side))
	must(f.t, err)
	var contents []string
	for _, file := range files {
		contents = append(contents, readFile(f.t, f.dir, side, file.Name()))
	}
	slices.Sort(contents)
	return contents
}
