//go:build cgo

package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dma-copy/dma-copy/internal/exit"
	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/share"
)

// simFiles is what each file of a share may hold: several contents if requests have failed. Of a file that may be
// absent, the empty one is among them.
type simFiles struct {
	byName map[string]simContents

	// late says that a call into the disk may take effect long after the request has failed, so that no content is
	// certain.
	late bool
}

// simContents are what a file may hold now, and what a loss of power can bring back.
type simContents struct{ now, ghosts []string }

const (
	simVariants = 4
	simNames    = 3 // files of a client, and of a tree
)

// fileOf returns a name that tells whose file it is.
func fileOf(client int, name string) string { return fmt.Sprintf("f%d-%s", client, name) }

// privateText is what only one client has and may have. Sizes tell variants apart.
func privateText(client, variant int) string { return simText("private", client, variant) }

func publicText(client, variant int) string { return simText("public", client, variant) }

func simText(kind string, client, variant int) string {
	return strings.Repeat(fmt.Sprintf("%s %d variant %d\n", kind, client, variant), 30+variant*700)
}

func isSimText(text, kind string) bool {
	client, variant := 0, 0
	n, err := fmt.Sscanf(text, kind+" %d variant %d\n", &client, &variant)
	return err == nil && n == 2 && text == simText(kind, client, variant)
}

func (f *simFiles) of(name string) []string {
	if got := f.byName[name].now; got != nil {
		return got
	}
	return []string{""}
}

// The codes of a copy to a file that exists with another content, or to a tree with such files, without the right to
// replace them.
const (
	simDiffers    = int(wire.AbortSource)
	simSomeDiffer = 12
)

// set notes what a file holds for certain. Unless that is durable, a loss of power brings back what was there.
func (f *simFiles) set(name, text string, durable bool) {
	if f.late {
		f.add(name, text)
		return
	}
	ghosts := slices.Concat(f.byName[name].ghosts, f.of(name))
	if durable && len(f.of(name)) == 1 {
		ghosts = nil
	}
	f.byName[name] = simContents{[]string{text}, ghosts}
}

// add notes what a file may hold, too.
func (f *simFiles) add(name, text string) {
	now := f.of(name)
	if !slices.Contains(now, text) {
		now = append(slices.Clone(now), text)
	}
	f.byName[name] = simContents{now, f.byName[name].ghosts}
}

// crash brings back what was not durable.
func (f *simFiles) crash() {
	for _, name := range slices.Collect(maps.Keys(f.byName)) {
		for _, ghost := range f.byName[name].ghosts {
			f.add(name, ghost)
		}
		f.byName[name] = simContents{f.byName[name].now, nil}
	}
}

// may reports whether a file may hold a text; of an absent file it is empty.
func (f *simFiles) may(name, text string) bool { return slices.Contains(f.of(name), text) }

// judge notes a request, and checks its result: with a client that is fine it has one of the codes.
func (c *simClient) judge(o Operation, at protocol.Place, began time.Time, err error, codes ...int) {
	m := c.current.Load()
	m.requests = append(m.requests, simRequest{o, at.Share, at.Path, err})
	if at.Share == droppedShare && c.disruption == reloaded {
		codes = append(codes, int(wire.AbortRefused))
		if since := c.droppedAt.Load(); err == nil && since != 0 && began.UnixNano() > since {
			c.Errorf("client %d: %s succeeds in a share that is gone", c.number, o)
		}
	}
	if o.Copies() && c.waits() {
		c.inTime(string(o), began, err)
	} else {
		c.promptly(m, string(o), began, err)
	}
	c.results.note(o, exit.Code(err))
	if c.isFine(m) && !slices.Contains(codes, exit.Code(err)) && !c.mayBeLimited(err) {
		c.Errorf("client %d: %s %s/%s gives %d in place of %v: %v", c.number, o, at.Share, at.Path, exit.Code(err),
			codes, err)
	}
}

// request makes a random one.
func (c *simClient) request() {
	if c.crashed.Swap(false) {
		c.model.crash()
	}
	n, variant, overwrite := c.random.IntN(simNames), c.random.IntN(simVariants), c.random.IntN(3) > 0
	own, name := privateShare(c.number), fileOf(c.number, fmt.Sprint(n))
	other := []string{
		"common", "common", "in", "out", "keep", "hidden", "none", c.foreignShare(),
	}[c.random.IntN(8)]
	var do func()
	switch c.random.IntN(14) {
	case 0, 1:
		do = func() { c.push(name, variant, overwrite) }
	case 2, 3:
		do = func() { c.pull(name) }
	case 4:
		do = func() { c.pushTree(variant, overwrite) }
	case 5:
		do = c.sync
	case 6:
		do = func() { c.remove(name) }
	case 7:
		do = func() { c.list(own) }
	case 8:
		do = func() { c.list(other) }
	case 9:
		do = func() { c.pushElsewhere(other, fmt.Sprint("shared-", n), variant, overwrite) }
	case 10:
		do = func() { c.pullElsewhere(other, fmt.Sprint("shared-", n)) }
	case 12:
		do = func() { c.removeElsewhere(other, fmt.Sprint("shared-", n)) }
	case 11:
		do = c.listShares
	default:
		do = func() { c.ping(overwrite) }
	}
	m := c.current.Load()
	before := len(m.requests)
	c.endingInTime(m, do)
	if len(m.requests) > before && m.requests[len(m.requests)-1].err != nil && m.lost() {
		c.repeat = do
	}
}

// foreignShare returns the private share of a client with another key.
func (c *simClient) foreignShare() string {
	for i := range c.clients {
		if other := c.clients[(c.number+i)%len(c.clients)]; other.key != c.key {
			return privateShare(other.number)
		}
	}
	return "none"
}

// tooLarge reports whether a text exceeds the limit of the key.
func (c *simClient) tooLarge(text string) bool {
	return c.grant.maxBytes > 0 && int64(len(text)) > c.grant.maxBytes
}

// endingInTime interrupts requests that would go on without end.
func (c *simClient) endingInTime(m *simConnection, do func()) {
	defer time.AfterFunc(simNames*c.bound, func() {
		c.Errorf("client %d: a request does not end", c.number)
		m.interrupt(errSimInterrupted)
	}).Stop()
	do()
}

// pushCodes are what a push of a text may end with.
func (f *simFiles) pushCodes(name, text string, overwrite bool) (codes []int) {
	for _, is := range f.of(name) {
		if is == "" || is == text || overwrite {
			codes = append(codes, 0)
		} else {
			codes = append(codes, simDiffers)
		}
	}
	return codes
}

// pushed notes the result of a push.
func (f *simFiles) pushed(name, text string, overwrite bool, err error) {
	switch {
	case err == nil:
		f.set(name, text, true)
	case overwrite || f.may(name, ""):
		f.add(name, text)
	}
}

func (c *simClient) push(name string, variant int, overwrite bool) {
	at, began := protocol.Place{Share: privateShare(c.number), Path: name}, time.Now()
	text := privateText(c.number, variant)
	m := c.current.Load()
	codes := c.model.pushCodes(name, text, overwrite)
	if c.tooLarge(text) {
		codes = []int{int(wire.AbortLimit)}
	}
	source := fmt.Sprintf("/home/private-%d", variant)
	_, err := m.Push(m.ctx, CopyRequest{Options: c.options(source, overwrite), Place: at})
	c.judge(Push, at, began, err, codes...)
	if err != nil && !m.lost() && c.isFine(m) {
		return // it was refused, and both know
	}
	c.model.pushed(name, text, overwrite, err)
}

// pull pulls one of its own files.
func (c *simClient) pull(name string) {
	text, err := c.pullFrom(privateShare(c.number), name, c.pullCodes(name)...)
	if err == nil && !c.model.may(name, text) {
		c.Errorf("client %d pulled %d bytes of %s that it does not have", c.number, len(text), name)
	} else if err == nil {
		c.model.narrow(name, text)
	}
}

// narrow notes what a file holds among what it might. A loss of power may bring back any of that.
func (f *simFiles) narrow(name, text string) {
	if len(f.of(name)) > 1 {
		f.set(name, text, false)
	}
}

func (c *simClient) pullCodes(name string) (codes []int) {
	for _, is := range c.model.of(name) {
		if is == "" {
			codes = append(codes, int(wire.AbortSource))
		} else {
			codes = append(codes, 0)
		}
	}
	return codes
}

// pullFrom pulls to a new file, and returns what it holds.
func (c *simClient) pullFrom(from, name string, codes ...int) (text string, err error) {
	at, began := protocol.Place{Share: from, Path: name}, time.Now()
	m := c.current.Load()
	c.pulls++
	target := fmt.Sprintf("/home/got-%d", c.pulls)
	_, err = m.Pull(m.ctx, CopyRequest{Options: c.options(target, false), Place: at})
	c.judge(Pull, at, began, err, codes...)
	text, found := c.disk.Get(target)
	if found && !isSimText(text, "private") && !isSimText(text, "public") || err == nil && !found {
		c.Errorf("client %d: %s has %d bytes (found: %t) after: %v", c.number, target, len(text), found, err)
	}
	return text, err
}

func (c *simClient) pullEverything() {
	for _, name := range slices.Sorted(maps.Keys(c.model.byName)) {
		c.pull(name)
	}
	c.list(privateShare(c.number))
}

func (c *simClient) treeNames() (names []string) {
	for i := range simNames {
		names = append(names, treeOf(c.number)+"/"+fileOf(c.number, fmt.Sprint(i)))
	}
	return names
}

func treeOf(client int) string { return fmt.Sprintf("f%d-tree", client) }

// pushTree pushes a tree of all files in one variant, without the one of that number.
func (c *simClient) pushTree(variant int, overwrite bool) (ok bool) {
	at, began := protocol.Place{Share: privateShare(c.number), Path: treeOf(c.number)}, time.Now()
	text, names := privateText(c.number, variant), c.treeNames()
	m := c.current.Load()
	codes := []int{0}
	if !overwrite {
		codes = []int{0, simSomeDiffer}
	}
	if files := simNames - min(1, simNames/(variant+1)); c.tooLarge(strings.Repeat(text, files)) { // of all together
		codes = []int{int(wire.AbortLimit)}
	}
	source := fmt.Sprintf("/home/tree-%d", variant)
	_, err := m.Push(m.ctx, CopyRequest{Options: c.options(source, overwrite), Place: at})
	c.judge(Push, at, began, err, codes...)
	for i, name := range names {
		if i != variant {
			c.model.pushed(name, text, overwrite, err)
		}
	}
	return err == nil
}

// sync makes the tree of the share that of one variant, as the program does: it removes last what is not of it.
func (c *simClient) sync() {
	const variant = 1
	if !c.pushTree(variant, true) {
		return
	}
	listed, err := c.listAt(treeOf(c.number))
	if err != nil {
		return
	}
	for i, name := range c.treeNames() {
		base := name[strings.LastIndexByte(name, '/')+1:]
		if i == variant && slices.Contains(listed, base) {
			c.remove(name)
		}
	}
}

func (c *simClient) listAt(path string) ([]string, error) {
	at, began := protocol.Place{Share: privateShare(c.number), Path: path}, time.Now()
	names, err := c.listPlace(at)
	c.judge(List, at, began, err, 0)
	return names, err
}

func (c *simClient) listPlace(at protocol.Place) (names []string, err error) {
	m := c.current.Load()
	end, err := m.List(m.ctx, at, protocol.ListRecursive, func(e share.Entry) error {
		if e.Kind != wire.EntryDirectory {
			names = append(names, e.Path)
		}
		return nil
	})
	if err == nil && end.Code != 0 {
		err = &protocol.Refusal{Code: end.Code, Text: end.Text}
	}
	return names, err
}

// list lists a share.
func (c *simClient) list(name string) {
	at, began := protocol.Place{Share: name}, time.Now()
	names, err := c.listPlace(at)
	code := 0
	if !c.access(name).Allows(share.Read) {
		code = int(wire.AbortRefused)
	}
	c.judge(List, at, began, err, code)
	if code != 0 && len(names) > 0 {
		c.Errorf("client %d sees %q in share %s", c.number, names, name)
	}
	if err == nil && name == privateShare(c.number) {
		c.checkList(names)
	}
}

// listShares lists what the client can see.
func (c *simClient) listShares() {
	began := time.Now()
	names, want := []string(nil), c.visible()
	m := c.current.Load()
	_, err := m.List(m.ctx, protocol.Place{}, 0, func(e share.Entry) error {
		names = append(names, e.Path)
		return nil
	})
	c.judge(List, protocol.Place{}, began, err, 0)
	if c.disruption == reloaded {
		isDropped := func(name string) bool { return name == droppedShare }
		names, want = slices.DeleteFunc(names, isDropped), slices.DeleteFunc(want, isDropped)
	}
	if err == nil && !slices.Equal(names, want) {
		c.Errorf("client %d sees the shares %q", c.number, names)
	}
}

// visible returns the names of the shares that the client can see, and the empty one of their list.
func (c *simClient) visible() []string {
	names := []string{""}
	for _, name := range []string{"common", "in", "keep", "out"} {
		if c.access(name) != 0 {
			names = append(names, name)
		}
	}
	for _, of := range c.clientsOf(c.key) {
		names = append(names, privateShare(of.number))
	}
	return names
}

func (c *simClient) checkList(names []string) {
	for name := range c.model.byName {
		if found := slices.Contains(names, name); found && slices.Equal(c.model.of(name), []string{""}) ||
			!found && !c.model.may(name, "") {
			c.Errorf("client %d: %s is listed: %t", c.number, name, found)
		}
	}
	for _, name := range names {
		if _, known := c.model.byName[name]; !known && !strings.Contains(name, ".dma-copy-") {
			c.Errorf("client %d: there is %s", c.number, name)
		}
	}
}

func (c *simClient) remove(name string) {
	at, began := protocol.Place{Share: privateShare(c.number)}, time.Now()
	m := c.current.Load()
	err := m.Remove(m.ctx, removing(at, name), func(_ string, r protocol.Removal) error {
		if r.Code != 0 {
			return &protocol.Refusal{Code: r.Code, Text: r.Text}
		}
		return nil
	})
	c.judge(Remove, at, began, err, 0)
	if err == nil {
		c.model.set(name, "", false)
	} else {
		c.model.add(name, "")
	}
}

func (c *simClient) ping(text bool) {
	m, began := c.current.Load(), time.Now()
	if text {
		answer, err := m.Text(m.ctx, "hi")
		if err == nil && answer != "hello" {
			c.Errorf("client %d got the answer %q", c.number, answer)
		}
		c.judge(Ping, protocol.Place{}, began, err, 0)
		return
	}
	_, err := m.RoundTrip(m.ctx, []byte("ping"))
	c.promptly(m, "ping", began, err)
	if err != nil && c.isFine(m) {
		c.Errorf("client %d: ping: %v", c.number, err)
	}
}

// access returns the rights of the client to a share, whose own are in simulation.shares.
func (c *simClient) access(name string) share.Access {
	switch name {
	case "out":
		return share.Read & c.grant.access[name]
	case "in":
		return share.Write & c.grant.access[name]
	case "common", "keep":
		return c.grant.access[name]
	case privateShare(c.number):
		return share.ReadWrite
	}
	return 0
}
