package dmaxfer

import (
	"context"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/dmaxfertest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Where the two sides of a simulation have their files, each on a disk of its own.
const (
	simPath   = "/files/file"
	simStream = "/files/stream"
)

// testMessage is the longest message: short, so that lists go out in parts.
const testMessage = 512

// attempt is one copy of a simulation: both sides, all that is between them, and what goes wrong. It lives in one
// bubble.
type attempt struct {
	scenario
	fault fault
	disks [2]*disktest.Memory // by side
	injection

	bus     *dmaxfertest.Bus
	network *dmaxfertest.Network
	stop    [2]context.CancelCauseFunc
	random  struct {
		sync.Mutex
		*rand.Rand
	}

	step      atomic.Int64 // what has happened, be it to a file, a message or a chunk
	armed     atomic.Bool  // the fault is armed and has not struck yet
	struck    atomic.Bool
	messages  [2]atomic.Int64 // by the side that sent them
	dead      [2]atomic.Bool  // a side that crashed does nothing more
	ended     atomic.Bool     // the sender has let the receiver commit a file
	corrupted atomic.Int64    // chunks that were corrupted by chance
	progress  atomic.Int64    // when there was some, as time.Time.UnixNano

	mu      sync.Mutex
	resumed int64          // bytes, as ANSWERS said
	resent  int64          // bytes below that which came as data nevertheless
	beats   [2]native.Beat // by side, the last
	hellos  int
	changed string         // the file of a tree that has changed, relative to it
	done    [2]fileResults // by side, what was told of the entries of a tree
}

// injection is what a test adds to an attempt, instead of a fault. All may be nil.
type injection struct {
	device  *dmaxfertest.DeviceFaults
	file    func(side wire.Side, n int, op, name string) *disktest.Fault
	message func(from wire.Side, n int, message []byte) dmaxfertest.Delivery
	wish    func(o *Options) // further options
	conn    func(side wire.Side, conn comch.Conn) comch.Conn
	started func(a *attempt) // in the bubble, before the sides start
}

// results are how an attempt went, by side.
type results struct {
	errs   [2]error
	told   [2]job.Summary
	native bool // both sides got as far as the native protocol
	ended  [2]time.Time
	resume int64 // that the receiver offered
	resent int64 // of that, what came as data
	steps  int64
	done   [2]fileResults
}

// errInterrupted is what Ctrl-C is here.
var errInterrupted = error(exit.Interrupted{Signal: syscall.SIGINT})

func newAttempt(sc scenario, disks [2]*disktest.Memory, what fault) *attempt {
	a := &attempt{scenario: sc, fault: what, disks: disks}
	a.random.Rand = rand.New(rand.NewPCG(sc.Seed, uint64(what.Kind)))
	return a
}

// run is to be called in a bubble.
func (a *attempt) run() results {
	a.forgetStream()
	if a.device == nil {
		a.device = a.newDeviceFaults()
	}
	a.bus = dmaxfertest.NewBus(a.device)
	a.network = dmaxfertest.Connect(testMessage, a.delay, a.delivery)
	a.moved()
	var result results
	var contexts [2]context.Context
	for side := range contexts {
		contexts[side], a.stop[side] = context.WithCancelCause(context.Background())
		defer a.stop[side](nil)
	}
	if a.started != nil {
		a.started(a)
	}
	var sides sync.WaitGroup
	for side, ctx := range contexts {
		side := wire.Side(side)
		sides.Go(func() {
			result.told[side], result.errs[side] = a.copy(ctx, side)
			result.ended[side] = time.Now()
		})
	}
	sides.Wait()
	a.network.Wait()
	result.resume, result.resent, result.steps = a.resumed, a.resent, a.step.Load()
	result.native, result.done = a.hellos == 2, a.done
	return result
}

// forgetStream removes what an earlier attempt has put out.
func (a *attempt) forgetStream() {
	if dir, err := a.disks[a.Sender.Other()].OpenDir(filepath.Dir(simStream)); err == nil {
		_ = dir.Remove(filepath.Base(simStream)) // if it is there
		_ = dir.Close()                          // was not changed
	}
}

// copy is Run without the meeting.
// simPaths returns the fast path, and besides it DMA where dma is set.
func simPaths(dma bool) job.Paths {
	if dma {
		return job.PathsOf(wire.PathDMA, wire.PathFast)
	}
	return job.PathsOf(wire.PathFast)
}

func (a *attempt) copy(ctx context.Context, side wire.Side) (job.Summary, error) {
	conn := a.network.Conn(side)
	defer func() { _ = conn.Close() }() // a pair has nothing to report
	if a.conn != nil {
		conn = a.conn(side, conn)
	}
	o := a.options(side)
	file, err := o.find(ctx)
	if err != nil {
		return job.Summary{}, err
	}
	defer file.Close()
	o.paths = simPaths(!a.FastPath || side != a.Sender)
	return peer{o, file, conn, a.bus.Memory(a.Seed)}.transfer(ctx)
}

// happened counts what happens, and arms the fault when its time has come.
func (a *attempt) happened() {
	if a.step.Add(1)-1 != a.fault.At {
		return
	}
	switch a.fault.Kind {
	case cancelled:
		a.strike()
		a.stop[a.fault.Side](errInterrupted)
	case crashed:
		a.strike()
		a.crash(a.fault.Side)
	case sourceChanged:
		a.strike()
		a.changeSource()
	case none:
	default:
		a.armed.Store(true)
	}
}

// strikes reports, once, that the fault strikes here.
func (a *attempt) strikes(kind faultKind, side wire.Side) bool {
	if a.fault.Kind == kind && a.fault.Side == side && a.armed.CompareAndSwap(true, false) {
		a.strike()
		return true
	}
	return false
}

func (a *attempt) strike() {
	a.struck.Store(true)
	a.moved()
}

func (a *attempt) moved() { a.progress.Store(time.Now().UnixNano()) }

// crash leaves a side's disk as it is, and ends the side.
func (a *attempt) crash(side wire.Side) {
	a.dead[side].Store(true)
	if side == wire.Host {
		a.bus.Revoke()
	}
	a.network.BreakDown()
	a.stop[side](errInterrupted)
}

func (a *attempt) below(limit int64) int64 {
	a.random.Lock()
	defer a.random.Unlock()
	return a.random.Int64N(max(limit, 1))
}

func (a *attempt) chance(percent int64) bool { return a.below(100) < percent }

// newDeviceFaults returns those of the DPU's engines.
func (a *attempt) newDeviceFaults() *dmaxfertest.DeviceFaults {
	t := dmaxfertest.NoDeviceFaults()
	t.Latency = func(random *rand.Rand) time.Duration {
		if a.strikes(engineStalls, wire.DPU) {
			return -1
		}
		return time.Duration(random.Int64N(int64(a.EngineDelay) + 1))
	}
	t.Taken = func(random *rand.Rand, offered int) int { return random.IntN(offered + 1) }
	t.Arrive = a.arrive
	t.Arrived = a.moved
	return t
}

func (a *attempt) arrive(length int64) (flip int, err error) {
	a.happened()
	if a.dead[wire.DPU].Load() || a.strikes(engineFails, wire.DPU) {
		return -1, &doca.Error{Op: "doca_dma_task_memcpy", Code: doca.CodeIOFailed}
	}
	if a.corrupts() {
		return int(a.below(length)), nil
	}
	return -1, nil
}

// corrupts reports whether a chunk is to be corrupted: all, or a few, so that no chunk is too often.
func (a *attempt) corrupts() bool {
	if a.fault.Kind == alwaysCorrupted && a.step.Load() >= a.fault.At {
		a.struck.Store(true)
		return true
	}
	return a.chance(a.Corruption) && a.corrupted.Add(1) <= native.MaxAttempt
}

// delay is how long a message takes.
func (a *attempt) delay() time.Duration { return time.Duration(a.below(int64(a.NetDelay) + 1)) }

// delivery is what the network does with a message.
func (a *attempt) delivery(from wire.Side, message []byte) dmaxfertest.Delivery {
	a.happened()
	n := int(a.messages[from].Add(1) - 1)
	a.listen(from, message)
	switch {
	case a.dead[from].Load(): // the side crashes at this moment
		return dmaxfertest.Delivery{Cut: true}
	case a.message != nil:
		return a.message(from, n, message)
	case a.strikes(messageGarbled, from):
		return dmaxfertest.Delivery{Message: a.garble(message)}
	case a.strikes(messageCut, from):
		return dmaxfertest.Delivery{Message: message[:1+a.below(int64(len(message)))]}
	case a.strikes(connectionLost, from):
		return dmaxfertest.Delivery{Cut: true}
	case a.strikes(peerSilent, from):
		return dmaxfertest.Delivery{Freeze: true}
	}
	return dmaxfertest.Delivery{Message: message}
}

// garble leaves alone what the sides say of themselves: each would rightly plan another copy. Without a digest it also
// leaves alone which chunk is acknowledged, and which has no data: nothing else tells.
func (a *attempt) garble(message []byte) []byte {
	garbled := append([]byte(nil), message...)
	at := a.below(int64(len(garbled)))
	_, direction := reference.Decode(message)
	_, hello := native.DecodeHello(message)
	if direction == nil || hello == nil || isMessage(message, wire.TypeEntries) ||
		a.Digest == digest.None && (isMessage(message, wire.TypePack) || isMessage(message, wire.TypeAcks)) {
		at %= 4
	}
	garbled[at] ^= byte(1 + a.below(255))
	if a.Digest == digest.None && hasMoreHoles(garbled, message) {
		garbled[at] = message[at]
		garbled[0] ^= 0xff
	}
	return garbled
}

// hasMoreHoles is true of a garbled message in which a chunk with data has become a hole. Only a digest tells.
func hasMoreHoles(garbled, message []byte) bool {
	count := func(message []byte) (holes int) {
		records, _ := native.DecodeChunks(nil, message)
		for _, r := range records {
			if r.Kind == native.HoleRecord {
				holes++
			}
		}
		return holes
	}
	return count(garbled) > count(message)
}

// listen notes what makes a copy go on.
func (a *attempt) listen(from wire.Side, message []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if beat, err := native.DecodeBeat(message); err != nil || beat != a.beats[from] {
		a.beats[from] = beat
		a.moved()
	}
	answers, _ := native.DecodeAnswers(nil, message)
	for _, answer := range answers {
		a.resumed += int64(answer.Offset)
	}
	if _, err := native.DecodeHello(message); err == nil {
		a.hellos++
	}
	if isEnd(message) {
		a.ended.Store(true)
	}
	records, err := native.DecodeChunks(nil, message)
	if err != nil {
		return
	}
	for _, r := range records {
		if r.Kind == native.DataRecord && int64(r.Offset+r.Length) <= a.resumed {
			a.resent += int64(r.Length)
		}
	}
}

// files is a side's disk as its process sees it.
func (a *attempt) files(side wire.Side) disk.FS {
	faulty := disktest.NewFaulty(a.disks[side], func(n int, op, name string) *disktest.Fault {
		if a.dead[side].Load() {
			return &disktest.Fault{Err: syscall.EIO}
		}
		a.happened()
		switch op {
		case "read", "write", "allocate", "flush", "sync", "rename", "syncfs", "name", "mkdir", "symlink":
			a.moved()
		}
		if a.file != nil {
			return a.file(side, n, op, name)
		}
		if a.strikes(diskFails, side) {
			return &disktest.Fault{Err: a.fault.Errno, Done: a.fault.Done}
		}
		return a.slow(op)
	})
	if a.Tree != nil {
		return faulty
	}
	return slowFS{faulty, a.pause()}
}

// slow delays what takes long on the disk of a tree, whose directories slowFS does not know.
func (a *attempt) slow(op string) *disktest.Fault {
	if a.Tree == nil || a.DiskDelay == 0 {
		return nil
	}
	switch op {
	case "read", "write", "sync", "syncfs", "rename", "name", "create", "mkdir":
		over := make(chan struct{})
		time.AfterFunc(time.Duration(a.below(int64(a.DiskDelay))), func() { close(over) })
		return &disktest.Fault{Hang: over}
	}
	return nil
}

func (a *attempt) pause() func() { return pauses(a.below, a.DiskDelay) }

// changeSource does what another program would do to the file.
func (a *attempt) changeSource() {
	path, size := a.sourcePath(), int64(len(a.content))
	if a.Tree != nil {
		if a.changed = a.anyFile(); a.changed == "" {
			return
		}
		path, size = filepath.Join(path, a.changed), int64(len(a.Tree[a.changed].text))
	}
	dir, err := a.disks[a.Sender].OpenDir(filepath.Dir(path))
	if err != nil {
		return
	}
	defer dir.Close()
	file, err := dir.Open(filepath.Base(path), false)
	if err != nil {
		return
	}
	defer file.Close()
	switch a.below(3) {
	case 0:
		_, _ = file.WriteAt([]byte("changed"), a.below(size))
	case 1:
		_, _ = file.WriteAt([]byte("appended"), size)
	default:
		_ = file.Truncate(size / 2)
	}
}

// anyFile returns a regular file of the tree, or nothing if it has none.
func (a *attempt) anyFile() string {
	var files []string
	for _, name := range slices.Sorted(maps.Keys(a.Tree)) {
		if a.Tree[name].mode == 0 && len(a.Linked) == 0 {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		return ""
	}
	return files[a.below(int64(len(files)))]
}

// options are a side's.
func (a *attempt) options(side wire.Side) (o Options) {
	o = Options{
		Options: role.Options{
			Side: side, Log: zerolog.Nop(), Chunk: a.Chunk, Depth: a.Depth, IdleTimeout: a.Idle, Digest: a.Digest,
			Durability: a.Durability, Software: "simulation",
		},
		FS: a.files(side), File: simPath,
	}
	if a.Tree != nil {
		a.addTreeOptions(&o, side)
	}
	if a.wish != nil {
		defer func() { a.wish(&o) }()
	}
	if side == a.Sender {
		if a.SenderIdle != 0 {
			o.IdleTimeout = a.SenderIdle
		}
		o.NoSparse, o.Xattrs = a.NoSparse, a.Xattrs
		if a.FromStream {
			o.File, o.Stdin = "-", a.stdin
		}
		return o
	}
	o.Bandwidth = a.Bandwidth
	o.Overwrite, o.Readback, o.Backup, o.NoResume, o.Xattrs = a.Overwrite, a.Readback, a.Backup, a.NoResume, a.Xattrs
	if a.ToStream {
		o.File, o.Stdout = "-", a.stdout
	}
	return o
}

func (a *attempt) addTreeOptions(o *Options, side wire.Side) {
	o.File, o.HardLinks = simTree, a.HardLinks
	o.MaxBytes, o.MaxEntries = a.MaxBytes[side], a.MaxEntries[side]
	if side == a.Asks {
		o.Checksum, o.DryRun, o.FailFast = a.Checksum, a.DryRun, a.FailFast
	}
	if side == a.Sender {
		o.Links, o.FilesFrom, o.Filter = a.Links, a.Only, a.filter()
	} else {
		o.IgnoreExisting = a.IgnoreExisting
	}
	a.done[side] = fileResults{}
	o.Notify = func(e job.Event) {
		if is, done := e.(job.FileDone); done {
			a.done[side][is.Path] = is
		}
	}
}

func (a *attempt) filter() *tree.Filter {
	var rules []tree.Rule
	for _, r := range a.Rules {
		rules = append(rules, r.Rule)
	}
	filter, err := tree.NewFilter(rules)
	if err != nil {
		panic(err)
	}
	return filter
}

func (a *attempt) stdin() (disk.File, error) {
	file, err := a.disks[a.Sender].Open(simStream)
	if err != nil {
		return nil, err
	}
	return newPipe(file, a.pause(), a.holdsStream), nil
}

func (a *attempt) stdout() (disk.File, error) {
	dir, err := a.disks[a.Sender.Other()].OpenDir(filepath.Dir(simStream))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	file, err := dir.Create(filepath.Base(simStream))
	if err != nil {
		return nil, err
	}
	return newPipe(file, a.pause(), a.holdsStream), nil
}

func (a *attempt) holdsStream() bool {
	a.happened()
	if a.fault.Kind == streamStalls && a.armed.Load() {
		a.struck.Store(true)
		return true
	}
	a.moved()
	return false
}
