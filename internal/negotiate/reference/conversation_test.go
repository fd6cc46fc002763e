package reference

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// exchange is a host and a DPU session with an ordered channel in each direction, and callers that follow the steps.
type exchange struct {
	host, dpu  party
	address    uint64
	descriptor []byte
	sent       []sentMessage
	disturb    func(index int, msg []byte) [][]byte // returns what arrives instead of msg; nil: msg itself
	cannotSave bool                                 // the host fails to save after success
}

type party struct {
	*Session
	inbox     [][]byte
	agreement Agreement
	err       error
}

type sentMessage struct {
	From wire.Side
	Msg  []byte
}

func newExchange(host, dpu Local, limits wire.Limits) *exchange {
	return &exchange{
		host:       party{Session: New(wire.Host, host, limits)},
		dpu:        party{Session: New(wire.DPU, dpu, limits)},
		address:    4096,
		descriptor: []byte("descriptor"),
	}
}

// run delivers messages until there are none, and then disconnects the host.
func (k *exchange) run(t *testing.T) {
	t.Helper()
	k.dpu.Start()
	k.send(wire.Host, k.host.Start())
	for len(k.host.inbox)+len(k.dpu.inbox) > 0 {
		k.deliver(t, &k.dpu, wire.Host)
		k.deliver(t, &k.host, wire.DPU)
		if len(k.sent) > 10 {
			t.Fatal("the sessions do not come to an end")
		}
	}
	for _, p := range []*party{&k.host, &k.dpu} {
		if err := p.Disconnected(); p.err == nil {
			p.err = err
		}
	}
}

func (k *exchange) send(from wire.Side, msg []byte) {
	if msg == nil {
		return
	}
	arriving := [][]byte{msg}
	if k.disturb != nil {
		arriving = k.disturb(len(k.sent), msg)
	}
	k.sent = append(k.sent, sentMessage{from, msg})
	to := &k.host
	if from == wire.Host {
		to = &k.dpu
	}
	to.inbox = append(to.inbox, arriving...)
}

func (k *exchange) deliver(t *testing.T, p *party, from wire.Side) {
	t.Helper()
	if len(p.inbox) == 0 {
		return
	}
	msg := p.inbox[0]
	p.inbox = p.inbox[1:]
	step, err := p.Receive(msg)
	clear(msg)
	if p.err == nil {
		p.err = err
	}
	k.send(p.side, step.Reply)
	switch step.Event {
	case Agreed:
		p.agreement = step.Agreement
		if p.side == wire.Host {
			k.send(wire.Host, wiretest.Must(t)(p.Export(k.address, k.descriptor)))
		}
	case Exported:
		if step.Export.Address != k.address || string(step.Export.Descriptor) != string(k.descriptor) {
			t.Errorf("the %s exported %x at %#x", from, step.Export.Descriptor, step.Export.Address)
		}
		k.send(wire.DPU, wiretest.Must(t)(p.Finish(true)))
	case Finished:
		k.send(wire.Host, wiretest.Must(t)(p.Finish(!k.cannotSave)))
	}
}

func TestTwoSessions(t *testing.T) {
	for _, limit := range []uint64{4096, 1 << 40, math.MaxInt64} {
		for _, size := range []uint64{0, 1, 1 << 31, math.MaxInt64, limit, limit + 1} {
			for _, hostHas := range []bool{true, false} {
				for _, dpuHas := range []bool{true, false} {
					host, dpu := Local{HasFile: hostHas, Size: size}, Local{HasFile: dpuHas, Size: size}
					k := newExchange(host, dpu, wire.Limits{MaxMessage: 4080, MaxFileSize: limit})
					k.run(t)
					name := fmt.Sprintf("limit %d, size %d, host %t, DPU %t", limit, size, hostHas, dpuHas)
					checkExchange(t, name, k, hostHas, dpuHas, size, size > limit)
				}
			}
		}
	}
}

func checkExchange(t *testing.T, name string, k *exchange, hostHas, dpuHas bool, size uint64, tooLarge bool) {
	t.Helper()
	agreement := Agreement{Protocol: wire.Reference, Sender: wire.DPU, Size: size}
	if hostHas {
		agreement.Sender = wire.Host
	}
	switch {
	case hostHas && dpuHas:
		wantParties(t, name, k, wire.ErrPeerRefused, wire.ErrBothHaveFile)
	case !hostHas && !dpuHas:
		wantParties(t, name, k, wire.ErrPeerRefused, wire.ErrNeitherHasFile)
	case tooLarge && hostHas:
		wantParties(t, name, k, wire.ErrPeerRefused, wire.ErrTooLarge)
	case tooLarge:
		wantParties(t, name, k, wire.ErrTooLarge, wire.ErrPeerFailed)
	default:
		wantParties(t, name, k, nil, nil)
		if k.host.agreement != agreement || k.dpu.agreement != agreement {
			t.Errorf("%s: host %+v, DPU %+v", name, k.host.agreement, k.dpu.agreement)
		}
	}
}

func wantParties(t *testing.T, name string, k *exchange, host, dpu error) {
	t.Helper()
	if !errors.Is(k.host.err, host) || !errors.Is(k.dpu.err, dpu) {
		t.Errorf("%s: host %v, want %v; DPU %v, want %v", name, k.host.err, host, k.dpu.err, dpu)
	}
	for side, p := range map[string]*party{"host": &k.host, "DPU": &k.dpu} {
		want := Done
		if p.err != nil {
			want = Failed
		}
		if p.State() != want {
			t.Errorf("%s: the %s ended in %s, want %s", name, side, p.State(), want)
		}
	}
}

func TestHostThatCannotSaveTellsTheDPU(t *testing.T) {
	k := newExchange(Local{}, Local{HasFile: true, Size: 100}, gridLimits)
	k.cannotSave = true
	k.run(t)
	if k.host.State() != Failed || !errors.Is(k.dpu.err, wire.ErrPeerFailed) {
		t.Errorf("host in %s, DPU %v", k.host.State(), k.dpu.err)
	}
}

// If one message is lost or damaged, both sides fail. There are two exceptions, because STATUS is not confirmed and the
// host does not listen after it: only one side fails then.
func TestDisturbedConversationsEndAlike(t *testing.T) {
	disturbances := map[string]func(msg []byte) [][]byte{
		"lost":       func([]byte) [][]byte { return nil },
		"duplicated": func(msg []byte) [][]byte { return [][]byte{msg, append([]byte(nil), msg...)} },
		"truncated":  func(msg []byte) [][]byte { return [][]byte{msg[:len(msg)-1]} },
		"extended":   func(msg []byte) [][]byte { return [][]byte{append(msg, 0)} },
		"emptied":    func([]byte) [][]byte { return [][]byte{{}} },
		"failed":     func([]byte) [][]byte { return [][]byte{Status{}.Encode()} },
	}
	for name, disturbance := range disturbances {
		for index := range 4 {
			for _, hostHas := range []bool{true, false} {
				k := newExchange(Local{HasFile: hostHas, Size: 100}, Local{HasFile: !hostHas, Size: 100}, gridLimits)
				k.disturb = func(i int, msg []byte) [][]byte {
					if i == index {
						return disturbance(msg)
					}
					return [][]byte{msg}
				}
				k.run(t)
				verdictLost := index == 3 && (name == "lost" || name == "failed")
				exportRepeated := index == 2 && name == "duplicated"
				if (k.host.err == nil) != exportRepeated || (k.dpu.err == nil) != verdictLost {
					t.Errorf("message %d %s: host %v, DPU %v", index, name, k.host.err, k.dpu.err)
				}
			}
		}
	}
}

// TestEmptyFiles checks that an empty file is copied only between two sides that know that the other is a dma-copy.
func TestEmptyFiles(t *testing.T) {
	offers := &nativeStub{}
	for _, hostHas := range []bool{true, false} {
		for name, tc := range map[string]struct {
			host, dpu       Local
			hostErr, dpuErr error
		}{
			"both marked":    {Local{Marked: true}, Local{Marked: true}, nil, nil},
			"host offers":    {Local{Marked: true, Native: offers}, Local{Marked: true}, nil, nil},
			"DPU offers":     {Local{Marked: true}, Local{Marked: true, Native: offers}, nil, nil},
			"reference DPU":  {Local{Marked: true, Native: offers}, Local{}, wire.ErrEmptyFile, wire.ErrPeerFailed},
			"reference host": {Local{}, Local{Marked: true, Native: offers}, wire.ErrPeerRefused, wire.ErrEmptyFile},
		} {
			tc.host.HasFile, tc.dpu.HasFile = hostHas, !hostHas
			k := newExchange(tc.host, tc.dpu, gridLimits)
			k.run(t)
			wantParties(t, fmt.Sprintf("%s, host has it: %t", name, hostHas), k, tc.hostErr, tc.dpuErr)
		}
	}
}

type conversation struct {
	Name       string                `json:"name"`
	Meaning    string                `json:"meaning"`
	Host       vectorLocal           `json:"host"`
	DPU        vectorLocal           `json:"dpu"`
	Address    wiretest.Number       `json:"address"`
	Descriptor wiretest.Octets       `json:"descriptor"`
	Messages   []wiretest.VectorSent `json:"messages"`
	HostEnds   string                `json:"host_ends"`
	DPUEnds    string                `json:"dpu_ends"`
}

type vectorLocal struct {
	HasFile bool            `json:"has_file"`
	Size    wiretest.Number `json:"size"`
	Marked  bool            `json:"marked"`
}

func (l vectorLocal) local() Local {
	return Local{HasFile: l.HasFile, Size: uint64(l.Size), Marked: l.Marked}
}

func TestConversationVectors(t *testing.T) {
	var conversations []conversation
	wiretest.ReadVectors(t, "conversations.json", &conversations)
	if len(conversations) == 0 {
		t.Fatal("no conversations")
	}
	for _, c := range conversations {
		t.Run(c.Name, func(t *testing.T) {
			k := newExchange(c.Host.local(), c.DPU.local(), wire.Limits{MaxMessage: 4080, MaxFileSize: math.MaxInt64})
			k.address, k.descriptor = uint64(c.Address), c.Descriptor
			var sent []sentMessage
			k.disturb = func(_ int, msg []byte) [][]byte {
				// Delivered messages are cleared, so sent needs a copy.
				sent = append(sent, sentMessage{Msg: append([]byte(nil), msg...)})
				return [][]byte{msg}
			}
			k.run(t)
			if len(sent) != len(c.Messages) {
				t.Fatalf("%d messages, want %d", len(sent), len(c.Messages))
			}
			for i, want := range c.Messages {
				wiretest.WantBytes(t, sent[i].Msg, want.Hex)
				if from := k.sent[i].From.String(); from != want.From {
					t.Errorf("message %d is from the %s, want the %s", i, from, want.From)
				}
			}
			if k.host.State().String() != c.HostEnds || k.dpu.State().String() != c.DPUEnds {
				t.Errorf("host %s, want %s; DPU %s, want %s", k.host.State(), c.HostEnds, k.dpu.State(), c.DPUEnds)
			}
		})
	}
}
