package native

import (
	"errors"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// ends are the kinds of ends that a side can have.
var ends = map[string]Flags{
	"file":             FlagFile,
	"tree":             FlagTree,
	"nothing":          0,
	"overwrite":        FlagOverwrite,
	"overwrite,file":   FlagOverwrite | FlagFile,
	"overwrite,tree":   FlagOverwrite | FlagTree,
	"stream":           FlagStream,
	"overwrite,stream": FlagOverwrite | FlagStream,
}

func endHello(name string) Hello {
	h := receiverHello()
	h.Version = 2
	h.Flags = ends[name]
	return h
}

// Pairs of ends; if there is a sender, it is the first. Host and DPU can be exchanged.
func TestDecideWhoSends(t *testing.T) {
	type pairing struct{ first, second string }
	results := map[pairing]error{
		{"file", "tree"}:                         wire.ErrKindMismatch,
		{"file", "nothing"}:                      nil,
		{"file", "overwrite"}:                    nil,
		{"file", "overwrite,file"}:               nil,
		{"file", "overwrite,tree"}:               wire.ErrKindMismatch,
		{"file", "stream"}:                       nil,
		{"file", "overwrite,stream"}:             nil,
		{"tree", "nothing"}:                      nil,
		{"tree", "overwrite"}:                    nil,
		{"tree", "overwrite,file"}:               wire.ErrKindMismatch,
		{"tree", "overwrite,tree"}:               nil,
		{"tree", "stream"}:                       wire.ErrTreeStream,
		{"tree", "overwrite,stream"}:             wire.ErrTreeStream,
		{"stream", "nothing"}:                    nil,
		{"stream", "overwrite"}:                  nil,
		{"stream", "overwrite,file"}:             nil,
		{"stream", "overwrite,tree"}:             wire.ErrTreeStream,
		{"stream", "stream"}:                     wire.ErrNeitherHasFile,
		{"stream", "overwrite,stream"}:           wire.ErrNeitherHasFile,
		{"nothing", "nothing"}:                   wire.ErrNeitherHasFile,
		{"nothing", "overwrite"}:                 wire.ErrNeitherHasFile,
		{"nothing", "overwrite,file"}:            wire.ErrNeitherHasFile,
		{"nothing", "overwrite,tree"}:            wire.ErrNeitherHasFile,
		{"nothing", "overwrite,stream"}:          wire.ErrNeitherHasFile,
		{"overwrite", "overwrite"}:               wire.ErrNeitherHasFile,
		{"overwrite", "overwrite,file"}:          wire.ErrNeitherHasFile,
		{"overwrite", "overwrite,tree"}:          wire.ErrNeitherHasFile,
		{"overwrite", "overwrite,stream"}:        wire.ErrNeitherHasFile,
		{"overwrite,file", "overwrite,file"}:     wire.ErrNeitherHasFile,
		{"overwrite,file", "overwrite,tree"}:     wire.ErrNeitherHasFile,
		{"overwrite,file", "overwrite,stream"}:   wire.ErrNeitherHasFile,
		{"overwrite,tree", "overwrite,tree"}:     wire.ErrNeitherHasFile,
		{"overwrite,tree", "overwrite,stream"}:   wire.ErrNeitherHasFile,
		{"overwrite,stream", "overwrite,stream"}: wire.ErrNeitherHasFile,
	}
	for first := range ends {
		for second := range ends {
			_, one := results[pairing{first, second}]
			_, other := results[pairing{second, first}]
			if compares := first == second && (first == "file" || first == "tree"); !one && !other && !compares {
				t.Errorf("nothing is said of %s and %s", first, second)
			}
		}
	}
	for p, want := range results {
		checkSender(t, p.first, p.second, wire.Host, want)
		checkSender(t, p.second, p.first, wire.DPU, want)
	}
}

func checkSender(t *testing.T, host, dpu string, sender wire.Side, want error) {
	t.Helper()
	plan, err := Decide(wire.Host, endHello(host), endHello(dpu))
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Errorf("%s and %s: %v, want %v", host, dpu, err, want)
	}
	if err != nil {
		if plan != (Plan{}) {
			t.Errorf("%s and %s: %+v beside %v", host, dpu, plan, err)
		}
		return
	}
	from, to := ends[host], ends[dpu]
	if sender == wire.DPU {
		from, to = to, from
	}
	got := Plan{Sender: plan.Sender, Tree: plan.Tree, StreamSource: plan.StreamSource, StreamTarget: plan.StreamTarget,
		Overwrite: plan.Overwrite, Compare: plan.Compare}
	wanted := Plan{Sender: sender, Tree: from.Has(FlagTree), StreamSource: from.Has(FlagStream),
		StreamTarget: to.Has(FlagStream), Overwrite: to.Has(FlagOverwrite)}
	if got != wanted {
		t.Errorf("%s and %s: %+v", host, dpu, plan)
	}
	if wanted.Overwrite {
		mustIgnoreAlike(t, endHello(host), endHello(dpu), plan)
	}
}

// mustIgnoreAlike checks that a side which leaves what exists receives like one that overwrites it.
func mustIgnoreAlike(t *testing.T, host, dpu Hello, want Plan) {
	t.Helper()
	for _, h := range []*Hello{&host, &dpu} {
		if h.Flags.Has(FlagOverwrite) {
			h.Flags ^= FlagOverwrite | FlagIgnoreExisting
		}
	}
	want.Overwrite, want.IgnoreExisting = false, true
	if got, err := Decide(wire.Host, host, dpu); err != nil || got != want {
		t.Errorf("%#x and %#x: %+v, %v", host.Flags, dpu.Flags, got, err)
	}
}

// Where both sides have it and neither overwrites, they only compare, unless one of them refuses that.
func TestDecideBothHaveIt(t *testing.T) {
	for _, end := range []string{"file", "tree"} {
		host, dpu := endHello(end), endHello(end)
		host.Flags |= FlagXAttr
		dpu.Flags |= FlagXAttr
		plan, err := Decide(wire.Host, host, dpu)
		if err != nil || plan.Sender != wire.Host || !plan.Compare || plan.XAttr || plan.Tree != (end == "tree") {
			t.Errorf("%s: %+v, %v", end, plan, err)
		}
		for _, h := range []*Hello{&host, &dpu} {
			h.Flags |= FlagRefuseSame
			if plan, err := Decide(wire.Host, host, dpu); !errors.Is(err, wire.ErrBothHaveFile) || plan != (Plan{}) {
				t.Errorf("%s, refused: %+v, %v", end, plan, err)
			}
			h.Flags &^= FlagRefuseSame
		}
	}
}

// Of two directories one is received into if only that was left by an interrupted transfer.
func TestDecideUnfinished(t *testing.T) {
	for _, test := range []struct {
		host, dpu Flags
		sender    wire.Side
		compare   bool
	}{
		{FlagTree, FlagTree | FlagUnfinished, wire.Host, false},
		{FlagTree | FlagUnfinished, FlagTree, wire.DPU, false},
		{FlagTree | FlagUnfinished, FlagTree | FlagUnfinished, wire.Host, true},
		{FlagTree | FlagUnfinished, 0, wire.Host, false},
		{0, FlagTree | FlagUnfinished, wire.DPU, false},
		{FlagTree | FlagUnfinished, FlagTree | FlagOverwrite, wire.Host, false},
		{FlagTree | FlagUnfinished, FlagTree | FlagIgnoreExisting, wire.Host, false},
	} {
		host, dpu := endHello("nothing"), endHello("nothing")
		host.Flags, dpu.Flags = test.host, test.dpu
		plan, err := Decide(wire.Host, host, dpu)
		if err != nil || plan.Sender != test.sender || plan.Compare != test.compare {
			t.Errorf("%#x and %#x: %+v, %v", test.host, test.dpu, plan, err)
		}
		host.Flags |= FlagRefuseSame
		if _, err := Decide(wire.Host, host, dpu); errors.Is(err, wire.ErrBothHaveFile) != test.compare {
			t.Errorf("%#x and %#x, refused: %v", test.host, test.dpu, err)
		}
	}
}

// Where a side says that it receives, the other one is the sender, whatever both have.
func TestDecideKnownDirection(t *testing.T) {
	for _, test := range []struct {
		from, to string
		err      error
		compare  bool
	}{
		{from: "file", to: "nothing"},
		{from: "file", to: "file", compare: true},
		{from: "file", to: "overwrite,file"},
		{from: "file", to: "stream"},
		{from: "file", to: "overwrite,stream"},
		{from: "tree", to: "tree"},
		{from: "tree", to: "overwrite,tree"},
		{from: "stream", to: "nothing"},
		{from: "stream", to: "overwrite,file"},
		{from: "file", to: "tree", err: wire.ErrKindMismatch},
		{from: "tree", to: "file", err: wire.ErrKindMismatch},
		{from: "tree", to: "stream", err: wire.ErrTreeStream},
		{from: "stream", to: "tree", err: wire.ErrTreeStream},
		{from: "stream", to: "file", err: wire.ErrBothHaveFile},
		{from: "stream", to: "stream", err: wire.ErrNeitherHasFile},
		{from: "nothing", to: "file", err: wire.ErrNeitherHasFile},
		{from: "nothing", to: "stream", err: wire.ErrNeitherHasFile},
		{from: "overwrite,file", to: "nothing", err: wire.ErrNeitherHasFile},
	} {
		for _, sender := range []wire.Side{wire.Host, wire.DPU} {
			var hellos [2]Hello
			hellos[sender], hellos[sender.Other()] = endHello(test.from), endHello(test.to)
			hellos[sender.Other()].Flags |= FlagReceives
			plan, err := Decide(wire.Host, hellos[wire.Host], hellos[wire.DPU])
			if !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Errorf("%s to %s: %v, want %v", test.from, test.to, err, test.err)
			} else if err == nil && (plan.Sender != sender || plan.Compare != test.compare) {
				t.Errorf("%s to %s, from the %s: %+v", test.from, test.to, sender, plan)
			}
			hellos[sender].Flags |= FlagReceives
			if _, err := Decide(wire.Host, hellos[wire.Host], hellos[wire.DPU]); !errors.Is(err,
				wire.ErrNeitherHasFile) {
				t.Errorf("two receivers: %v", err)
			}
			hellos[sender].Flags = ends[test.from] | FlagRefuseSame
			if _, err := Decide(wire.Host, hellos[wire.Host], hellos[wire.DPU]); test.compare && !errors.Is(err,
				wire.ErrBothHaveFile) {
				t.Errorf("%s to %s, refused: %v", test.from, test.to, err)
			}
		}
	}
}

func TestDecidePath(t *testing.T) {
	for _, test := range []struct {
		host, dpu Flags
		path      wire.Path
		err       error
	}{
		{0, 0, wire.PathDMA, nil},
		{FlagFast, FlagFast, wire.PathDMA, nil},
		{FlagFast | FlagNoDMA, FlagFast, wire.PathFast, nil},
		{FlagFast, FlagFast | FlagNoDMA, wire.PathFast, nil},
		{FlagFast | FlagNoDMA, FlagFast | FlagNoDMA, wire.PathFast, nil},
		{FlagFast | FlagNoDMA, 0, 0, wire.ErrNoPath},
		{0, FlagFast | FlagNoDMA, 0, wire.ErrNoPath},
		{FlagNoDMA, FlagFast, 0, wire.ErrNoPath},
		{0, FlagNoDMA, 0, wire.ErrNoPath},
		{FlagNoDMA | FlagTLS, FlagNoDMA | FlagTLS | FlagRMA, wire.PathTLS, nil},
		{FlagNoDMA | FlagTLS | FlagRMA, FlagNoDMA | FlagTLS | FlagRMA, wire.PathRMA, nil},
		{FlagNoDMA | FlagTLS | FlagMessages, FlagNoDMA | FlagTLS | FlagMessages, wire.PathTLS, nil},
		{FlagNoDMA | FlagTLS | FlagTCP, FlagNoDMA | FlagTLS | FlagTCP, wire.PathTLS, nil},
		{FlagNoDMA | FlagTCP | FlagMessages, FlagNoDMA | FlagTCP | FlagMessages, wire.PathTCP, nil},
		{FlagNoDMA | FlagTCP, FlagNoDMA | FlagTLS | FlagTCP, wire.PathTCP, nil},
		{FlagNoDMA | FlagTCP, FlagNoDMA | FlagTLS, 0, wire.ErrNoPath},
		{FlagNoDMA | FlagFast | FlagMessages, FlagNoDMA | FlagFast | FlagMessages, wire.PathMessages, nil},
		{FlagNoDMA | FlagMessages, FlagNoDMA | FlagTLS, 0, wire.ErrNoPath},
		{FlagTLS | FlagRMA, FlagTLS | FlagRMA, wire.PathDMA, nil},
	} {
		from, to := senderHello(), receiverHello()
		from.Version, to.Version = 7, 7
		from.Flags, to.Flags = from.Flags|test.host, to.Flags|test.dpu
		plan, err := Decide(wire.Host, from, to)
		if !errors.Is(err, test.err) || plan.Path != test.path {
			t.Errorf("%#x and %#x: %s, %v", test.host, test.dpu, plan.Path, err)
		}
	}
}

func TestDecideIsTheSameOnBothSides(t *testing.T) {
	from, to := senderHello(), receiverHello()
	from.Version, to.Version = 7, 7
	want := Plan{
		Version: 7, Sender: wire.Host, Chunk: wire.MinChunk, Depth: 2, Digest: wire.DigestCRC32C,
		Durability: wire.DurabilityFull,
		Sparse:     true, XAttr: true, Links: true,
	}
	if got, err := Decide(wire.Host, from, to); err != nil || got != want {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for _, sender := range []wire.Side{wire.Host, wire.DPU, wire.Client, wire.Server} {
		want.Sender = sender
		if got, err := Decide(sender, from, to); err != nil || got != want {
			t.Errorf("on the %s: got %+v, %v\nwant %+v", sender, got, err, want)
		}
		if got, err := Decide(sender.Other(), to, from); err != nil || got != want {
			t.Errorf("on the %s: got %+v, %v\nwant %+v", sender.Other(), got, err, want)
		}
	}
}

// Of two sides that have the same, the one that initiates sends it for comparison.
func TestDecideComparesFromTheInitiator(t *testing.T) {
	for side, want := range map[wire.Side]wire.Side{wire.Host: wire.Host, wire.DPU: wire.Host, wire.Client: wire.Client,
		wire.Server: wire.Client} {
		plan, err := Decide(side, endHello("file"), endHello("file"))
		if err != nil || !plan.Compare || plan.Sender != want {
			t.Errorf("on the %s: %+v, %v", side, plan, err)
		}
	}
}

func TestDecideWishes(t *testing.T) {
	for name, test := range map[string]struct {
		from, to func(*Hello)
		holds    func(Plan) bool
	}{
		"smaller chunk": {func(h *Hello) { h.Chunk = 1 << 20 }, func(h *Hello) { h.Chunk = 1 << 16 },
			func(p Plan) bool { return p.Chunk == 1<<16 }},
		"fewer slots": {func(h *Hello) { h.Depth = 3 }, func(h *Hello) { h.Depth = 9 },
			func(p Plan) bool { return p.Depth == 3 && p.WindowLength() == 3*wire.MinChunk }},
		"largest window": {func(h *Hello) { h.Depth, h.Chunk = wire.MaxDepth, wire.MaxChunk },
			func(h *Hello) { h.Depth, h.Chunk = wire.MaxDepth, wire.MaxChunk },
			func(p Plan) bool { return p.WindowLength() == 1<<40 }},
		"stronger digest": {func(h *Hello) { h.Digest = wire.DigestNone },
			func(h *Hello) { h.Digest = wire.DigestSHA256 },
			func(p Plan) bool { return p.Digest == wire.DigestSHA256 && p.Resumable() }},
		"no digest": {func(h *Hello) { h.Digest = wire.DigestNone }, func(h *Hello) { h.Digest = wire.DigestNone },
			func(p Plan) bool { return p.Digest == wire.DigestNone && !p.Resumable() }},
		"stronger durability": {func(h *Hello) { h.Durability = wire.DurabilityNone },
			func(h *Hello) { h.Durability = wire.DurabilityFile },
			func(p Plan) bool { return p.Durability == wire.DurabilityFile }},
		"readback of either": {func(h *Hello) { h.Flags |= FlagReadback }, func(*Hello) {},
			func(p Plan) bool { return p.Readback }},
		"readback of none": {func(*Hello) {}, func(*Hello) {}, func(p Plan) bool { return !p.Readback && p.Sparse }},
		"no-sparse of either": {func(*Hello) {}, func(h *Hello) { h.Flags |= FlagNoSparse },
			func(p Plan) bool { return !p.Sparse }},
		"owner of both": {func(h *Hello) { h.Flags |= FlagOwner }, func(h *Hello) { h.Flags |= FlagOwner },
			func(p Plan) bool { return p.Owner }},
		"owner of one": {func(h *Hello) { h.Flags |= FlagOwner }, func(*Hello) {},
			func(p Plan) bool { return !p.Owner }},
		"xattr of one": {func(*Hello) {}, func(h *Hello) { h.Flags &^= FlagXAttr },
			func(p Plan) bool { return !p.XAttr }},
		"changing source": {func(h *Hello) { h.Flags |= FlagAllowChanging }, func(*Hello) {},
			func(p Plan) bool { return p.AllowChanging }},
		"changing target": {func(*Hello) {}, func(h *Hello) { h.Flags |= FlagAllowChanging },
			func(p Plan) bool { return !p.AllowChanging }},
		"links of one": {func(*Hello) {}, func(h *Hello) { h.Flags &^= FlagLinks },
			func(p Plan) bool { return !p.Links }},
		"checksum of either": {func(h *Hello) { h.Flags |= FlagChecksum }, func(*Hello) {},
			func(p Plan) bool { return p.Checksum }},
		"dry run of either": {func(*Hello) {}, func(h *Hello) { h.Flags |= FlagDryRun },
			func(p Plan) bool { return p.DryRun && p.XAttr }},
		"fail-fast of either": {func(h *Hello) { h.Flags |= FlagFailFast }, func(*Hello) {},
			func(p Plan) bool { return p.FailFast && !p.DryRun && !p.Checksum }},
		"sum without a digest": {func(h *Hello) { h.Digest = wire.DigestNone },
			func(h *Hello) { h.Digest = wire.DigestNone },
			func(p Plan) bool { return p.SumDigest() == wire.DigestXXH3 }},
		"sum with a digest": {func(h *Hello) { h.Digest = wire.DigestBLAKE3 }, func(*Hello) {},
			func(p Plan) bool { return p.SumDigest() == wire.DigestBLAKE3 }},
	} {
		from, to := senderHello(), receiverHello()
		from.Version, to.Version = 2, 2
		test.from(&from)
		test.to(&to)
		for _, hellos := range [][2]Hello{{from, to}, {to, from}} {
			if plan, err := Decide(wire.Host, hellos[0], hellos[1]); err != nil || !test.holds(plan) {
				t.Errorf("%s: %+v, %v", name, plan, err)
			}
		}
	}
}

func TestDecideRefuses(t *testing.T) {
	for name, spoil := range map[string]func(host, dpu *Hello){
		"versions":    func(_, dpu *Hello) { dpu.Version = 3 },
		"host's slot": func(host, _ *Hello) { host.Depth = 0 },
		"DPU's chunk": func(_, dpu *Hello) { dpu.Chunk = 5000 },
		"two kinds":   func(host, _ *Hello) { host.Flags |= FlagFile | FlagTree },
	} {
		host, dpu := senderHello(), receiverHello()
		host.Version, dpu.Version = 2, 2
		spoil(&host, &dpu)
		if plan, err := Decide(wire.Host, host, dpu); !errors.Is(err, wire.ErrMalformed) || plan != (Plan{}) {
			t.Errorf("%s: %+v, %v", name, plan, err)
		}
	}
}

// Without the same word, or with one on one side only, nothing else matters.
func TestWordsMustBeEqual(t *testing.T) {
	from, to := Hello{Flags: FlagFile}, Hello{}
	for _, h := range []*Hello{&from, &to} {
		h.Version, h.Chunk, h.Depth = Supported.Max, wire.MinChunk, 1
	}
	for _, c := range []struct {
		host, dpu Word
		want      error
	}{
		{Word{}, Word{}, nil}, {WordOf("a"), WordOf("a"), nil},
		{WordOf("a"), WordOf("b"), wire.ErrWordsDiffer}, {WordOf("a"), Word{}, wire.ErrWordsDiffer},
		{Word{}, WordOf("a"), wire.ErrWordsDiffer},
	} {
		from.Word, to.Word = c.host, c.dpu
		_, onHost := Decide(wire.Host, from, to)
		_, onDPU := Decide(wire.DPU, to, from)
		if !errors.Is(onHost, c.want) || !errors.Is(onDPU, c.want) {
			t.Errorf("%x and %x: %v on the host, %v on the DPU, want %v", c.host, c.dpu, onHost, onDPU, c.want)
		}
	}
}

func TestLongLocation(t *testing.T) {
	l := Location{Machine: "dpu1", User: "alice", Path: "/" + strings.Repeat("x", 600) + "/end"}
	if got := l.within(4000); len(got.Path) != wire.MaxLocationPath || !strings.HasPrefix(got.Path, "...x") ||
		!strings.HasSuffix(got.Path, "/end") || got.check() != nil {
		t.Errorf("4000 bytes: %+v", got)
	}
	if got := l.within(20); got.Path != "...xxxx/end" {
		t.Errorf("20 bytes: %+v", got)
	}
	if got := l.within(11); got != (Location{}) {
		t.Errorf("11 bytes: %+v", got)
	}
}
