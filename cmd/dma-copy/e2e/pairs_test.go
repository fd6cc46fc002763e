package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// manyPairs is how many hosts and DPUs share one host function in TestManyPairs.
const manyPairs = 10

// TestManyPairs starts ten hosts and ten DPU sides for one host function. Only one DPU side can serve it at a time, and
// it serves one host: all copies complete, one after the other, in any order of starting.
func TestManyPairs(t *testing.T) {
	t.Parallel()
	for protocol, flags := range map[string]string{"native": "", "reference": referenceOnly} {
		for order, start := range map[string]func(host, dpu func(i int)){
			"hosts first": func(host, dpu func(i int)) { each(host); each(dpu) },
			"DPUs first":  func(host, dpu func(i int)) { each(dpu); each(host) },
			"in turn":     func(host, dpu func(i int)) { each(func(i int) { host(i); dpu(i) }) },
		} {
			t.Run(protocol+"/"+order, func(t *testing.T) {
				s := newStage(t)
				var sides []side
				start(
					func(i int) { sides = append(sides, s.startPaired("host", i, flags)) },
					func(i int) { sides = append(sides, s.startPaired("dpu", i, flags)) },
				)
				for _, side := range sides {
					side.ends(0)
				}
				if sent, received := s.contents("host"), s.contents("dpu"); !slices.Equal(sent, received) {
					t.Errorf("%d files were sent, and %d received, which are not the same", len(sent), len(received))
				}
				s.clean()
			})
		}
	}
}

func each(do func(i int)) {
	for i := range manyPairs {
		do(i)
	}
}

// startPaired starts a host that sends a file of its own, or a DPU that receives one, and returns when it looks for the
// other side.
func (s *stage) startPaired(name string, i int, flags string) side {
	s.t.Helper()
	file := fmt.Sprint(name, "/", i)
	line := "dma-copy -p b1:00.1 -f " + file
	if name == "host" {
		if err := writeNoise(filepath.Join(s.folder, file), file, 10_000); err != nil {
			s.t.Fatal(err)
		}
	} else {
		line = "dma-copy -p 03:00.1 -r b1:00.1 -f " + file
	}
	started := s.start(file, line+" -l INFO --wait 10m "+flags)
	if err := started.says(regexp.MustCompile("waiting for the peer")); err != nil {
		s.t.Fatal(err)
	}
	return started
}

// contents are those of all files on one side, in order.
func (s *stage) contents(where string) []string {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.folder, where))
	if err != nil {
		s.t.Fatal(err)
	}
	var contents []string
	for _, entry := range entries {
		contents = append(contents, readFile(s.t, s.folder, where, entry.Name()))
	}
	slices.Sort(contents)
	return contents
}
