package negotiate

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// NewNative finds wrong values in this side's own HELLO.
func TestNewNativeRefusesWhatAPeerWould(t *testing.T) {
	for name, spoil := range map[string]func(*Hello){
		"chunk": func(h *Hello) { h.Chunk = 0 },
		"kinds": func(h *Hello) { h.Flags |= FlagStream },
		"flags": func(h *Hello) { h.Flags |= 1 << 31 },
		"name":  func(h *Hello) { h.Software = strings.Repeat("x", 65) },
	} {
		own := senderHello()
		spoil(&own)
		if n, err := NewNative(Host, 2, own, nativeLimits); n != nil || !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
		s := NewSession(Host, Local{HasFile: true, Native: &Offer{Own: own}}, nativeLimits)
		s.Start()
		step, err := s.Receive(Direction{Offer: [3]byte{0xDC, 2, 2}}.Encode())
		if !errors.Is(err, ErrMalformed) || s.State() != Failed {
			t.Errorf("%s: %+v, %v", name, step, err)
		}
		wantBytes(t, step.Reply, Status{}.Encode())
	}
	_, err := NewNative(Host, 0, senderHello(), nativeLimits)
	wantNative(t, err, ErrMalformed)
}

func TestHellosThatAreRefused(t *testing.T) {
	good := AppendHello(nil, nativeRole{Host, true, gridFile}.hello())
	good[8] = Supported.Max
	another := append([]byte(nil), good...)
	another[8] = Supported.Max + 1
	for name, msg := range map[string][]byte{"another version": another, "short": good[:39], "long": append(good, 0)} {
		n := reachNative(t, nativeRole{DPU, false, gridFile}, "await-hello")
		step, err := n.Receive(msg)
		wantCheck(t, name, err, ErrMalformed)
		if notice, err := DecodeAbort(step.Reply); err != nil || notice.Code != AbortProtocol {
			t.Errorf("%s: answered % x", name, step.Reply)
		}
	}
}

func TestWindowsAtTheirBoundaries(t *testing.T) {
	k := newPair(t, Host, senderHello(), receiverHello())
	length := k.sender.plan.WindowLength()
	for name, test := range map[string]struct {
		address    uint64
		descriptor []byte
		want       error
	}{
		"no descriptor": {nativeAddress, nil, ErrMalformed},
		"wraps":         {math.MaxUint64 - length + 2, nativeDescriptor, ErrMalformed},
		"ends with it":  {math.MaxUint64 - length + 1, nativeDescriptor, nil},
	} {
		n := newPair(t, Host, senderHello(), receiverHello()).sender
		_, err := n.Window(test.address, test.descriptor)
		wantCheck(t, name, err, test.want)
	}
	for _, wrong := range []uint64{1, length - 1, length + 1, 2 * length} {
		n := newPair(t, Host, senderHello(), receiverHello()).receiver
		_, err := n.Receive(AppendWindow(nil, Window{nativeAddress, wrong, nativeDescriptor}))
		wantNative(t, err, ErrMalformed)
	}
}

var (
	allPaths  = []Path{PathDMA, PathFast, PathTLS, PathMessages, PathRMA, PathTCP}
	pathFlags = map[Path]Flags{
		PathFast: FlagFast, PathTLS: FlagTLS, PathMessages: FlagMessages, PathRMA: FlagRMA,
		PathTCP: FlagTCP,
	}
)

// pathPair returns a session on a path other than PathDMA with two slots.
func pathPair(t *testing.T, sending Side, path Path) *pair {
	from, to := senderHello(), receiverHello()
	from.Flags, to.Flags = from.Flags|pathFlags[path]|FlagNoDMA, to.Flags|pathFlags[path]
	return newPair(t, sending, from, to)
}

// Where the sender sends, the receiver has the window, whatever its side. Where the receiver reads, the sender has it.
func TestOwnerOfTheWindow(t *testing.T) {
	for path := range pathFlags {
		for _, sending := range []Side{Host, DPU, Client, Server} {
			checkWindowOwner(t, pathPair(t, sending, path))
		}
	}
}

func checkWindowOwner(t *testing.T, k *pair) {
	plan := k.sender.plan
	want, other := k.receiver, k.sender
	if plan.Path == PathRMA {
		want, other = k.sender, k.receiver
	}
	if got := k.windowOwner(); got != want {
		t.Errorf("the %s has the window of the path %s, sent by the %s", got.side, plan.Path, k.sender.side)
		return
	}
	address, descriptor := windowOf(plan)
	_, err := other.Window(address, descriptor)
	wantCheck(t, "of the other side", err, ErrOutOfOrder)
	k.open()
	late := AppendWindow(nil, Window{address, plan.WindowLength(), descriptor})
	_, err = want.Receive(late)
	wantNative(t, err, ErrOutOfOrder)
}

// A receiver takes no WINDOW while content is on its way to its consumers.
func TestWindowOfConsumers(t *testing.T) {
	for _, sending := range []Side{Host, DPU} {
		k := pathPair(t, sending, PathFast)
		address, descriptor := windowOf(k.sender.plan)
		k.open()
		k.announce(rootFile())
		k.answer(need(0)...)
		k.say(k.sender, Announced)(k.sender.Chunks(nil, []Record{{Kind: DataRecord, Length: 1}}))
		late := AppendWindow(nil, Window{address, k.sender.plan.WindowLength(), descriptor})
		_, err := k.receiver.Receive(late)
		wantNative(t, err, ErrOutOfOrder)
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
		"none":              {0, nil, ErrMalformed},
		"more than slots":   {0, AppendConsumers(nil, []uint32{1, 2, 3}), ErrMalformed},
		"one twice":         {0, AppendConsumers(nil, []uint32{1, 1}), ErrMalformed},
		"half an id":        {0, make([]byte, 6), ErrMalformed},
		"an address":        {1, AppendConsumers(nil, []uint32{1}), ErrMalformed},
	} {
		checkWindow(t, name, pathPair(t, Host, PathFast), test.address, test.ids, test.want)
	}
}

// checkWindow checks that both sides judge a window alike.
func checkWindow(t *testing.T, name string, k *pair, address uint64, descriptor []byte, want error) {
	t.Helper()
	owner := k.windowOwner()
	_, err := owner.Window(address, descriptor)
	wantCheck(t, name, err, want)
	_, err = k.other(owner).Receive(AppendWindow(nil, Window{address, k.sender.plan.WindowLength(), descriptor}))
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
		"more than slots":   {0, lanes(1, 3), ErrMalformed},
		"none":              {0, lanes(1, 0), ErrMalformed},
		"another version":   {0, lanes(2, 1), ErrMalformed},
		"too long":          {0, lanes(1, 1, 0), ErrMalformed},
		"too short":         {0, []byte{1, 1}, ErrMalformed},
		"an address":        {1, lanes(1, 1), ErrMalformed},
	} {
		checkWindow(t, name, pathPair(t, Client, PathTLS), test.address, test.lanes, test.want)
	}
	if n, window, err := Lanes(AppendLanes(nil, MaxLanes, 1<<63), MaxDepth); n != MaxLanes || window != 1<<63 {
		t.Errorf("got %d lanes of window %d (%v)", n, window, err)
	}
	if _, _, err := Lanes(AppendLanes(nil, MaxLanes+1, 0), MaxDepth); !errors.Is(err, ErrMalformed) {
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
		path    Path
		address uint64
		workers []byte
		want    error
	}{
		"messages, one":               {PathMessages, 0, workersOf(8, 1), nil},
		"messages, one for each slot": {PathMessages, 0, workersOf(8, 1, MaxWorkerAddress), nil},
		"messages, more than slots":   {PathMessages, 0, workersOf(8, 1, 1, 1), ErrMalformed},
		"messages, none":              {PathMessages, 0, workersOf(8), ErrMalformed},
		"messages, an empty address":  {PathMessages, 0, workersOf(8, 1, 0), ErrMalformed},
		"messages, too long":          {PathMessages, 0, workersOf(8, MaxWorkerAddress+1), ErrMalformed},
		"messages, no token":          {PathMessages, 0, workersOf(0, 1), ErrMalformed},
		"messages, a long token":      {PathMessages, 0, workersOf(9, 1), ErrMalformed},
		"messages, an address":        {PathMessages, 1, workersOf(8, 1), ErrMalformed},
		"messages, another version":   {PathMessages, 0, version, ErrMalformed},
		"messages, cut":               {PathMessages, 0, workersOf(8, 1, 1)[:9], ErrMalformed},
		"messages, half a length":     {PathMessages, 0, workersOf(8, 1, 1)[:8], ErrMalformed},
		"messages, more":              {PathMessages, 0, append(workersOf(8, 1), 0), ErrMalformed},
		"rma":                         {PathRMA, nativeAddress, workersOf(MaxRemoteKey, 1), nil},
		"rma, two workers":            {PathRMA, nativeAddress, workersOf(1, 1, 1), ErrMalformed},
		"rma, no key":                 {PathRMA, nativeAddress, workersOf(0, 1), ErrMalformed},
		"rma, a long key":             {PathRMA, nativeAddress, workersOf(MaxRemoteKey+1, 1), ErrMalformed},
		"rma, half a key":             {PathRMA, nativeAddress, workersOf(2, 1)[:8], ErrMalformed},
		"rma, nothing":                {PathRMA, nativeAddress, []byte{1}, ErrMalformed},
	} {
		from, to := senderHello(), receiverHello()
		from.Flags, to.Flags = from.Flags|pathFlags[test.path]|FlagNoDMA, to.Flags|pathFlags[test.path]
		k := &pair{t: t, sender: newNative(t, Client, from), receiver: newNative(t, Server, to)}
		k.sender.machine.limits.MaxMessage, k.receiver.machine.limits.MaxMessage = 1<<14, 1<<14
		k.meet()
		checkWindow(t, name, k, test.address, test.workers, test.want)
	}
}

// What was appended is decoded as it was.
func TestDecodeWorkers(t *testing.T) {
	want := Workers{Addresses: [][]byte{[]byte("one"), []byte("three")}, Key: []byte("12345678")}
	got, err := DecodeWorkers(AppendWorkers(nil, want), PathMessages, 2)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}
