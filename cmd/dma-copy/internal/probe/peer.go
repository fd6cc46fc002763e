package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exchange"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// The probes that need both sides. The DPU makes them; what it asks of the host is in serve.go.

// conversationName is the Comch server of the conversation.
const conversationName = "dma copy doctor"

// manyMessages are more than any queue of the channel is asked to hold.
const manyMessages = 1000

// meet makes the probes that need both sides on the DPU, serves them on the host, and hands their results over.
func (r *run) meet(ctx context.Context) error {
	peer, err := exchange.Meet(ctx, exchange.Options{
		Side: r.Side, Device: r.Device, Representor: r.Representor, Name: conversationName, Wait: r.Wait,
		Idle: 3 * (probeTime + returnTime), Log: r.Log,
	})
	if err != nil {
		return err
	}
	r.peer = peer
	if r.Met != nil {
		r.Met()
	}
	s := &service{trial: trial{run: r}}
	ask := func(ctx context.Context) error {
		if r.Side == negotiate.Host {
			return r.fetchResults(ctx)
		}
		r.probe(ctx, func(a *assumption) bool { return a.together })
		return nil
	}
	err = peer.Turns(ctx, ask, s.answer)
	if r.hung != nil {
		return err // the conversation may be in use
	}
	return errors.Join(err, s.close(), peer.Close())
}

// given are the results of the probes that need both sides, as the DPU hands them over.
func (r *run) given() ([]byte, error) {
	var together []Result
	for i := range r.results {
		if isTogether(r.results[i].Name) {
			together = append(together, r.results[i])
		}
	}
	return json.Marshal(together)
}

// fetchResults takes the results from the DPU: the verdict and what was found. The rest is this program's own.
func (r *run) fetchResults(ctx context.Context) error {
	answer, err := r.peer.Ask(ctx, "results")
	if err != nil {
		return err
	}
	var theirs []Result
	if err := json.Unmarshal(answer, &theirs); err != nil {
		return fmt.Errorf("the results of the DPU: %w", err)
	}
	for i := range register {
		a := &register[i]
		at := slices.IndexFunc(theirs, func(got Result) bool { return a.together && got.Name == a.name })
		switch {
		case at < 0:
		case theirs[at].Verdict == AsAssumed:
			r.results = append(r.results, a.result(theirs[at].Found, nil))
		case theirs[at].Verdict == Differs:
			r.results = append(r.results, a.result("", differs("%s", theirs[at].Found)))
		default:
			r.results = append(r.results, a.result("", errors.New(theirs[at].Found)))
		}
	}
	return nil
}

// ask asks the host to do something, and waits for the answer also when the time of the probe is over.
func (t *trial) ask(format string, args ...any) (string, error) {
	if t.ctx.Err() != nil {
		return "", context.Cause(t.ctx)
	}
	answer, err := t.peer.Ask(t.base, fmt.Sprintf(format, args...))
	return string(answer), err
}

// exported is memory of the other side.
type exported struct {
	Address    uint64
	Descriptor []byte
}

// imported imports size bytes of the host, of which more are claimed.
func (t *trial) imported(access string, size, more int64) (*doca.Remote, error) {
	answer, err := t.ask("export-%s %d", access, size)
	if err != nil {
		return nil, err
	}
	var memory exported
	if err := json.Unmarshal([]byte(answer), &memory); err != nil {
		return nil, err
	}
	remote, err := t.Device.Import(memory.Descriptor, memory.Address, size+more)
	if err != nil {
		return nil, differs("the import fails: %s", firstLine(err))
	}
	t.use(remote.Close)
	return remote, nil
}

const hostsSeed = 2

// hostsBytes are those of memory that the host has just exported.
func hostsBytes(size int64) []byte {
	memory := make([]byte, size)
	fill(memory, hostsSeed)
	return memory
}

func (t *trial) checkSum(want []byte) error {
	got, err := t.ask("sum")
	if err == nil && got != sum(want) {
		err = differs("the host has other bytes")
	}
	return err
}

func sum(memory []byte) string { return strconv.FormatUint(uint64(crc32.ChecksumIEEE(memory)), 16) }

func importRead(t *trial) (string, error) {
	source, err := t.imported("read", smallSize, 0)
	if err != nil {
		return "", err
	}
	target, err := t.region(smallSize, doca.LocalWrite)
	if err != nil {
		return "", err
	}
	c := doca.Copy{Source: source, Target: target, SourceOffset: 3, TargetOffset: 1, Length: smallSize - 10}
	return "the DPU reads the host's memory", t.moved(c, hostsBytes(smallSize), target.Bytes())
}

func importWrite(t *trial) (string, error) {
	target, err := t.imported("write", smallSize, 0)
	if err != nil {
		return "", err
	}
	source, err := t.region(smallSize, doca.LocalRead)
	if err != nil {
		return "", err
	}
	fill(source.Bytes(), 1)
	engine, err := t.engine(1)
	if err == nil {
		c := doca.Copy{Source: source, Target: target, SourceOffset: 1, TargetOffset: 5, Length: 30_001}
		err = t.copied(engine, c)
	}
	if err != nil {
		return "", err
	}
	want := hostsBytes(smallSize)
	copy(want[5:], source.Bytes()[1:30_002])
	return "the DPU writes the host's memory", t.checkSum(want)
}

func importRange(t *trial) (string, error) {
	_, err := t.imported("read", smallSize, 1)
	if _, is := errors.AsType[*difference](err); is {
		return "one byte more than was exported: " + err.Error(), nil
	}
	if err == nil {
		err = differs("one byte more than was exported can be imported")
	}
	return "", err
}

func importReadOnly(t *trial) (string, error) {
	target, err := t.imported("read", smallSize, 0)
	if err != nil {
		return "", err
	}
	source, err := t.region(smallSize, doca.LocalRead)
	if err != nil {
		return "", err
	}
	found, err := t.refused(doca.Copy{Source: source, Target: target, Length: smallSize}, noBytes)
	if err == nil {
		err = t.checkSum(hostsBytes(smallSize))
	}
	return found, err
}

func noBytes() ([]byte, error) { return nil, nil }

// revoked has the DPU read what the host has unregistered.
func revoked(t *trial) (string, error) {
	source, err := t.imported("read", smallSize, 0)
	if err != nil {
		return "", err
	}
	target, err := t.region(smallSize, doca.LocalWrite)
	if err != nil {
		return "", err
	}
	if _, err := t.ask("unexport"); err != nil {
		return "", err
	}
	c := doca.Copy{Source: source, Target: target, Length: smallSize}
	return t.refused(c, func() ([]byte, error) { return target.Bytes(), nil })
}

// link is a connection for one probe.
func (t *trial) link() (*doca.Server, *doca.Connection, error) {
	server, err := t.server(probeName)
	if err != nil {
		return nil, nil, err
	}
	conn, err := t.dialed(server)
	return server, conn, err
}

// dialed has the host connect to a server.
func (t *trial) dialed(server *doca.Server) (*doca.Connection, error) {
	if _, err := t.ask("dial"); err != nil {
		return nil, differs("the host cannot connect: %s", firstLine(err))
	}
	return server.Accept(t.ctx)
}

func messages(t *trial) (string, error) {
	_, conn, err := t.link()
	if err != nil {
		return "", err
	}
	largest := make([]byte, conn.MaxMessage())
	fill(largest, 1)
	if err := t.echoed(conn, largest); err != nil {
		return "", err
	}
	if err := sendMessages(t.ctx, conn, manyMessages); err != nil {
		return "", differs("%s", firstLine(err))
	}
	for _, request := range []string{"take", "send"} {
		if _, err := t.ask("%s %d", request, manyMessages); err != nil {
			return "", differs("%s", firstLine(err))
		}
	}
	found := fmt.Sprintf("%d bytes, and %d messages in order", len(largest), manyMessages)
	return found, takeMessages(t.ctx, conn, manyMessages)
}

func numbered(i int) []byte { return []byte(fmt.Sprintf("message %d", i)) }

func sendMessages(ctx context.Context, conn *doca.Connection, count int) error {
	for i := range count {
		if err := conn.Send(ctx, numbered(i)); err != nil {
			return fmt.Errorf("message %d of %d: %w", i, count, err)
		}
	}
	return nil
}

func takeMessages(ctx context.Context, conn *doca.Connection, count int) error {
	for i := range count {
		message, err := conn.Recv(ctx)
		if err != nil || !bytes.Equal(message, numbered(i)) {
			return differs("message %d of %d: %q, error %v", i, count, message, err)
		}
	}
	return nil
}

// echoed sends a message to the host, which sends it back.
func (t *trial) echoed(conn *doca.Connection, message []byte) error {
	err := conn.Send(t.ctx, message)
	if err != nil {
		return differs("a message of %d bytes: %s", len(message), firstLine(err))
	}
	if _, err := t.ask("echo"); err != nil {
		return differs("%s", firstLine(err))
	}
	back, err := conn.Recv(t.ctx)
	if err != nil || !bytes.Equal(back, message) {
		return differs("a message of %d bytes comes back with %d, error %v", len(message), len(back), err)
	}
	return nil
}

func messageTooLarge(t *trial) (string, error) {
	_, conn, err := t.link()
	if err != nil {
		return "", err
	}
	err = conn.SendUnchecked(t.ctx, make([]byte, conn.MaxMessage()+1))
	switch {
	case err == nil:
		return "", differs("it is sent")
	case !errors.Is(err, doca.CodeInvalidValue):
		return "", differs("it is accepted, and then fails: %s", firstLine(err))
	}
	return "refused: " + firstLine(err), nil
}

func severalClients(t *trial) (string, error) {
	server, first, err := t.link()
	if err != nil {
		return "", err
	}
	second, err := t.dialed(server)
	if err != nil {
		return "", err
	}
	for _, conn := range []*doca.Connection{first, second} {
		if err := conn.Send(t.ctx, numbered(0)); err != nil {
			return "", differs("%s", firstLine(err))
		}
	}
	return "two at once", t.echoed(second, numbered(0))
}

func disconnectAtOnce(t *trial) (string, error) {
	again, _, err := t.disconnect()
	if err == nil && again > 0 {
		err = differs("the server's disconnection is refused with AGAIN first")
	}
	return "the server's disconnection is accepted", err
}

func disconnectSilently(t *trial) (string, error) {
	_, events, err := t.disconnect()
	if err == nil && events > 0 {
		err = differs("the server's own disconnection raises an event on its side")
	}
	return "no event on the side that disconnects", err
}

// disconnect has the server end a connection, which the host notices. The next connection comes behind its events.
func (t *trial) disconnect() (again, events int, err error) {
	server, conn, err := t.link()
	if err != nil {
		return 0, 0, err
	}
	if err := conn.Close(); err != nil {
		return 0, 0, differs("%s", firstLine(err))
	}
	if err := t.hostNotices(); err != nil {
		return 0, 0, err
	}
	if _, err := t.dialed(server); err != nil {
		return 0, 0, err
	}
	again, events = server.Departures()
	return again, events, nil
}

func (t *trial) hostNotices() error {
	if _, err := t.ask("wait"); err != nil {
		return differs("%s", firstLine(err))
	}
	return nil
}

func notices(ctx context.Context, conn *doca.Connection) error {
	select {
	case <-conn.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(noticeTime):
		return differs("the end of the connection does not show within %s", noticeTime)
	}
}

func clientLeaves(t *trial) (string, error) {
	_, conn, err := t.link()
	if err != nil {
		return "", err
	}
	if _, err := t.ask("hangup"); err != nil {
		return "", err
	}
	return "the server notices the end of a client", notices(t.ctx, conn)
}
