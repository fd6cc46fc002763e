package dmaxfer

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// scenario is what a seed makes of a copy: all but what goes wrong.
type scenario struct {
	Seed       uint64
	Sender     wire.Side
	Size       int64
	Chunk      int64
	Depth      int
	Idle       time.Duration
	SenderIdle time.Duration // another one for the sender, if not 0
	Digest     digest.Algorithm
	Durability wire.Durability

	Readback, NoSparse, Overwrite, Backup, NoResume, Xattrs bool
	FromStream, ToStream                                    bool
	Resumes                                                 bool // what an interrupted copy has left

	NetDelay, EngineDelay, DiskDelay time.Duration // the longest
	Bandwidth                        int64         // bytes per second, as the receiver wants it; 0: any
	Corruption                       int64         // percent of the chunks that are corrupted, and retransmitted

	FastPath bool // the sender does not use DMA

	Tree, OldTree     fileTree          // of source and target, if a directory is copied; nil: there is no target
	Linked, OldLinked map[string]string // hard links in them: the first name of the file, by each other one
	HardLinks         bool              // are preserved
	Links             tree.LinkMode
	IgnoreExisting    bool     // of a directory, instead of Overwrite
	Rules             []rule   // of the filter
	Only              []string // list of files; nil: all

	Asks                       wire.Side // for the next three
	Checksum, DryRun, FailFast bool
	MaxBytes, MaxEntries       [2]int64 // by side

	content string // of the source
	old     string // what the target's name holds before, if Overwrite
}

// faultKind is what goes wrong once in a transfer.
type faultKind int

const (
	none faultKind = iota
	cancelled
	crashed
	connectionLost
	peerSilent
	messageGarbled
	messageCut
	diskFails
	engineFails
	engineStalls
	alwaysCorrupted
	sourceChanged
	streamStalls
	faultKinds
)

var faultNames = [...]string{
	"none", "cancelled", "crashed", "connection lost", "peer silent", "message garbled", "message cut", "disk fails",
	"engine fails", "engine stalls", "always corrupted", "source changed", "stream stalls",
}

// String is for the report of a failed seed.
func (k faultKind) String() string { return faultNames[k] }

// fault is armed when At things have happened, and strikes at the next occasion.
type fault struct {
	Kind  faultKind
	Side  wire.Side
	At    int64
	Errno syscall.Errno // diskFails
	Done  bool          // diskFails: the operation takes place before it fails
}

func (t fault) String() string {
	return fmt.Sprintf("%s on the %s at %d (%v, done %t)", t.Kind, t.Side, t.At, t.Errno, t.Done)
}

// pick chooses one.
func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

func newScenario(seed uint64) (scenario, *rand.Rand) {
	random := rand.New(rand.NewPCG(seed, 1))
	yes := func(percent int) bool { return random.IntN(100) < percent }
	sc := scenario{
		Seed: seed, Sender: pick(random, wire.Host, wire.DPU),
		Chunk: pick[int64](random, 4<<10, 8<<10, 16<<10), Depth: 1 + random.IntN(8),
		Idle:       pick(random, time.Second, 3*time.Second, 30*time.Second),
		Digest:     pick(random, digest.CRC32C, digest.CRC32C, digest.XXH3, digest.SHA256, digest.BLAKE3, digest.None),
		Durability: pick(random, wire.DurabilityNone, wire.DurabilityFile, wire.DurabilityFull),
		Readback:   yes(20), NoSparse: yes(20), Overwrite: yes(30), Backup: yes(50), NoResume: yes(15), Xattrs: yes(20),
		NetDelay:    pick(random, 0, 100*time.Microsecond, 5*time.Millisecond),
		EngineDelay: pick(random, 0, time.Millisecond, 20*time.Millisecond),
		DiskDelay:   pick(random, 0, 100*time.Microsecond, 10*time.Millisecond),
		FastPath:    seed%3 == 0,
	}
	if yes(10) {
		sc.Bandwidth = pick[int64](random, 16<<10, 100<<10)
	}
	sc.Size = pick(
		random, 0, 1, sc.Chunk-1, sc.Chunk, sc.Chunk+1, random.Int64N(20*sc.Chunk), random.Int64N(40*sc.Chunk),
	)
	if sc.Digest != digest.None && yes(30) {
		sc.Corruption = 5
	}
	switch {
	case yes(10):
		sc.FromStream = true
	case yes(10):
		sc.ToStream, sc.Overwrite = true, false
	}
	sc.content = noise(random, sc.Size, !sc.FromStream && yes(40))
	if sc.Overwrite {
		sc.old = noise(random, random.Int64N(3*sc.Chunk), false)
		if yes(60) { // much of it is there already
			sc.old = sc.content[:random.Int64N(sc.Size+1)] + sc.old
			sc.old = replaced(sc.old, random.Int64N(int64(len(sc.old))+1), "another content")
		}
	}
	return sc, random
}

// replaced returns a text in which another one stands at an offset.
func replaced(text string, at int64, by string) string {
	return text[:at] + by + text[min(at+int64(len(by)), int64(len(text))):]
}

// noise is random bytes, of which runs are zero if it is to be sparse.
func noise(random *rand.Rand, size int64, sparse bool) string {
	bytes := make([]byte, size)
	for i := range bytes {
		bytes[i] = byte(random.Uint32())
	}
	for start := int64(0); sparse && start < size; {
		start += 4096 * random.Int64N(8)
		end := min(start+4096*random.Int64N(16), size)
		if start < end {
			clear(bytes[start:end])
		}
		start = max(end, start+1)
	}
	return string(bytes)
}

func newFault(random *rand.Rand, sc scenario, steps int64) fault {
	kind := faultKind(random.IntN(int(faultKinds)))
	switch {
	case kind == alwaysCorrupted && sc.Digest == digest.None,
		kind == streamStalls && !sc.FromStream && !sc.ToStream,
		kind == sourceChanged && sc.FromStream:
		kind = cancelled
	}
	t := fault{
		Kind: kind, Side: pick(random, wire.Host, wire.DPU), At: random.Int64N(steps + 1),
		Errno: pick(random, syscall.EIO, syscall.ENOSPC, syscall.EDQUOT), Done: random.IntN(2) == 0,
	}
	if kind == engineFails || kind == engineStalls || kind == alwaysCorrupted {
		t.Side = wire.DPU
	}
	return t
}

func (sc *scenario) sourcePath() string {
	switch {
	case sc.Tree != nil:
		return simTree
	case sc.FromStream:
		return simStream
	}
	return simPath
}

func (sc *scenario) targetPath() string {
	if sc.ToStream {
		return simStream
	}
	return simPath
}

// newDisks has the source on one, and perhaps an old target on the other.
func (sc *scenario) newDisks() [2]*disktest.Memory {
	disks := [2]*disktest.Memory{disktest.NewMemory("/files"), disktest.NewMemory("/files")}
	disks[wire.DPU].Fills()
	if sc.Tree != nil {
		putTree(disks[sc.Sender], simTree, sc.Tree, sc.Linked)
		if sc.OldTree != nil {
			putTree(disks[sc.Sender.Other()], simTree, sc.OldTree, sc.OldLinked)
		}
		return disks
	}
	putSparse(disks[sc.Sender], sc.sourcePath(), sc.content)
	if sc.Overwrite {
		disks[sc.Sender.Other()].Put(simPath, sc.old)
	}
	return disks
}

// putSparse leaves whole pages of zeros out, and gives the file an attribute.
func putSparse(on *disktest.Memory, path, content string) {
	on.Put(path, "")
	dir, err := on.OpenDir("/files")
	if err != nil {
		panic(err)
	}
	defer dir.Close()
	fillSparse(dir, path[len("/files/"):], content)
}

func fillSparse(dir disk.Dir, name, content string) {
	file, err := dir.Open(name, false)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	_ = file.Truncate(int64(len(content)))
	_ = file.SetXattr(disk.Xattr{Name: "user.kind", Value: []byte("test")})
	const page = 4096
	for at := 0; at < len(content); at += page {
		part := content[at:min(at+page, len(content))]
		if part != string(make([]byte, len(part))) {
			_, _ = file.WriteAt([]byte(part), int64(at))
		}
	}
}
