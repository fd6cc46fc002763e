package native

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/reference"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// New finds wrong values in this side's own HELLO.
func TestNewNativeRefusesWhatAPeerWould(t *testing.T) {
	for name, spoil := range map[string]func(*Hello){
		"chunk": func(h *Hello) { h.Chunk = 0 },
		"kinds": func(h *Hello) { h.Flags |= FlagStream },
		"flags": func(h *Hello) { h.Flags |= 1 << 31 },
		"name":  func(h *Hello) { h.Software = strings.Repeat("x", 65) },
	} {
		own := senderHello()
		spoil(&own)
		if n, err := New(wire.Host, 2, own, nativeLimits); n != nil || !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
		s := reference.New(wire.Host, reference.Local{HasFile: true, Native: &Offer{Own: own}}, nativeLimits)
		s.Start()
		step, err := s.Receive(reference.Direction{Offer: [3]byte{0xDC, 2, 2}}.Encode())
		if !errors.Is(err, wire.ErrMalformed) || s.State() != reference.Failed {
			t.Errorf("%s: %+v, %v", name, step, err)
		}
		wiretest.WantBytes(t, step.Reply, reference.Status{}.Encode())
	}
	_, err := New(wire.Host, 0, senderHello(), nativeLimits)
	wantNative(t, err, wire.ErrMalformed)
}

func TestHellosThatAreRefused(t *testing.T) {
	good := AppendHello(nil, nativeRole{wire.Host, true, gridFile}.hello())
	good[8] = Supported.Max
	another := append([]byte(nil), good...)
	another[8] = Supported.Max + 1
	for name, msg := range map[string][]byte{"another version": another, "short": good[:39], "long": append(good, 0)} {
		n := reachNative(t, nativeRole{wire.DPU, false, gridFile}, "await-hello")
		step, err := n.Receive(msg)
		wiretest.WantCheck(t, name, err, wire.ErrMalformed)
		if notice, err := DecodeAbort(step.Reply); err != nil || notice.Code != wire.AbortProtocol {
			t.Errorf("%s: answered % x", name, step.Reply)
		}
	}
}

func TestWindowsAtTheirBoundaries(t *testing.T) {
	k := newPair(t, wire.Host, senderHello(), receiverHello())
	length := k.sender.plan.WindowLength()
	for name, test := range map[string]struct {
		address    uint64
		descriptor []byte
		want       error
	}{
		"no descriptor": {nativeAddress, nil, wire.ErrMalformed},
		"wraps":         {math.MaxUint64 - length + 2, nativeDescriptor, wire.ErrMalformed},
		"ends with it":  {math.MaxUint64 - length + 1, nativeDescriptor, nil},
	} {
		n := newPair(t, wire.Host, senderHello(), receiverHello()).sender
		_, err := n.Window(test.address, test.descriptor)
		wiretest.WantCheck(t, name, err, test.want)
	}
	for _, wrong := range []uint64{1, length - 1, length + 1, 2 * length} {
		n := newPair(t, wire.Host, senderHello(), receiverHello()).receiver
		_, err := n.Receive(encodeWindow(Window{nativeAddress, wrong, nativeDescriptor}))
		wantNative(t, err, wire.ErrMalformed)
	}
}

var (
	allPaths  = []wire.Path{wire.PathDMA, wire.PathFast, wire.PathTLS, wire.PathMessages, wire.PathRMA, wire.PathTCP}
	pathFlags = map[wire.Path]Flags{
		wire.PathFast: FlagFast, wire.PathTLS: FlagTLS, wire.PathMessages: FlagMessages, wire.PathRMA: FlagRMA,
		wire.PathTCP: FlagTCP,
	}
)

// pathPair returns a session on a path other than PathDMA with two slots.
func pathPair(t *testing.T, sending wire.Side, path wire.Path) *pair {
	from, to := senderHello(), receiverHello()
	from.Flags, to.Flags = from.Flags|pathFlags[path]|FlagNoDMA, to.Flags|pathFlags[path]
	return newPair(t, sending, from, to)
}

// Where the sender sends, the receiver has the window, regardless of its side. Where the receiver reads, the sender has
// it.
func TestOwnerOfTheWindow(t *testing.T) {
	for path := range pathFlags {
		for _, sending := range []wire.Side{wire.Host, wire.DPU, wire.Client, wire.Server} {
			checkWindowOwner(t, pathPair(t, sending, path))
		}
	}
}

func checkWindowOwner(t *testing.T, k *pair) {
	plan := k.sender.plan
	want, other := k.receiver, k.sender
	if plan.Path == wire.PathRMA {
		want, other = k.sender, k.receiver
	}
	if got := k.windowOwner(); got != want {
		t.Errorf("the %s has the window of the path %s, sent by the %s", got.side, plan.Path, k.sender.side)
		return
	}
	address, descriptor := windowOf(plan)
	_, err := other.Window(address, descriptor)
	wiretest.WantCheck(t, "of the other side", err, wire.ErrOutOfOrder)
	k.open()
	late := encodeWindow(Window{address, plan.WindowLength(), descriptor})
	_, err = want.Receive(late)
	wantNative(t, err, wire.ErrOutOfOrder)
}

// A receiver takes no WINDOW while content is on its way to its consumers.
func TestWindowOfConsumers(t *testing.T) {
	for _, sending := range []wire.Side{wire.Host, wire.DPU} {
		k := pathPair(t, sending, wire.PathFast)
		address, descriptor := windowOf(k.sender.plan)
		k.open()
		k.announce(rootFile())
		k.answer(need(0)...)
		k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{{Kind: DataRecord, Length: 1}}))
		late := encodeWindow(Window{address, k.sender.plan.WindowLength(), descriptor})
		_, err := k.receiver.Receive(late)
		wantNative(t, err, wire.ErrOutOfOrder)
	}
}

func TestConsumersAtTheirBoundaries(t *testing.T) {
	for name, test := range map[string]struct {
		address uint64
		ids     []byte
		want    error
	}{
		"one":               {0, AppendConsumers(nil, []uint32{1}), nil},
		"one for each slot": {0, AppendConsumers(nil, []uint32{0, 1<<32 - 1}), nil},
		"none":              {0, nil, wire.ErrMalformed},
		"more than slots":   {0, AppendConsumers(nil, []uint32{1, 2, 3}), wire.ErrMalformed},
		"one twice":         {0, AppendConsumers(nil, []uint32{1, 1}), wire.ErrMalformed},
		"half an id":        {0, make([]byte, 6), wire.ErrMalformed},
		"an address":        {1, AppendConsumers(nil, []uint32{1}), wire.ErrMalformed},
	} {
		checkWindow(t, name, pathPair(t, wire.Host, wire.PathFast), test.address, test.ids, test.want)
	}
}

// checkWindow checks that both sides judge a window alike.
func checkWindow(t *testing.T, name string, k *pair, address uint64, descriptor []byte, want error) {
	t.Helper()
	owner := k.windowOwner()
	_, err := owner.Window(address, descriptor)
	wiretest.WantCheck(t, name, err, want)
	_, err = k.other(owner).Receive(encodeWindow(Window{address, k.sender.plan.WindowLength(), descriptor}))
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		t.Errorf("%s: received with %v", name, err)
	}
}

func TestLanesAtTheirBoundaries(t *testing.T) {
	lanes := func(version, lanes byte, more ...byte) []byte {
		return append([]byte{version, lanes, 0, 0, 0, 0, 0, 0, 0, 9}, more...)
	}
	for name, test := range map[string]struct {
		address uint64
		lanes   []byte
		want    error
	}{
		"one":               {0, lanes(1, 1), nil},
		"one for each slot": {0, lanes(1, 2), nil},
		"more than slots":   {0, lanes(1, 3), wire.ErrMalformed},
		"none":              {0, lanes(1, 0), wire.ErrMalformed},
		"another version":   {0, lanes(2, 1), wire.ErrMalformed},
		"too long":          {0, lanes(1, 1, 0), wire.ErrMalformed},
		"too short":         {0, []byte{1, 1}, wire.ErrMalformed},
		"an address":        {1, lanes(1, 1), wire.ErrMalformed},
	} {
		checkWindow(t, name, pathPair(t, wire.Client, wire.PathTLS), test.address, test.lanes, test.want)
	}
	if n, window, err := Lanes(AppendLanes(nil, wire.MaxLanes, 1<<63), wire.MaxDepth); n != wire.MaxLanes ||
		window != 1<<63 {
		t.Errorf("got %d lanes of window %d (%v)", n, window, err)
	}
	if _, _, err := Lanes(AppendLanes(nil, wire.MaxLanes+1, 0), wire.MaxDepth); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("more lanes than MaxLanes: %v", err)
	}
}

// workersOf returns a descriptor with addresses of these lengths and a key.
func workersOf(key int, addresses ...int) []byte {
	w := Workers{Key: make([]byte, key)}
	for _, length := range addresses {
		w.Addresses = append(w.Addresses, make([]byte, length))
	}
	return AppendWorkers(nil, w)
}

func TestWorkersAtTheirBoundaries(t *testing.T) {
	version := workersOf(8, 1)
	version[0]++
	for name, test := range map[string]struct {
		path    wire.Path
		address uint64
		workers []byte
		want    error
	}{
		"messages, one":               {wire.PathMessages, 0, workersOf(8, 1), nil},
		"messages, one for each slot": {wire.PathMessages, 0, workersOf(8, 1, MaxWorkerAddress), nil},
		"messages, more than slots":   {wire.PathMessages, 0, workersOf(8, 1, 1, 1), wire.ErrMalformed},
		"messages, none":              {wire.PathMessages, 0, workersOf(8), wire.ErrMalformed},
		"messages, an empty address":  {wire.PathMessages, 0, workersOf(8, 1, 0), wire.ErrMalformed},
		"messages, too long":          {wire.PathMessages, 0, workersOf(8, MaxWorkerAddress+1), wire.ErrMalformed},
		"messages, no token":          {wire.PathMessages, 0, workersOf(0, 1), wire.ErrMalformed},
		"messages, a long token":      {wire.PathMessages, 0, workersOf(9, 1), wire.ErrMalformed},
		"messages, an address":        {wire.PathMessages, 1, workersOf(8, 1), wire.ErrMalformed},
		"messages, another version":   {wire.PathMessages, 0, version, wire.ErrMalformed},
		"messages, cut":               {wire.PathMessages, 0, workersOf(8, 1, 1)[:9], wire.ErrMalformed},
		"messages, half a length":     {wire.PathMessages, 0, workersOf(8, 1, 1)[:8], wire.ErrMalformed},
		"messages, more":              {wire.PathMessages, 0, append(workersOf(8, 1), 0), wire.ErrMalformed},
		"rma":                         {wire.PathRMA, nativeAddress, workersOf(MaxRemoteKey, 1), nil},
		"rma, two workers":            {wire.PathRMA, nativeAddress, workersOf(1, 1, 1), wire.ErrMalformed},
		"rma, no key":                 {wire.PathRMA, nativeAddress, workersOf(0, 1), wire.ErrMalformed},
		"rma, a long key":             {wire.PathRMA, nativeAddress, workersOf(MaxRemoteKey+1, 1), wire.ErrMalformed},
		"rma, half a key":             {wire.PathRMA, nativeAddress, workersOf(2, 1)[:8], wire.ErrMalformed},
		"rma, nothing":                {wire.PathRMA, nativeAddress, []byte{1}, wire.ErrMalformed},
	} {
		from, to := senderHello(), receiverHello()
		from.Flags, to.Flags = from.Flags|pathFlags[test.path]|FlagNoDMA, to.Flags|pathFlags[test.path]
		k := &pair{t: t, sender: newNative(t, wire.Client, from), receiver: newNative(t, wire.Server, to)}
		k.sender.machine.Limits.MaxMessage, k.receiver.machine.Limits.MaxMessage = 1<<14, 1<<14
		k.meet()
		checkWindow(t, name, k, test.address, test.workers, test.want)
	}
}

// What was appended is decoded as it was.
func TestDecodeWorkers(t *testing.T) {
	want := Workers{Addresses: [][]byte{[]byte("one"), []byte("three")}, Key: []byte("12345678")}
	got, err := DecodeWorkers(AppendWorkers(nil, want), wire.PathMessages, 2)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}
