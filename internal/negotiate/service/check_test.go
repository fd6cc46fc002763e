package service

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// longPath returns a path of that many bytes.
func longPath(length int) string {
	path := strings.Repeat("n/", length/2)
	if length%2 == 0 {
		return path[:length-2] + "nn"
	}
	return path + "n"
}

func TestShareNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "0": true, "_": true, "inbox": true, "a.b-c_9": true, strings.Repeat("z", 64): true,
		"": false, ".": false, "..": false, ".a": false, "-a": false, "A": false, "a/b": false, "a b": false,
		"ä": false, "a\x00": false, "a:": false, strings.Repeat("z", 65): false,
	} {
		if ValidShare(name) != want {
			t.Errorf("%q: got %t", name, !want)
		}
	}
}

func TestSharePaths(t *testing.T) {
	for path, want := range map[string]bool{
		"": true, "a": true, "a/b": true, "...": true, ".a": true, "-": true, "\xff\n": true, "a b/c:d": true,
		strings.Repeat("n", 255): true, longPath(4096): true, longPath(4095): true,
		"/": false, "/a": false, "a/": false, "a//b": false, ".": false, "..": false, "a/.": false, "../a": false,
		"a/../b": false, "a\x00b": false, strings.Repeat("n", 256): false, longPath(4097): false,
	} {
		if ValidSharePath(path) != want {
			t.Errorf("%.20q of %d bytes: got %t", path, len(path), !want)
		}
	}
}

// Of what is too long for the vectors, the longest is decoded, and one byte more is malformed.
func TestServiceLengthsAtTheirBoundaries(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		longest int
		message func(n int) any
	}{
		"pattern":  {MaxPattern, func(n int) any { return []Item{{Kind: ItemExclude, Text: text(n)}} }},
		"path":     {wire.MaxPath, func(n int) any { return []Item{{Kind: ItemPath, Text: longPath(n)}} }},
		"push":     {wire.MaxPath, func(n int) any { return with(pushRequest, longPath(n)) }},
		"pull":     {wire.MaxPath, func(n int) any { return with(pullRequest, longPath(n)) }},
		"accepted": {wire.MaxPath, func(n int) any { return Accepted{Path: longPath(n)} }},
		"list":     {wire.MaxPath, func(n int) any { return ListRequest{Place: Place{"a", longPath(n)}} }},
		"link": {wire.MaxLink, func(n int) any {
			return []Listed{{Kind: wire.EntrySymlink, Depth: 1, Name: "a", Link: text(n)}}
		}},
		"remove": {wire.MaxPath, func(n int) any { return RemoveRequest{Place: inbox, Paths: []string{longPath(n)}} }},
		"mkdir":  {wire.MaxPath, func(n int) any { return MakeDirRequest{Place: Place{"a", longPath(n)}} }},
		"remove in": {wire.MaxPath, func(n int) any {
			return RemoveRequest{Place: Place{"a", longPath(n)}, Paths: []string{"a"}}
		}},
		"ping text": {MaxPingText, func(n int) any { return servicePingMessage{0, PingText, []byte(text(n))} }},
		"pong text": {MaxPingText, func(n int) any { return servicePongMessage{0, PingText, []byte(text(n))} }},
		"ping":      {MaxPingSize, func(n int) any { return servicePingMessage{0, PingBytes, make([]byte, n)} }},
		"pong":      {MaxPingSize, func(n int) any { return servicePongMessage{0, PingBytes, make([]byte, n)} }},
	} {
		want := c.message(c.longest)
		if got, err := decodeService(encodeService(want)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s of %d bytes: %v", name, c.longest, err)
		}
		_, err := decodeService(encodeService(c.message(c.longest + 1)))
		wiretest.WantCheck(t, fmt.Sprintf("%s of %d bytes", name, c.longest+1), err, wire.ErrMalformed)
	}
}

func with(c CopyRequest, path string) CopyRequest {
	c.Place.Path = path
	return c
}

// The ITEMS of a copy are bounded on both sides: the command refuses to send more, and the daemon to receive it.
func TestServiceItemsAtTheirBoundaries(t *testing.T) {
	long := strings.Repeat("x", MaxPattern)
	for name, c := range map[string]struct {
		item  Item
		fit   int
		limit string
	}{
		"patterns":      {Item{Kind: ItemInclude, Text: "a"}, MaxPatterns, "more than 1000 patterns"},
		"paths":         {Item{Kind: ItemPath, Text: "a"}, MaxListedPaths, "more than 100000 paths"},
		"long patterns": {Item{Kind: ItemExclude, Text: long}, MaxPatterns, "more than 1000 patterns"},
		"long paths": {Item{Kind: ItemPath, Text: longPath(wire.MaxPath / 4)}, MaxItemsTogether / (wire.MaxPath / 4),
			"more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			l := greeted(t)
			items := make([]Item, c.fit+1)
			for i := range items {
				items[i] = c.item
			}
			wiretest.WantCheck(t, "as many as possible", CheckItems(items[:c.fit]), nil)
			wiretest.WantCheck(t, "one more", CheckItems(items), wire.ErrTooLarge)
			sendItems(l, items[:c.fit])
			_, used, err := l.ends[Command].Items(nil, items[c.fit:])
			if used != 0 || !errors.Is(err, wire.ErrTooLarge) || !strings.Contains(err.Error(), c.limit) {
				t.Errorf("sent %d items more, %v", used, err)
			}
			_, err = l.ends[Daemon].Receive(encodeItems(items[c.fit:]))
			if !errors.Is(err, wire.ErrTooLarge) || !strings.Contains(err.Error(), c.limit) {
				t.Errorf("received one item more, %v", err)
			}
		})
	}
}

// sendItems sends items in as many messages as needed.
func sendItems(l *serviceLink, items []Item) {
	l.t.Helper()
	for len(items) > 0 {
		msg, used, err := l.ends[Command].Items(nil, items)
		got := l.pass(Command, PeerItems)(msg, err).Items
		if len(got) != used || got[used-1] != items[used-1] {
			l.t.Fatalf("sent %d items, received %d", used, len(got))
		}
		items = items[used:]
	}
}

// The limits are those of one copy.
func TestServiceItemsAreForgotten(t *testing.T) {
	l := greeted(t)
	items := make([]Item, MaxPatterns)
	for i := range items {
		items[i] = Item{Kind: ItemExclude, Text: "a"}
	}
	for range 2 {
		sendItems(l, items)
		l.pass(Command, CopyRequested)(l.ends[Command].Copy(nil, pullRequest))
		l.pass(Daemon, Refused)(l.ends[Daemon].Refuse(nil, Refusal{Code: wire.AbortSource}))
	}
}

// narrow returns greeted sessions over the narrowest channel.
func narrow(t *testing.T) *serviceLink {
	t.Helper()
	l := greeted(t)
	for _, s := range l.ends {
		s.machine.Limits.MaxMessage = MaxGreeting
	}
	return l
}

// No message is longer than the channel's limit. Lists are cut, and what cannot be is refused.
func TestServiceMessagesFitTheChannel(t *testing.T) {
	l := narrow(t)
	command := l.ends[Command]
	room := MaxGreeting - copySize - len("inbox")
	_, err := command.Copy(nil, with(pushRequest, strings.Repeat("n", room+1)))
	wiretest.WantCheck(t, "a long COPY", err, wire.ErrTooLarge)
	told := with(pushRequest, strings.Repeat("n", room-20))
	told.Local = "/a/long/path/at/the/command"
	msg, err := command.Copy(nil, told)
	got, decodeErr := wire.Decode(msg, wire.TypeCopy, (*CopyRequest).fields)
	if err != nil || decodeErr != nil || got.Local != "...th/at/the/command" || len(msg) != MaxGreeting {
		t.Errorf("told %q in %d bytes: %v", got.Local, len(msg), errors.Join(err, decodeErr))
	}
	l = narrow(t)
	command = l.ends[Command]
	room = MaxGreeting - placeRequestSize - len("inbox")
	_, err = command.List(nil, ListRequest{Place: Place{"inbox", strings.Repeat("n", room+1)}})
	wiretest.WantCheck(t, "a long LIST", err, wire.ErrTooLarge)
	_, err = command.Ping(nil, make([]byte, MaxGreeting-PingHeader+1), PingBytes)
	wiretest.WantCheck(t, "a long PING", err, wire.ErrTooLarge)
	pattern := strings.Repeat("x", MaxGreeting-wire.ListSize-itemSize+1)
	_, used, err := command.Items(nil, []Item{{Kind: ItemExclude, Text: pattern}})
	wiretest.WantCheck(t, "a long ITEMS", err, wire.ErrTooLarge)
	remove := RemoveRequest{Place: inbox, Paths: []string{strings.Repeat("n", MaxGreeting)}}
	_, long, err := command.Remove(nil, remove)
	wiretest.WantCheck(t, "a long REMOVE", err, wire.ErrTooLarge)
	if l.want(Ready, Ready); used != 0 || long != 0 {
		t.Errorf("sent %d items, %d paths", used, long)
	}
	for i, c := range []struct {
		event Event
		call  func() ([]byte, error)
	}{
		{Pinged, func() ([]byte, error) {
			return command.Ping(nil, make([]byte, MaxGreeting-PingHeader), PingBytes)
		}},
		{ListRequested, func() ([]byte, error) {
			return command.List(nil, ListRequest{Place: Place{"inbox", strings.Repeat("n", room)}})
		}},
		{PeerItems, func() ([]byte, error) {
			msg, _, err := command.Items(nil, []Item{
				{Kind: ItemExclude, Text: strings.Repeat("x", room)}, {Kind: ItemInclude, Text: "y"},
			})
			return msg, err
		}},
	} {
		l = narrow(t)
		command = l.ends[Command]
		if msg := wiretest.Must(t)(c.call()); len(msg) > MaxGreeting || len(msg) < MaxGreeting-8 {
			t.Errorf("%d: %d bytes", i, len(msg))
		} else {
			l.pass(Command, c.event)(msg, nil)
		}
	}
}

func TestServiceAnswersFitTheChannel(t *testing.T) {
	long := strings.Repeat("é", 300)
	l := narrow(t)
	l.pass(Command, CopyRequested)(l.ends[Command].Copy(nil, pullRequest))
	path := strings.Repeat("n", MaxGreeting-acceptedSize+1)
	_, err := l.ends[Daemon].Accept(nil, Accepted{Kind: CopyTree, Path: path})
	wiretest.WantCheck(t, "a long ACCEPTED", err, wire.ErrTooLarge)
	refusal := l.pass(Daemon, Refused)(l.ends[Daemon].Refuse(nil, Refusal{Code: wire.AbortSource, Text: long})).Refusal
	if want := long[:(MaxGreeting-refusedSize)&^1]; refusal.Text != want {
		t.Errorf("got %q", refusal.Text)
	}
	l.pass(Command, ListRequested)(l.ends[Command].List(nil, ListRequest{Place: inbox}))
	l.passSome(Daemon, PeerListed, 1)(l.ends[Daemon].Listed(nil, listedRoot()))
	end := l.pass(Daemon, PeerListEnd)(l.ends[Daemon].ListEnd(nil, wire.AbortSource, long)).ListEnd
	if want := long[:(MaxGreeting-listEndSize)&^1]; end.Text != want {
		t.Errorf("got %q", end.Text)
	}
	l.pass(Command, Pinged)(l.ends[Command].Ping(nil, nil, PingText))
	answer := l.pass(Daemon, RoundTrip)(l.ends[Daemon].Pong(nil, []byte("\xff"+long))).Ping
	if want := "?" + long[:(MaxGreeting-PingHeader-1)&^1]; string(answer.Payload) != want {
		t.Errorf("got %q", answer.Payload)
	}
	l.ends[Daemon].machine.Limits.MaxMessage, l.ends[Command].machine.Limits.MaxMessage = serviceLimit, serviceLimit
	l.pass(Command, Pinged)(l.ends[Command].Ping(nil, nil, PingText))
	answer = l.pass(Daemon, RoundTrip)(l.ends[Daemon].Pong(nil, make([]byte, MaxPingText+1))).Ping
	if len(answer.Payload) != MaxPingText {
		t.Errorf("%d bytes of text", len(answer.Payload))
	}
}

// The results of a REMOVE fit into a message, even if all have failed; only their texts are shortened.
func TestServiceRemovalsFitTheChannel(t *testing.T) {
	l := narrow(t)
	paths := strings.Split(strings.Repeat("a", 60), "")
	request := encodeRemove(RemoveRequest{Place: Place{Share: "a"}, Paths: paths})
	if len(request) > MaxGreeting {
		t.Fatalf("%d bytes", len(request))
	}
	msg, used, err := l.ends[Command].Remove(nil, RemoveRequest{Place: Place{Share: "a"}, Paths: paths})
	if want := (MaxGreeting - wire.ListSize) / removedSize; used != want {
		t.Fatalf("%d paths instead of %d", used, want)
	}
	l.pass(Command, RemoveRequested)(msg, err)
	results := make([]Removal, used)
	for i := range results {
		results[i] = Removal{wire.AbortTarget, "not empty"}
	}
	got := l.pass(Daemon, PeerRemoved)(l.ends[Daemon].Removed(nil, results)).Removed
	if len(got) != used || got[used-1].Code != wire.AbortTarget {
		t.Errorf("got %v", got)
	}
	_, err = narrow(t).ends[Daemon].Receive(request)
	wiretest.WantCheck(t, "41 paths", err, wire.ErrTooLarge)
}

func TestServiceRemovalTexts(t *testing.T) {
	results := []Removal{{wire.AbortTarget, strings.Repeat("é", 100)}, {wire.AbortTarget, "gone"}, {},
		{wire.AbortTarget, "abcdef"}}
	got, err := wire.DecodeList(
		nil, AppendRemoved(nil, results, wire.ListSize+4*removedSize+128+4+3), wire.TypeRemoved, (*Removal).fields)
	want := []Removal{{wire.AbortTarget, strings.Repeat("é", 64)}, {wire.AbortTarget, "gone"}, {}, {wire.AbortTarget,
		"abc"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

// A list is cut where the next element does not fit or is wrong.
func TestServiceListsAreCut(t *testing.T) {
	l := greeted(t)
	command, daemon := l.ends[Command], l.ends[Daemon]
	l.pass(Command, ListRequested)(command.List(nil, ListRequest{ListRecursive, inbox}))
	entries := listedRoot()
	for i := range 200 {
		entries = append(entries, listedAt(1, wire.EntryFile, fmt.Sprintf("f%03d", i)))
	}
	msg, used, err := daemon.Listed(nil, entries)
	if want := 1 + (serviceLimit-wire.ListSize-listedSize)/(listedSize+4); used != want || len(msg) > serviceLimit {
		t.Errorf("%d entries instead of %d, in %d bytes", used, want, len(msg))
	}
	l.pass(Daemon, PeerListed)(msg, err)
	if _, used, err = daemon.Listed(nil, entries[:1]); used != 0 || !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("sent a second root: %d, %v", used, err)
	}
	wide := Listed{Kind: wire.EntrySymlink, Depth: 1, Name: "g", Link: strings.Repeat("x",
		serviceLimit-wire.ListSize-listedSize)}
	if _, used, err = daemon.Listed(nil, []Listed{wide}); used != 0 || !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("sent %d entries that do not fit, %v", used, err)
	}
	wide.Link = wide.Link[1:]
	l.passSome(Daemon, PeerListed, 1)(daemon.Listed(nil, []Listed{wide, listedAt(1, wire.EntryFile, "a")}))
	l.pass(Daemon, PeerListEnd)(daemon.ListEnd(nil, wire.AbortLimit, "too long"))
	request := RemoveRequest{Place: inbox, Paths: []string{"a", "..", "b"}}
	l.passSome(Command, RemoveRequested, 1)(command.Remove(nil, request))
	l.pass(Daemon, PeerRemoved)(daemon.Removed(nil, []Removal{{}}))
	items := []Item{{Kind: ItemExclude, Text: "a"}, {Kind: ItemExclude, Text: ""}, {Kind: ItemExclude, Text: "b"}}
	l.passSome(Command, PeerItems, 1)(command.Items(nil, items))
}

// Empty and invalid arguments are refused.
func TestServiceArguments(t *testing.T) {
	l := greeted(t)
	command := l.ends[Command]
	items := func(list ...Item) error { _, _, err := command.Items(nil, list); return err }
	remove := func(place Place, paths ...string) error {
		_, _, err := command.Remove(nil, RemoveRequest{Place: place, Paths: paths})
		return err
	}
	for name, call := range map[string]func() error{
		"no items":   func() error { return items() },
		"a bad item": func() error { return items(Item{Kind: 9, Text: "a"}) },
		"no paths":   func() error { return remove(inbox) },
		"the place":  func() error { return remove(inbox, "") },
		"no share":   func() error { return remove(Place{}, "a") },
		"a bad share": func() error {
			return wiretest.Second(command.List(nil,
				ListRequest{Place: Place{Share: ".."}}))
		},
		"a bad path": func() error {
			return wiretest.Second(command.List(nil, ListRequest{Place: Place{"a",
				"../b"}}))
		},
		"a bad copy": func() error { return wiretest.Second(command.Copy(nil, CopyRequest{})) },
		"a large text": func() error {
			return wiretest.Second(command.Ping(nil, make([]byte, MaxPingText+1),
				PingText))
		},
		"a large payload": func() error {
			return wiretest.Second(command.Ping(nil, make([]byte, MaxPingSize+1),
				PingBytes))
		},
	} {
		before := serviceSnapshotOf(command)
		wiretest.WantCheck(t, name, call(), wire.ErrMalformed)
		if !reflect.DeepEqual(serviceSnapshotOf(command), before) {
			t.Errorf("%s: changes something", name)
		}
	}
	l.pass(Command, ListRequested)(command.List(nil, ListRequest{Place: inbox}))
	_, _, err := l.ends[Daemon].Listed(nil, nil)
	wiretest.WantCheck(t, "no entries", err, wire.ErrMalformed)
}

// The order of a list is checked by both sides, in one message and in several.
func TestServiceListsAtTheirBoundaries(t *testing.T) {
	file := func(depth int, name string) Listed { return listedAt(depth, wire.EntryFile, name) }
	directory := func(depth int, name string) Listed { return listedAt(depth, wire.EntryDirectory, name) }
	link := Listed{Kind: wire.EntrySymlink, Depth: 1, Name: "l", Link: "x"}
	special, mounted := listedAt(1, wire.EntrySpecial, "a"), Listed{Kind: wire.EntryDirectory, Depth: 1, Name: "b",
		Mounted: true}
	long := strings.Repeat("n", 255)
	deep := listedRoot()
	for i := range 16 {
		deep = append(deep, directory(i+1, long))
	}
	for name, c := range map[string]struct {
		flags   ListFlags
		entries []Listed
		want    error
	}{
		"a file":                 {0, []Listed{file(0, "")}, nil},
		"a symlink":              {0, []Listed{{Kind: wire.EntrySymlink, Link: "x"}}, nil},
		"a directory":            {0, listedRoot(directory(1, "a"), file(1, "b"), link), nil},
		"itself":                 {ListItself, listedRoot(), nil},
		"a special file itself":  {ListItself | ListAll, []Listed{listedAt(0, wire.EntrySpecial, "")}, nil},
		"a mount point itself":   {ListItself | ListAll, []Listed{{Kind: wire.EntryDirectory, Mounted: true}}, nil},
		"all":                    {ListAll, listedRoot(special, mounted), nil},
		"a special file":         {0, listedRoot(special), wire.ErrMalformed},
		"a mount point":          {0, listedRoot(mounted), wire.ErrMalformed},
		"below a special file":   {ListAll | ListRecursive, listedRoot(special, file(2, "a")), wire.ErrMalformed},
		"more than itself":       {ListItself, listedRoot(file(1, "a")), wire.ErrMalformed},
		"below a directory":      {0, listedRoot(directory(1, "a"), file(2, "a")), wire.ErrMalformed},
		"recursive":              {ListRecursive, listedRoot(directory(1, "a"), file(2, "a"), file(1, "b")), nil},
		"no root":                {0, []Listed{file(1, "a")}, wire.ErrMalformed},
		"two roots":              {0, append(listedRoot(), listedRoot()...), wire.ErrMalformed},
		"below a file":           {ListRecursive, listedRoot(file(1, "a"), file(2, "a")), wire.ErrMalformed},
		"below a symlink":        {ListRecursive, listedRoot(link, file(2, "a")), wire.ErrMalformed},
		"below a file, the root": {0, []Listed{file(0, ""), file(1, "a")}, wire.ErrMalformed},
		"twice":                  {0, listedRoot(file(1, "a"), file(1, "a")), wire.ErrMalformed},
		"unsorted":               {0, listedRoot(file(1, "b"), file(1, "a")), wire.ErrMalformed},
		"sorted by bytes":        {0, listedRoot(file(1, "B"), file(1, "a"), file(1, "\xff")), nil},
		"a depth left out":       {ListRecursive, listedRoot(file(2, "a")), wire.ErrMalformed},
		"a path of 4095 bytes":   {ListRecursive, append(deep[:16:16], file(16, long)), nil},
		"a path of 4097 bytes":   {ListRecursive, append(deep[:17:17], file(17, "n")), wire.ErrMalformed},
	} {
		for _, together := range []bool{false, true} {
			how := fmt.Sprintf("%s, together %t", name, together)
			wiretest.WantCheck(t, how+", sent", sendList(t, c.flags, c.entries, together), c.want)
			wiretest.WantCheck(t, how+", received", receiveList(t, c.flags, c.entries, together), c.want)
		}
	}
}

// sendList lists entries on the daemon, in one message or in several.
func sendList(t *testing.T, flags ListFlags, entries []Listed, together bool) error {
	t.Helper()
	l := greeted(t)
	l.pass(Command, ListRequested)(l.ends[Command].List(nil, ListRequest{flags, inbox}))
	for len(entries) > 0 {
		next := 1
		if together {
			next = len(entries)
		}
		_, used, err := l.ends[Daemon].Listed(nil, entries[:next])
		if err != nil {
			return err
		}
		entries = entries[used:]
	}
	return nil
}

// receiveList lets a command receive entries, in one message or in several.
func receiveList(t *testing.T, flags ListFlags, entries []Listed, together bool) error {
	t.Helper()
	l := greeted(t)
	l.ends[Command].machine.Limits.MaxMessage = 1 << 16
	l.pass(Command, ListRequested)(l.ends[Command].List(nil, ListRequest{flags, inbox}))
	for len(entries) > 0 {
		next := 1
		if together {
			next = len(entries)
		}
		step, err := l.ends[Command].Receive(encodeListed(entries[:next]))
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(step.Listed, entries[:next]) {
			t.Errorf("got %+v, want %+v", step.Listed, entries[:next])
		}
		entries = entries[next:]
	}
	return nil
}

func TestCheckItems(t *testing.T) {
	wiretest.WantCheck(t, "none", CheckItems(nil), nil)
	wiretest.WantCheck(t, "one of two", CheckItems([]Item{
		{Kind: ItemExclude, Text: "a"}, {Kind: ItemPath, Text: ".."},
	}), wire.ErrMalformed)
}

func TestServiceListEnds(t *testing.T) {
	for count, want := range map[uint32]error{0: wire.ErrMalformed, 1: nil, 2: wire.ErrMalformed,
		math.MaxUint32: wire.ErrMalformed} {
		s := reachService(t, Command, "listed")
		_, err := s.Receive(encodeListEnd(ListEnd{Count: count}))
		wiretest.WantCheck(t, fmt.Sprintf("%d entries", count), err, want)
	}
}

// Strings of a step stay valid when the message and later ones are overwritten.
func TestServiceStepsShareNoTextWithMessages(t *testing.T) {
	l := greeted(t)
	msg, _, err := l.ends[Command].Items(nil, []Item{{Kind: ItemExclude, Text: "pattern"}})
	if err != nil {
		t.Fatal(err)
	}
	step, err := l.ends[Daemon].Receive(msg)
	if err != nil {
		t.Fatal(err)
	}
	kept := step.Items[0].Text
	clear(msg)
	msg = wiretest.Must(t)(l.ends[Command].Copy(nil, pullRequest))
	step, err = l.ends[Daemon].Receive(msg)
	clear(msg)
	if err != nil || step.Copy != pullRequest || kept != "pattern" {
		t.Errorf("%+v, %q, %v", step.Copy, kept, err)
	}
}

// The calls that a copy and a ping make for each message do not allocate.
func TestServiceAllocations(t *testing.T) {
	l := greeted(t)
	command, daemon := l.ends[Command], l.ends[Daemon]
	payload := bytes.Repeat([]byte{1}, 1000)
	ping, pong := make([]byte, 0, serviceLimit), make([]byte, 0, serviceLimit)
	roundTrip := func() {
		step := l.pass(Command, Pinged)(command.Ping(ping, payload, PingBytes))
		l.pass(Daemon, RoundTrip)(daemon.Pong(pong, step.Ping.Payload))
	}
	roundTrip()
	if n := testing.AllocsPerRun(100, roundTrip); n > 2 { // those of pass itself
		t.Errorf("%v allocations for a round trip", n)
	}
	l.pass(Command, CopyRequested)(command.Copy(nil, pushRequest))
	l.pass(Daemon, CopyAccepted)(daemon.Accept(nil, pushAccepted))
	native := func() { l.pass(Command, PeerNative)(nativeMessages[0], command.Native(nativeMessages[0])) }
	if n := testing.AllocsPerRun(100, native); n > 1 {
		t.Errorf("%v allocations for a message of the native session", n)
	}
}
