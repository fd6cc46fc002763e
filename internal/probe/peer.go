package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/ping"
)

// The probes that need both sides. The DPU makes them; serve.go has the answers of the host.

const (
	conversationName = "dma copy doctor" // of the Comch server of the conversation
	manyMessages     = 3000              // more than doca queues
	hostsSeed        = 2                 // of memory that the host exports
)

// meet makes the probes that need both sides on the DPU, serves them on the host, and hands their results over.
func (r *run) meet(ctx context.Context) (err error) {
	idle := askTime
	if r.Side == wire.Host {
		idle = ping.Limit
	}
	r.peer, err = ping.Meet(ctx, ping.Meeting{
		Side: r.Side, Device: r.Device, Representor: r.Representor, Name: conversationName, Wait: r.Wait,
		IdleTimeout: idle,
		Log:         r.Log,
	})
	if err != nil {
		return err
	}
	if r.Met != nil {
		r.Met()
	}
	s := &service{trial: trial{run: r}}
	err = r.peer.Turns(ctx, func(ctx context.Context) error {
		if r.Side == wire.DPU {
			return r.probeBoth(ctx)
		}
		answer, err := r.peer.Ask(ctx, "results")
		if err != nil {
			return err
		}
		return r.take(answer)
	}, s.answer)
	if r.hung != nil {
		return err // the conversation may be in use
	}
	return errors.Join(err, s.close(), r.peer.Close())
}

// probeBoth makes the probes of both sides. An error means that the conversation cannot be used any more.
func (r *run) probeBoth(ctx context.Context) error {
	r.probe(ctx, (*assumption).needsBoth)
	if !r.asking.TryLock() {
		return job.ErrHung
	}
	defer r.asking.Unlock()
	return r.lost
}

// take adds the verdicts and findings of the DPU. All other text of a result comes from the register.
func (r *run) take(answer []byte) error {
	var theirs []Result
	if err := json.Unmarshal(answer, &theirs); err != nil {
		return exit.Errorf(exit.Protocol, ping.SameRelease, "the results of the DPU: %w: %w", wire.ErrMalformed,
			err)
	}
	own := len(r.results)
	found := map[string]Result{}
	for _, result := range theirs {
		found[result.Name] = result
	}
	for i := range register {
		a := &register[i]
		if result, is := found[a.name]; is && a.needsBoth() {
			if result.Verdict != AsAssumed && result.Verdict != Differs {
				result.Verdict = NotTried
			}
			r.results = append(r.results, a.result(result.Verdict, result.Found))
		}
	}
	if len(r.results) == own {
		return exit.Errorf(exit.Protocol, ping.SameRelease,
			"the results of the DPU: %w: no probe that this side knows",
			wire.ErrMalformed)
	}
	return nil
}

// ask has the host do something, which has to succeed, and returns its answer. It waits for that also when the time of
// the probe is over, but a probe that has hung uses the conversation no more.
func (t *trial) ask(format string, args ...any) string {
	answer, err := t.tryAsk(format, args...)
	if err != nil {
		t.differs("the host: %s", err.Text)
	}
	return answer
}

// tryAsk is ask where the host may fail.
func (t *trial) tryAsk(format string, args ...any) (string, *ping.PeerError) {
	t.asking.Lock()
	defer t.asking.Unlock()
	t.need(errors.Join(t.lost, context.Cause(t.ctx)))
	answer, err := t.peer.Ask(t.base, fmt.Sprintf(format, args...))
	if refused, is := errors.AsType[*ping.PeerError](err); is {
		return "", refused
	}
	t.lost = err
	t.need(err)
	return string(answer), nil
}

// exported has the host export memory for reading, for a probe that is about something else: the probe import-read
// says whether it can.
func (t *trial) exported() string {
	description, err := t.tryAsk("export-read")
	if err != nil {
		t.need(errors.New("the host exports no memory, see import-read"))
	}
	return description
}

// exported is memory of the other side, which is smallSize bytes long.
type exported struct {
	Address    uint64
	Descriptor []byte
}

// export describes memory for the other side.
func (t *trial) export(region *doca.Region) string {
	descriptor, err := region.Export()
	t.check(err)
	text, err := json.Marshal(exported{region.Address(), descriptor})
	t.need(err)
	return string(text)
}

// tryImport imports memory of the other side, with more bytes than it has.
func (t *trial) tryImport(description string, more int64) (*doca.Remote, error) {
	var memory exported
	t.need(json.Unmarshal([]byte(description), &memory))
	remote, err := t.Device.Import(memory.Descriptor, memory.Address, smallSize+more)
	if err == nil {
		t.use(remote.Close)
	}
	return remote, err
}

// imported imports memory of the other side.
func (t *trial) imported(description string) *doca.Remote {
	remote, err := t.tryImport(description, 0)
	t.check(err)
	return remote
}

// hostsBytes returns the content of memory that the host has just exported.
func hostsBytes() []byte {
	memory := make([]byte, smallSize)
	fill(memory, hostsSeed)
	return memory
}

// hostHas checks the memory that the host has exported.
func (t *trial) hostHas(want []byte) {
	if t.ask("sum") != sum(want) {
		t.differs("the host has other bytes")
	}
}

func sum(memory []byte) string { return strconv.FormatUint(uint64(crc32.ChecksumIEEE(memory)), 16) }

func importRead(t *trial) string {
	source, target := t.imported(t.ask("export-read")), t.region(smallSize, doca.LocalWrite)
	c := doca.Copy{Source: source, Target: target, SourceOffset: 3, TargetOffset: 1, Length: smallSize - 10}
	t.moves(c, hostsBytes(), target.Bytes())
	return "the DPU reads the host's memory"
}

func importWrite(t *trial) string {
	target, source := t.imported(t.ask("export-write")), t.source(smallSize)
	t.copies(t.engine(1),
		doca.Copy{Source: source, Target: target, SourceOffset: 1, TargetOffset: 5, Length: 30_001})
	want := hostsBytes()
	copy(want[5:], source.Bytes()[1:30_002])
	t.hostHas(want)
	return "the DPU writes the host's memory"
}

func importRange(t *trial) string {
	if _, err := t.tryImport(t.exported(), 1); err == nil {
		t.differs("one byte more than was exported can be imported")
	}
	return "one byte more than was exported cannot be imported"
}

func importReadOnly(t *trial) string {
	target, source := t.imported(t.exported()), t.source(smallSize)
	found := t.refuses(doca.Copy{Source: source, Target: target, Length: smallSize}, nil)
	t.hostHas(hostsBytes())
	return found
}

// exportEnds has the DPU read memory that the host has unregistered.
func exportEnds(t *trial) string {
	source, target := t.imported(t.exported()), t.region(smallSize, doca.LocalWrite)
	t.ask("unexport")
	return t.refuses(doca.Copy{Source: source, Target: target, Length: smallSize}, target.Bytes())
}

// link is a connection for one probe.
func (t *trial) link() (*doca.Server, *doca.Connection) {
	server := t.server(t.representor(), probeName)
	return server, t.dialed(server, "dial")
}

// dialed has the host, or its child, connect to a server.
func (t *trial) dialed(server *doca.Server, question string) *doca.Connection {
	t.ask("%s", question)
	conn, err := server.Accept(t.ctx)
	t.check(err)
	return conn
}

func messages(t *trial) string {
	_, conn := t.link()
	largest := make([]byte, conn.MaxMessage())
	fill(largest, 1)
	t.check(conn.Send(t.ctx, largest))
	t.ask("echo")
	back, err := conn.Recv(t.ctx)
	t.check(err)
	if !bytes.Equal(back, largest) {
		t.differs("a message of %d bytes comes back with %d", len(largest), len(back))
	}
	t.meanwhile(sendMessages, conn, "take")
	t.meanwhile(takeMessages, conn, "send")
	return fmt.Sprintf("%d bytes, and %d messages in order", len(largest), manyMessages)
}

// meanwhile sends or takes messages while the host does the opposite. Both end with the connection.
func (t *trial) meanwhile(
	call func(context.Context, *doca.Connection, int) error, conn *doca.Connection, question string,
) {
	ended := make(chan error, 1)
	go func(ctx context.Context) { ended <- call(ctx, conn, manyMessages) }(t.ctx)
	t.ask("%s %d", question, manyMessages)
	t.check(<-ended)
}

func sendMessages(ctx context.Context, conn *doca.Connection, count int) error {
	for i := range count {
		if err := conn.Send(ctx, fmt.Appendf(nil, "message %d", i)); err != nil {
			return fmt.Errorf("message %d of %d: %w", i, count, err)
		}
	}
	return nil
}

func takeMessages(ctx context.Context, conn *doca.Connection, count int) error {
	for i := range count {
		message, err := conn.Recv(ctx)
		if want := fmt.Sprintf("message %d", i); err != nil || string(message) != want {
			return fmt.Errorf("%q instead of %q, error %w", message, want, err)
		}
	}
	return nil
}

func severalClients(t *trial) string {
	server, _ := t.link()
	second := t.dialed(server, "dial")
	t.check(second.Send(t.ctx, []byte("second")))
	t.ask("echo")
	return "two at once"
}

// notices waits for the end of a connection.
func notices(ctx context.Context, conn *doca.Connection) error {
	select {
	case <-conn.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(noticeTime):
		return fmt.Errorf("the end of the connection does not show within %s", noticeTime)
	}
}

func clientLeaves(t *trial) string {
	_, conn := t.link()
	t.ask("hangup")
	t.check(notices(t.ctx, conn))
	return "the server notices the end of a client"
}

// serverDies kills a server on the DPU, which its client has to notice.
func serverDies(t *trial) string {
	kill := t.startChild()
	t.ask("dial-child")
	t.need(kill())
	t.ask("wait")
	return "the client notices the death of its server"
}

func clientDies(t *trial) string {
	_, conn := t.clientKilled()
	t.check(notices(t.ctx, conn))
	return "the server notices the death of a client"
}

func clientAfterDeath(t *trial) string {
	server, conn := t.clientKilled()
	_ = notices(t.ctx, conn) // judged by clientDies
	t.dialed(server, "dial-child")
	return "the next client is accepted"
}

// clientKilled has the host kill a client, and returns its connection.
func (t *trial) clientKilled() (*doca.Server, *doca.Connection) {
	server := t.server(t.representor(), childName)
	conn := t.dialed(server, "child")
	t.ask("kill")
	return server, conn
}
