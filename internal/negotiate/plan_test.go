package negotiate

import (
	"errors"
	"math"
	"testing"
)

// ends are the kinds of ends that a side can have.
var ends = map[string]Flags{
	"file":             FlagHasFile,
	"nothing":          0,
	"overwrite":        FlagOverwrite,
	"stream":           FlagStream,
	"overwrite,stream": FlagOverwrite | FlagStream,
}

func endHello(name string) Hello {
	h := receiverHello()
	h.Version = 1
	h.Flags = ends[name]
	if h.Flags.Has(FlagHasFile) {
		h.Size = nativeSize
	}
	return h
}

// Pairs of ends; if there is a sender, it is the first. Host and DPU can be exchanged.
func TestDecideWhoSends(t *testing.T) {
	type pairing struct{ first, second string }
	outcomes := map[pairing]error{
		{"file", "file"}:                         ErrBothHaveFile,
		{"file", "nothing"}:                      nil,
		{"file", "overwrite"}:                    nil,
		{"file", "stream"}:                       nil,
		{"file", "overwrite,stream"}:             nil,
		{"stream", "nothing"}:                    nil,
		{"stream", "overwrite"}:                  nil,
		{"stream", "stream"}:                     ErrNeitherHasFile,
		{"stream", "overwrite,stream"}:           ErrNeitherHasFile,
		{"nothing", "nothing"}:                   ErrNeitherHasFile,
		{"nothing", "overwrite"}:                 ErrNeitherHasFile,
		{"nothing", "overwrite,stream"}:          ErrNeitherHasFile,
		{"overwrite", "overwrite"}:               ErrNeitherHasFile,
		{"overwrite", "overwrite,stream"}:        ErrNeitherHasFile,
		{"overwrite,stream", "overwrite,stream"}: ErrNeitherHasFile,
	}
	for first := range ends {
		for second := range ends {
			_, one := outcomes[pairing{first, second}]
			_, other := outcomes[pairing{second, first}]
			if !one && !other {
				t.Errorf("nothing is said of %s and %s", first, second)
			}
		}
	}
	for p, want := range outcomes {
		checkSender(t, p.first, p.second, Host, want)
		checkSender(t, p.second, p.first, DPU, want)
	}
}

func checkSender(t *testing.T, host, dpu string, sender Side, want error) {
	t.Helper()
	plan, err := Decide(endHello(host), endHello(dpu), nativeLimits)
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Errorf("%s and %s: %v, want %v", host, dpu, err, want)
	}
	if err != nil {
		if plan != (Plan{}) {
			t.Errorf("%s and %s: %+v beside %v", host, dpu, plan, err)
		}
		return
	}
	from, to := host, dpu
	if sender == DPU {
		from, to = dpu, host
	}
	if plan.Sender != sender || plan.SizeKnown != (from == "file") || plan.StreamTarget != ends[to].Has(FlagStream) ||
		plan.Overwrite != ends[to].Has(FlagOverwrite) {
		t.Errorf("%s and %s: %+v", host, dpu, plan)
	}
}

func TestDecideTakesTheFileFromItsSender(t *testing.T) {
	from, to := senderHello(), receiverHello()
	from.Version, to.Version = 7, 7
	to.MTime, to.Mode, to.UID, to.GID, to.Identity = Timestamp{9, 9}, 9, 9, 9, [16]byte{9}
	want := Plan{
		Version: 7, Sender: Host, Size: nativeSize, SizeKnown: true, Chunk: MinChunk, Depth: 2, Digest: DigestCRC32C,
		Durability: DurabilityFull, Sparse: true, MTime: from.MTime, Mode: from.Mode, UID: from.UID, GID: from.GID,
		Identity: from.Identity, XAttr: true,
	}
	if got, err := Decide(from, to, nativeLimits); err != nil || got != want {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	want.Sender = DPU
	if got, err := Decide(to, from, nativeLimits); err != nil || got != want {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
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
			func(p Plan) bool { return p.Depth == 3 && p.WindowLength() == 3*MinChunk }},
		"largest window": {func(h *Hello) { h.Depth, h.Chunk = MaxDepth, MaxChunk },
			func(h *Hello) { h.Depth, h.Chunk = MaxDepth, MaxChunk },
			func(p Plan) bool { return p.WindowLength() == 1<<40 }},
		"stronger digest": {func(h *Hello) { h.Digest = DigestNone }, func(h *Hello) { h.Digest = DigestSHA256 },
			func(p Plan) bool { return p.Digest == DigestSHA256 && p.Resumable() }},
		"no digest": {func(h *Hello) { h.Digest = DigestNone }, func(h *Hello) { h.Digest = DigestNone },
			func(p Plan) bool { return p.Digest == DigestNone && !p.Resumable() }},
		"stronger durability": {func(h *Hello) { h.Durability = DurabilityNone },
			func(h *Hello) { h.Durability = DurabilityFile },
			func(p Plan) bool { return p.Durability == DurabilityFile }},
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
	} {
		from, to := senderHello(), receiverHello()
		from.Version, to.Version = 1, 1
		test.from(&from)
		test.to(&to)
		for _, hellos := range [][2]Hello{{from, to}, {to, from}} {
			if plan, err := Decide(hellos[0], hellos[1], nativeLimits); err != nil || !test.holds(plan) {
				t.Errorf("%s: %+v, %v", name, plan, err)
			}
		}
	}
}

func TestDecideRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		spoil  func(host, dpu *Hello)
		limits Limits
		want   error
	}{
		"versions":    {func(_, dpu *Hello) { dpu.Version = 2 }, nativeLimits, ErrMalformed},
		"host's slot": {func(host, _ *Hello) { host.Depth = 0 }, nativeLimits, ErrMalformed},
		"DPU's chunk": {func(_, dpu *Hello) { dpu.Chunk = 5000 }, nativeLimits, ErrMalformed},
		"operator's limit": {func(*Hello, *Hello) {}, Limits{MaxMessage: 4080, MaxFileSize: nativeSize - 1},
			ErrTooLarge},
		"protocol's limit": {func(host, _ *Hello) { host.Size = MaxSize + 1 }, Limits{4080, math.MaxUint64},
			ErrMalformed},
	} {
		host, dpu := senderHello(), receiverHello()
		host.Version, dpu.Version = 1, 1
		test.spoil(&host, &dpu)
		if plan, err := Decide(host, dpu, test.limits); !errors.Is(err, test.want) || plan != (Plan{}) {
			t.Errorf("%s: %+v, %v", name, plan, err)
		}
	}
}
