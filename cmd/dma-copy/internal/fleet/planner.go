package fleet

import (
	"fmt"
	"slices"
)

// Source is the index of the command itself, in place of that of a peer.
const Source = -1

// Assignment is one copy: the peer To receives, from the command or from the peer From, which has received before.
type Assignment struct{ From, To int }

// Outcome is the end of an assignment.
type Outcome uint8

const (
	// Received means that the peer has everything, compared with the source.
	Received Outcome = iota

	// PeerFailed means that the peer does not receive and is not tried again.
	PeerFailed

	// RelayFailed means that the sending peer could not send and sends no more. The receiving one waits for the command
	// itself.
	RelayFailed

	// NotRelayed means that the sending peer could not send to this one. The receiving one waits for the command
	// itself, and the sending one goes on with others.
	NotRelayed
)

// Bounds are those of a Planner.
type Bounds struct {
	Parallel int // copies of the command itself at once; at least 1
	Fanout   int // copies of each peer that has received at once; 0: peers do not send
	Relays   int // copies of all peers at once; at least 1 with a Fanout
}

// Planner decides who sends to whom. Peers receive in the order of the list; those that have received send before the
// command does. A peer whose relay has failed receives from the command, and a peer that failed as a relay sends no
// more; neither does one that is direct. For one goroutine at a time.
type Planner struct {
	bounds  Bounds
	waiting []int        // peers that anybody may send to, in order
	direct  []int        // peers that only the command sends to, in order
	retries []int        // peers to which a relay has not sent: only the command sends to them
	idle    []int        // peers that may send one more copy, once for each; the least recently used one is first
	alone   map[int]bool // peers that never send

	fromSource, relays int // running
}

// NewPlanner returns the Planner of this number of peers.
func NewPlanner(peers int, b Bounds) *Planner {
	if peers < 0 || b.Parallel < 1 || b.Fanout < 0 || b.Fanout > 0 && b.Relays < 1 {
		panic(fmt.Sprintf("internal error: %d peers with %+v", peers, b))
	}
	p := &Planner{bounds: b, alone: map[int]bool{}}
	for peer := range peers {
		p.waiting = append(p.waiting, peer)
	}
	return p
}

// Direct makes a peer one that only the command sends to, and that never sends. Call it before Next.
func (p *Planner) Direct(peer int) {
	p.alone[peer] = true
	p.waiting = slices.DeleteFunc(p.waiting, func(each int) bool { return each == peer })
	p.direct = append(p.direct, peer)
	slices.Sort(p.direct)
}

// Next returns a copy that is to be started now, if there is one. End must be called for each.
func (p *Planner) Next() (Assignment, bool) {
	if len(p.waiting) > 0 && p.relays < p.bounds.Relays {
		if from, is := p.takeRelay(); is {
			p.relays++
			return Assignment{from, take(&p.waiting)}, true
		}
	}
	if p.fromSource == p.bounds.Parallel {
		return Assignment{}, false
	}
	queue := p.ofSource()
	if len(*queue) == 0 {
		return Assignment{}, false
	}
	p.fromSource++
	return Assignment{Source, take(queue)}, true
}

// ofSource returns the queue from which the command serves the next peer, in the order of the list apart from retries.
func (p *Planner) ofSource() *[]int {
	switch {
	case len(p.retries) > 0:
		return &p.retries
	case len(p.direct) > 0 && (len(p.waiting) == 0 || p.direct[0] < p.waiting[0]):
		return &p.direct
	default:
		return &p.waiting
	}
}

// takeRelay returns a peer that may send one more copy.
func (p *Planner) takeRelay() (int, bool) {
	for len(p.idle) > 0 {
		if from := take(&p.idle); !p.alone[from] {
			return from, true
		}
	}
	return 0, false
}

// End takes note of the end of a copy.
func (p *Planner) End(a Assignment, o Outcome) {
	if a.From == Source {
		p.fromSource--
	} else {
		p.relays--
	}
	if a.From != Source {
		p.alone[a.From] = p.alone[a.From] || o == RelayFailed
		p.idle = append(p.idle, a.From)
		if o == RelayFailed || o == NotRelayed {
			p.retries = append(p.retries, a.To)
			return
		}
	}
	if o != Received {
		return
	}
	for range p.bounds.Fanout {
		p.idle = append(p.idle, a.To)
	}
}

// Waiting returns how many peers have not been assigned, or are to be assigned again.
func (p *Planner) Waiting() int { return len(p.waiting) + len(p.direct) + len(p.retries) }

func take(queue *[]int) int {
	first := (*queue)[0]
	*queue = (*queue)[1:]
	return first
}
