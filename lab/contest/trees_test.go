package contest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// standIn is a program that copies a tree as a pair of dma-copy does: each side is told a path, the side that has the
// directory sends it, and the receiver waits for the path of the source in the runtime directory.
const standIn = `#!/bin/sh
set -e
while [ $# -gt 0 ]; do
	case $1 in
	-f) file=$2 ;;
	--overwrite) overwrite=yes ;;
	esac
	shift
done
meeting=$DMA_COPY_SOFT_DIR/meeting
event() { echo "{\"type\":\"$1\",\"time\":\"$(date -u +%Y-%m-%dT%H:%M:%S.%NZ)\",\"elapsed_seconds\":0.001}"; }
event hello
event plan
if [ -d "$file" ] && [ -z "$overwrite" ]; then
	echo "$file" > "$meeting.new"
	mv "$meeting.new" "$meeting"
	while [ -e "$meeting" ]; do sleep 0.01; done
else
	until [ -e "$meeting" ]; do sleep 0.01; done
	read -r source < "$meeting"
	[ -n "$overwrite" ] || cp -a "$source" "$file"
	FLAW
	rm "$meeting"
fi
event summary
`

// measureStandIn measures trees of 20 files with a stand-in that does something more, a shell command, after it has
// copied.
func measureStandIn(t *testing.T, flaw string, shapes ...filetree.Shape) *Record {
	t.Helper()
	program := filepath.Join(t.TempDir(), "dma-copy")
	if err := os.WriteFile(program, []byte(strings.ReplaceAll(standIn, "FLAW", flaw)), 0o700); err != nil {
		t.Fatal(err)
	}
	s := testSettings(t.TempDir())
	s.Directions, s.Tools = []bench.Direction{bench.HostToDPU, bench.DPUToHost}, ToolNames
	p := Plan{
		Trees:    &TreePlan{Shapes: shapes, Files: 20, CopySettings: s},
		Settings: softDevice(2), Program: program,
	}
	record, err := Measure(t.Context(), p)
	if errors.Is(err, doca.ErrNoCgo) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(s.Directory); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	return record
}

// find returns the result of one candidate with the tree "source".
func find(t *testing.T, r *Record, contender string, direction bench.Direction, repeated bool) TreeResult {
	t.Helper()
	for _, result := range r.Trees.Results {
		if result.Contender == contender && result.Direction == direction && result.Repeated == repeated &&
			result.Shape == filetree.Source {
			return result
		}
	}
	t.Fatalf("no result of %s %s, repeated %t", contender, direction, repeated)
	return TreeResult{}
}

func TestTreesAreMeasured(t *testing.T) {
	r := measureStandIn(t, ":", filetree.Source, filetree.Deep)
	if failed, _ := r.Failed(); failed > 0 {
		t.Fatalf("%+v", r.Trees.Results)
	}
	if len(r.Trees.Shapes) != 2 || r.Trees.Shapes[0].Files != 20 || r.Trees.Shapes[1].Shape != filetree.Deep {
		t.Errorf("shapes %+v", r.Trees.Shapes)
	}
	for _, direction := range []bench.Direction{bench.HostToDPU, bench.DPUToHost} {
		first, again := find(t, r, programName, direction, false), find(t, r, programName, direction, true)
		if first.Ratio <= 0 || first.FilesPerSecond <= 0 || first.CPU <= 0 || len(first.Seconds.Runs) != 2 {
			t.Errorf("%+v", first)
		}
		if again.Ratio != 0 || again.FilesPerSecond <= 0 {
			t.Errorf("again: %+v", again)
		}
		// The DPU's command comes first.
		receiver := map[bench.Direction]int{bench.HostToDPU: 0, bench.DPUToHost: 1}[direction]
		for i, argv := range again.Commands {
			if overwrites := strings.Contains(strings.Join(argv, " "), " --overwrite "); overwrites != (i == receiver) {
				t.Errorf("%s: command %d is %q", direction, i, argv)
			}
		}
	}
}

// What rsync repeats is compared with what others repeat, cp with first copies only.
func TestTreeRatios(t *testing.T) {
	r := sampleTrees().Results
	for i, want := range [][4]float64{ // whole and transfer alone, to cp and to rsync
		{1, 0, 2, 0}, {0.5, 0, 1, 0}, {0, 0, 1, 0}, {0.8, 0, 1.6, 0}, {2, 4, 4, 8}, {0, 0, 2, 4}, {1, 2, 2, 4}, {},
	} {
		if got := [4]float64{r[i].Ratio, r[i].CopyRatio, r[i].RsyncRatio, r[i].RsyncCopyRatio}; got != want {
			t.Errorf("%s, repeated %t: ratios %v, want %v", r[i].Contender, r[i].Repeated, got, want)
		}
	}
}

// A candidate whose copy is wrong fails with what is wrong, and the others continue.
func TestWrongCopiesOfTrees(t *testing.T) {
	for _, tc := range []struct{ flaw, first, again string }{
		{`rm "$(find "$file" -type f | head -n 1)"`, "the tree has 19 files", "the tree has 1"},
		{`touch -h "$(find "$file" -type l | head -n 1)"`, "was modified at", "was modified at"},
		{`[ -z "$overwrite" ] || for f in $(find "$file" -type f); do cp -p "$f" "$f.2"; mv "$f.2" "$f"; done`,
			"", "20 unchanged files were written again, first "},
		{`echo "dma-copy: DPU: no space" >&2; exit 5`, "dma-copy: exit status 5: DPU: no space",
			"preparing: the first copy: dma-copy: exit status 5: DPU: no space"},
	} {
		r := measureStandIn(t, tc.flaw, filetree.Source)
		for repeated, want := range map[bool]string{false: tc.first, true: tc.again} {
			got := find(t, r, programName, bench.HostToDPU, repeated).Error
			if (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%s, repeated %t: error %q, want %q", tc.flaw, repeated, got, want)
			}
		}
		if cp := find(t, r, toolCp, "", false); cp.Error != "" {
			t.Errorf("cp: %s", cp.Error)
		}
	}
}

// What the tools copy passes the check of what they are said to preserve.
func TestToolsCopyTrees(t *testing.T) {
	w, err := newWorkspace(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree := filetree.New(filetree.Source, 30)
	if err := tree.Write(t.Context(), w.source()); err != nil {
		t.Fatal(err)
	}
	for _, durability := range []string{"none", "full"} {
		g := &treeGroup{conditions: w.newConditions(tree.Bytes), tree: tree, durability: durability}
		g.addTools(findTools(t.Context(), ToolNames, treeTools))
		for _, e := range g.entries {
			outcomes, err := bench.Rounds{Counted: 2}.Measure(t.Context(), []bench.Candidate{e})
			if err != nil || outcomes[0].Err != nil || len(outcomes[0].Runs) != 2 {
				t.Errorf("%s: %+v, error %v", e.result.Contender, outcomes, err)
			}
		}
	}
}

func TestTreesNeedSpace(t *testing.T) {
	w, err := newWorkspace(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plan := TreePlan{Files: 1000, CopySettings: testSettings("")}
	needed := plan.space(filetree.Small)
	if needed.bytes < 4*1000*4096 || needed.inodes != 4*1010 {
		t.Errorf("%+v", needed)
	}
	needed.inodes = 1 << 60
	var system unix.Statfs_t
	if err := unix.Statfs(w.folder, &system); err != nil {
		t.Fatal(err)
	}
	err = w.checkSpace(needed)
	if system.Files == 0 { // a file system without a fixed number of inodes
		if err != nil {
			t.Error(err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), "inodes, but a tree of 1000 files (small) and its copies need") {
		t.Errorf("error %v", err)
	}
}
