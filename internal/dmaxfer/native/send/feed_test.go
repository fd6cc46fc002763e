package send

import (
	"errors"
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role/roletest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/pump"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// slot is the size of a slot in these tests, in bytes.
const slot = 4096

// fed is a feed of the files of a directory in memory, /src, and what it has reported.
type fed struct {
	*feed
	t        *testing.T
	memory   *disktest.Memory
	source   source
	files    map[string]*entry
	failures map[string]error // by path
	buffers  map[*pump.Unit][]byte
}

// newFed walks /src, which must be complete.
func newFed(t *testing.T, memory *disktest.Memory, change func(p *native.Plan)) *fed {
	t.Helper()
	return newFedOn(t, memory, memory, change)
}

// newFedOn is newFed for a file system through which the memory is read.
func newFedOn(t *testing.T, fs disk.FS, memory *disktest.Memory, change func(p *native.Plan)) *fed {
	t.Helper()
	conn, _ := comchtest.NewPair(slot, comchtest.Faultless, comchtest.Faultless)
	params := &role.Params{
		Config: &role.Config{
			Options: role.Options{Side: wire.Host, Progress: &job.Progress{}},
			Conn:    conn, File: &job.LocalFile{FS: fs, Name: "/src", Path: "/src", Directory: true},
		},
		Plan: native.Plan{
			Tree: true, Sender: wire.Host, Chunk: slot, Depth: 4, Digest: digest.CRC32C, Sparse: true,
		},
	}
	if change != nil {
		change(&params.Plan)
	}
	stats := role.NewStats(params)
	stats.Planned(native.Hello{})
	f := &fed{
		t: t, memory: memory, files: make(map[string]*entry), failures: make(map[string]error),
		buffers: make(map[*pump.Unit][]byte),
	}
	f.feed = &feed{
		t: &role.Transfer{Params: params, Stats: stats}, box: pump.NewBatch[pump.Announcement](8, 1), most: 100,
		opening: make(chan struct{}, 1),
		cannotSend: func(e *entry, err error) error {
			if !e.isDecided() {
				f.failures[e.path] = err
			}
			return nil
		},
	}
	f.walk()
	return f
}

func (f *fed) walk() {
	var err error
	f.source, err = openTreeSource(f.feed.t)
	must(f.t, err)
	number := uint32(0)
	for err == nil {
		var entries []sourceEntry
		entries, err = f.source.next(f.t.Context())
		for _, e := range entries {
			must(f.t, e.err)
			e.number = number
			number++
			f.files[e.path] = e.entry
		}
	}
	mustBe(f.t, err, io.EOF)
}

// need queues files.
func (f *fed) need(paths ...string) {
	for _, path := range paths {
		f.feed.add(f.files[path])
	}
}

// next returns the next unit, as a lane has it before it is checked.
func (f *fed) next() *pump.Unit {
	f.t.Helper()
	unit, buffer := &pump.Unit{}, make([]byte, slot)
	must(f.t, f.Next(f.t.Context(), buffer, unit))
	f.buffers[unit] = buffer
	return unit
}

// checked does what a lane does before it announces a unit, and after it has been acknowledged.
func (f *fed) checked(units ...*pump.Unit) {
	f.t.Helper()
	for _, u := range units {
		content := f.buffers[u][:u.Used()]
		for i := range u.Pack.Files {
			file := &u.Pack.Files[i]
			file.Check = digest.Check(f.feed.t.Params.Plan.Digest, pump.ContentOf(file, content))
		}
		if !u.Packed() {
			u.Record.Check = digest.Check(f.feed.t.Params.Plan.Digest, content)
		}
		must(f.t, f.Checked(f.t.Context(), u, content))
		f.Delivered(u)
	}
}

// mustBeIdle fails the test unless the feed has nothing to send yet.
func (f *fed) mustBeIdle() {
	f.t.Helper()
	unit := &pump.Unit{}
	mustBe(f.t, f.Next(f.t.Context(), make([]byte, slot), unit), pump.ErrLater)
}

// mustHaveEnded fails the test unless the ends of these files, which were sent in chunks, have been announced.
func (f *fed) mustHaveEnded(paths ...string) {
	f.t.Helper()
	var got []string
	for _, a := range f.box.Take() {
		for path, o := range f.files {
			if a.End != nil && a.End.Entry == o.number {
				got = append(got, path)
				f.mustBeContent(path, a.End)
			}
		}
	}
	if strings.Join(got, " ") != strings.Join(paths, " ") {
		f.t.Errorf("the ends of %q were announced, want those of %q", got, paths)
	}
}

func (f *fed) mustBeContent(path string, end *pump.End) {
	f.t.Helper()
	text, _ := f.memory.Get("/src/" + path)
	want, _, err := digest.Of(f.t.Context(), f.feed.t.Params.Plan.Digest, strings.NewReader(text))
	must(f.t, err)
	if end.Size != int64(len(text)) || end.Sum != want {
		f.t.Errorf("%s ended with %d bytes, %s, want %d bytes, %s", path, end.Size, end.Sum, len(text), want)
	}
}

// mustHaveFailed fails the test unless exactly this file has failed.
func (f *fed) mustHaveFailed(path string, want error) {
	f.t.Helper()
	if len(f.failures) != 1 {
		f.t.Errorf("failed: %v, want %s", f.failures, path)
	}
	mustBe(f.t, f.failures[path], want)
}

// mustClose decides all files, as the sender does in the end, and fails the test unless everything is closed.
func (f *fed) mustClose() {
	f.t.Helper()
	for _, o := range f.files {
		o.decide()
	}
	f.source.close()
	f.mustBeOpen(0)
}

// mustBeOpen fails the test unless so many files and directories are open.
func (f *fed) mustBeOpen(want int) {
	f.t.Helper()
	if got := f.memory.Handles(); got != want {
		f.t.Errorf("%d files and directories are open, want %d", got, want)
	}
}

// newSource returns a file system with these files in /src.
func newSource(files map[string]string) *disktest.Memory {
	memory := disktest.NewMemory("/", "/src")
	for name, text := range files {
		memory.Put("/src/"+name, text)
	}
	return memory
}

// Whole files follow each other in a slot, each at the start of a cache line, in the order in which they are needed.
func TestSmallFilesShareASlot(t *testing.T) {
	f := newFed(t, newSource(map[string]string{
		"a": roletest.Repeated("a", 100), "b": "", "c": roletest.Repeated("c", 64), "d": roletest.Repeated("d", 1),
	}), nil)
	f.need("d", "a", "b", "c")
	unit := f.next()
	positions := []uint32{0, 64, 192, 192}
	for i, path := range []string{"d", "a", "b", "c"} {
		file := unit.Pack.Files[i]
		text, _ := f.memory.Get("/src/" + path)
		if file.Entry != f.files[path].number || file.Position != positions[i] || int(file.Length) != len(text) {
			t.Errorf("%s: %+v, want position %d", path, file, positions[i])
		}
		if got := string(pump.ContentOf(&file, f.buffers[unit])); got != text {
			t.Errorf("%s has %d other bytes", path, len(got))
		}
	}
	f.checked(unit)
	f.mustBeIdle()
	f.mustClose()
}

// A slot has as many files as fit, and as a message describes.
func TestSlotsAreFilled(t *testing.T) {
	files := map[string]string{
		"a": roletest.Repeated("a", slot), "b": roletest.Repeated("b", slot-64), "c": roletest.Repeated("c", 64),
		"d": "", "e": "e", "f": "f", "g": "g",
	}
	f := newFed(t, newSource(files), nil)
	f.most = 3
	f.need("a", "b", "c", "d", "e", "f", "g")
	for _, want := range []int{1, 3, 3} { // a; b, c, d; e, f, g
		if got := len(f.next().Pack.Files); got != want {
			t.Errorf("%d files in a slot, want %d", got, want)
		}
	}
	f.mustBeIdle()
	f.mustClose()
}

// A large file is sent in chunks between small ones, and its end is announced once, after its last chunk.
func TestLargeFileIsSentInChunks(t *testing.T) {
	f := newFed(t, newSource(map[string]string{"a": "a", "b": roletest.Repeated("bcd", 2*slot+7), "c": "c"}), nil)
	f.need("a", "b", "c")
	if unit := f.next(); len(unit.Pack.Files) != 1 {
		t.Fatalf("%+v, want the first file", unit)
	}
	for i, length := range []uint64{slot, slot, 7} {
		f.mustHaveEnded()
		unit := f.next()
		if r := unit.Record; unit.Packed() || r.Offset != uint64(i)*slot || r.Length != length {
			t.Fatalf("%+v, want %d bytes of chunk %d", unit, length, i)
		}
		f.checked(unit)
	}
	f.mustHaveEnded("b")
	if unit := f.next(); len(unit.Pack.Files) != 1 {
		t.Fatalf("%+v, want the last file", unit)
	}
	f.finish()
	mustBe(t, f.Next(f.t.Context(), make([]byte, slot), &pump.Unit{}), io.EOF)
	f.mustHaveEnded()
	f.mustClose()
}

// The end of a file that several lanes read is announced when the last chunk has been checked, whichever that is, and
// the file is closed then.
func TestLanesEndAFileTogether(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		f := newFed(t, newSource(map[string]string{"a": roletest.Repeated("abc", 3*slot)}), nil)
		f.need("a")
		units := []*pump.Unit{f.next(), f.next(), f.next()}
		idle := f.memory.Handles() - 1
		f.checked(units[order[0]], units[order[1]])
		f.mustHaveEnded()
		f.checked(units[order[2]])
		f.mustHaveEnded("a")
		f.mustBeOpen(idle)
		f.mustBeIdle()
		f.mustHaveEnded()
		f.mustClose()
	}
}

// What has been decided meanwhile is neither read nor sent.
func TestDecidedFilesAreLeftOut(t *testing.T) {
	f := newFed(t, newSource(map[string]string{
		"a": "a", "b": "b", "c": roletest.Repeated("c", 3*slot), "d": roletest.Repeated("d", 3*slot), "e": "e",
	}), nil)
	f.need("a", "b", "c", "d", "e")
	f.files["a"].decide()
	f.files["c"].decide()
	if unit := f.next(); len(unit.Pack.Files) != 1 || unit.Pack.Files[0].Entry != f.files["b"].number {
		t.Errorf("%+v, want the second file", unit)
	}
	begun := f.next()
	if begun.Ref.(*entry) != f.files["d"] {
		t.Errorf("%+v, want the large file that is not decided", begun)
	}
	f.files["d"].decide()
	if unit := f.next(); len(unit.Pack.Files) != 1 || unit.Pack.Files[0].Entry != f.files["e"].number {
		t.Errorf("%+v, want the last file", unit)
	}
	f.checked(begun)
	f.mustHaveEnded()
	if len(f.failures) != 0 {
		t.Errorf("failed: %v", f.failures)
	}
	f.mustClose()
}

// Entries that are decided before their unit is announced are withdrawn from it. A unit of which nothing is left is not
// announced, and its slot is vacant again.
func TestDecidedFilesAreWithdrawn(t *testing.T) {
	f := newFed(t, newSource(map[string]string{
		"a": "a", "b": roletest.Repeated("b", 100), "c": "c", "d": roletest.Repeated("d", 3*slot),
	}), nil)
	f.need("a", "b", "c", "d")
	pack, chunk := f.next(), f.next()
	f.checked(pack, chunk)
	if withdraw(pack) || withdraw(chunk) || len(pack.Pack.Files) != 3 {
		t.Errorf("undecided files were withdrawn: %+v", pack)
	}
	f.files["b"].decide()
	if withdraw(pack) || len(pack.Pack.Files) != 2 || pack.Pack.Files[1].Entry != f.files["c"].number {
		t.Errorf("%+v, want the first and the third file", pack.Pack)
	}
	if entries := pack.Ref.([]*entry); len(entries) != 2 || entries[1] != f.files["c"] {
		t.Errorf("%d entries of 2 files", len(entries))
	}
	f.files["a"].decide()
	f.files["c"].decide()
	f.files["d"].decide()
	if !withdraw(pack) || !withdraw(chunk) {
		t.Error("units of decided files are not empty")
	}
	f.Delivered(pack) // which the lane calls for a vacant slot
	f.Delivered(chunk)
	f.mustClose()
}

// changedFiles are the ways in which a file changes between the walk and its reading.
var changedFiles = map[string]struct {
	change func(m *disktest.Memory)
	want   error
}{
	"written": {func(m *disktest.Memory) { m.Write("/src/b", "other", 0) }, disk.ErrSourceChanged},
	"grown":   {func(m *disktest.Memory) { m.Write("/src/b", "more", 3*slot) }, disk.ErrSourceChanged},
	"replaced": {func(m *disktest.Memory) {
		text, _ := m.Get("/src/b")
		m.Put("/src/b", text)
	}, disk.ErrSourceChanged},
	"truncated": {func(m *disktest.Memory) { truncate(m, "/src/b") }, disk.ErrSourceChanged},
	"removed":   {func(m *disktest.Memory) { removeFile(m, "/src/b") }, disk.ErrSourceChanged},
}

func truncate(m *disktest.Memory, path string) {
	dir, _ := m.OpenDir("/src")
	file, _ := dir.Open(strings.TrimPrefix(path, "/src/"), false)
	_ = errors.Join(file.Truncate(0), file.Close(), dir.Close())
}

func removeFile(m *disktest.Memory, path string) {
	dir, _ := m.OpenDir("/src")
	_ = errors.Join(dir.Remove(strings.TrimPrefix(path, "/src/")), dir.Close())
}

// A file that changes between the walk and its reading fails, and nothing else does.
func TestFileThatChangesAfterTheWalk(t *testing.T) {
	for name, c := range changedFiles {
		for _, size := range []int{10, 2 * slot} {
			f := newFed(t, newSource(map[string]string{"a": "a", "b": roletest.Repeated("b", size), "c": "c"}), nil)
			c.change(f.memory)
			f.need("b", "a", "c")
			unit := f.next()
			if len(unit.Pack.Files) != 2 || unit.Pack.Files[0].Position != 0 {
				t.Errorf("%s, %d bytes: %+v, want the two other files", name, size, unit)
			}
			f.checked(unit)
			f.mustHaveFailed("b", c.want)
			f.mustHaveEnded()
			f.mustBeIdle()
			f.mustClose()
		}
	}
}

// A file that changes while it is read in chunks fails at its end at the latest.
func TestFileThatChangesWhileItIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *disktest.Memory)
		units  int // that are read after the change
	}{
		"written":   {func(m *disktest.Memory) { m.Write("/src/b", "other", 0) }, 2},
		"truncated": {func(m *disktest.Memory) { truncate(m, "/src/b") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFed(t, newSource(map[string]string{"b": roletest.Repeated("bcd", 3*slot), "c": "c"}), nil)
			f.need("b", "c")
			f.checked(f.next())
			c.change(f.memory)
			for range c.units {
				f.checked(f.next())
			}
			if unit := f.next(); !unit.Packed() {
				t.Errorf("%+v, want the other file", unit)
			}
			f.mustHaveFailed("b", disk.ErrSourceChanged)
			f.mustHaveEnded()
			f.mustClose()
		})
	}
}

// A file that may change is sent as it is found, if it still has the announced size and identity when it is opened.
func TestFileThatMayChange(t *testing.T) {
	allow := func(p *native.Plan) { p.AllowChanging = true }
	f := newFed(t, newSource(map[string]string{"b": roletest.Repeated("b", 2*slot)}), allow)
	f.need("b")
	first := f.next()
	f.memory.Write("/src/b", "other", slot)
	f.checked(first, f.next())
	f.mustHaveEnded("b")
	f.mustClose()
}

// A file that one lane cannot read stays open while another lane has a chunk of it, and is then closed.
func TestFailureWhileAnotherLaneReads(t *testing.T) {
	for _, decideFirst := range []bool{false, true} {
		f := newFed(t, newSource(map[string]string{"b": roletest.Repeated("bcd", 3*slot), "c": "c"}), nil)
		f.need("b", "c")
		idle := f.memory.Handles()
		chunk := f.next()
		truncate(f.memory, "/src/b")
		if unit := f.next(); !unit.Packed() {
			t.Errorf("%+v, want the other file", unit)
		}
		f.mustHaveFailed("b", disk.ErrSourceChanged)
		f.mustBeOpen(idle + 1)
		if decideFirst {
			f.files["b"].decide()
			f.mustBeOpen(idle + 1)
			f.checked(chunk)
		} else {
			f.checked(chunk)
			f.files["b"].decide()
		}
		f.mustBeOpen(idle)
		f.mustHaveEnded()
		f.mustClose()
	}
}

// A lane that gives up on a file is the last one that uses it, if the file has been decided before.
func TestGivingUpClosesADecidedFile(t *testing.T) {
	f := newFed(t, newSource(map[string]string{"b": roletest.Repeated("b", 2*slot)}), nil)
	idle := f.memory.Handles()
	o := f.files["b"]
	if !o.acquire() {
		t.Fatal("an undecided file cannot be acquired")
	}
	must(t, f.openFile(t.Context(), o))
	f.mustBeOpen(idle + 1)
	o.decide()
	f.mustBeOpen(idle + 1)
	must(t, f.giveUp(o, disk.ErrSource))
	f.mustBeOpen(idle)
	f.mustClose()
}

// A file that has been decided is not opened: its directory may be closed.
func TestDecidedFileIsNotOpened(t *testing.T) {
	f := newFed(t, newSource(map[string]string{"a": "a"}), nil)
	o := f.files["a"]
	o.decide()
	if o.acquire() {
		t.Error("a decided file was acquired")
	}
	_, _, err := sumOf(t.Context(), f.feed.t.Params, o)
	mustBe(t, err, errDecided)
	f.source.close()
	f.mustBeOpen(0)
}

// The directory of a file stays open while a lane that has acquired the file is about to open it.
func TestAcquiredFileCanBeOpened(t *testing.T) {
	f := newFed(t, newSource(map[string]string{"b": roletest.Repeated("b", 2*slot)}), nil)
	o := f.files["b"]
	if !o.acquire() {
		t.Fatal("an undecided file cannot be acquired")
	}
	o.decide()
	f.source.close()
	must(t, f.openFile(t.Context(), o))
	o.release()
	f.mustBeOpen(0)
}

// A feed to which files may be added yet has nothing to send, and one to which none will be has ended.
func TestFeedWithoutFiles(t *testing.T) {
	f := newFed(t, newSource(map[string]string{"a": "a"}), nil)
	f.mustBeIdle()
	f.need("a")
	f.finish()
	f.next()
	mustBe(t, f.Next(f.t.Context(), make([]byte, slot), &pump.Unit{}), io.EOF)
	f.mustClose()
}

// An error that is not tolerated ends the transfer from any of the calls.
func TestFailureOfAFeedThatIsNotTolerated(t *testing.T) {
	because := errors.New("it is all there is")
	for _, size := range []int{10, 2 * slot} {
		f := newFed(t, newSource(map[string]string{"b": roletest.Repeated("b", size)}), nil)
		f.cannotSend = func(*entry, error) error { return because }
		removeFile(f.memory, "/src/b")
		f.need("b")
		mustBe(t, f.Next(f.t.Context(), make([]byte, slot), &pump.Unit{}), because)
		f.mustClose()
	}
}

// Files of which the receiver has a part are claimed up to there; what is read of it counts as moved once.
func TestResumedFileIsClaimed(t *testing.T) {
	f := newFed(t, newSource(map[string]string{"b": roletest.Repeated("bcd", 3*slot)}), nil)
	f.files["b"].resume = 2 * slot
	f.need("b")
	kinds := []native.Kind{native.ClaimRecord, native.ClaimRecord, native.DataRecord}
	for i, want := range kinds {
		unit := f.next()
		if unit.Record.Kind != want {
			t.Errorf("chunk %d is a %v, want a %v", i, unit.Record.Kind, want)
		}
		f.checked(unit)
	}
	f.mustHaveEnded("b")
	if got := f.feed.t.Params.Config.Progress.Sample().Moved; got != 3*slot {
		t.Errorf("%d bytes were moved, want %d", got, 3*slot)
	}
	f.mustClose()
}

// A file that the protocol cannot carry fails alone.
func TestFileThatIsTooLarge(t *testing.T) {
	s := newFed(t, disktest.NewMemory("/", "/src"), nil).source.(*treeSource)
	for size, want := range map[int64]error{wire.MaxSize: nil, wire.MaxSize + 1: disk.ErrSource} {
		found := tree.Entry{Kind: wire.EntryFile, Depth: 1, Name: "f"}
		found.Info.Size = size
		mustBe(t, s.describe(found).err, want)
	}
}

// The end of a file that one lane cannot read to its end is not announced, although another lane, which was about to
// read more of it, finds nothing left.
func TestFileOfWhichOneChunkCannotBeRead(t *testing.T) {
	memory := newSource(map[string]string{"b": roletest.Repeated("bcd", 2*slot+1), "c": "c"})
	faulty := disktest.NewFaulty(memory, failAfter(2, "read b"))
	f := newFedOn(t, faulty, memory, nil)
	f.need("b", "c")
	f.checked(f.next(), f.next())
	current, _, err := f.take(slot)
	must(t, err)
	if unit := f.next(); !unit.Packed() {
		t.Errorf("%+v, want the other file", unit)
	}
	filled, err := f.nextChunk(t.Context(), current, make([]byte, slot), &pump.Unit{})
	must(t, err)
	if filled {
		t.Error("more was read of a file that has failed")
	}
	f.mustHaveFailed("b", unix.EIO)
	f.mustHaveEnded()
	f.mustClose()
}

// failAfter returns a Plan by which all of these operations fail after the first n.
func failAfter(n int, operation string) disktest.Plan {
	done := 0
	return func(_ int, op, name string) *disktest.Fault {
		if !strings.HasPrefix(op+" "+name, operation) {
			return nil
		}
		if done++; done > n {
			return &disktest.Fault{Err: unix.EIO}
		}
		return nil
	}
}
