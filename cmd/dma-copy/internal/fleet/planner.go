package fleet

import "fmt"

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

	// RelayFailed means that the sending peer could not send. The receiving one waits for the command itself.
	RelayFailed
)

// Bounds are those of a Planner.
type Bounds struct {
	Parallel int // copies of the command itself at once; at least 1
	Fanout   int // copies of each peer that has received at once; 0: peers do not send
	Relays   int // copies of all peers at once; at least 1 with a Fanout
}

// Planner decides who sends to whom. Peers receive in the order of the list; those that have received send before the
// command does. A peer whose relay has failed receives from the command, and a peer that failed as a relay sends no
// more. For one goroutine at a time.
type Planner struct {
	bounds  Bounds
	waiting []int // peers that anybody may send to, in order
	retries []int // peers that only the command sends to
	idle    []int // peers that may send one more copy, once for each; the least recently used one is first
	failed  map[int]bool

	fromSource, relays int // running
}

// NewPlanner returns the Planner of this number of peers.
func NewPlanner(peers int, b Bounds) *Planner {
	if peers < 0 || b.Parallel < 1 || b.Fanout < 0 || b.Fanout > 0 && b.Relays < 1 {
		panic(fmt.Sprintf("internal error: %d peers with %+v", peers, b))
	}
	p := &Planner{bounds: b, failed: map[int]bool{}}
	for peer := range peers {
		p.waiting = append(p.waiting, peer)
	}
	return p
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
	queue := &p.retries
	if len(*queue) == 0 {
		queue = &p.waiting
	}
	if len(*queue) == 0 {
		return Assignment{}, false
	}
	p.fromSource++
	return Assignment{Source, take(queue)}, true
}

// takeRelay returns a peer that may send one more copy.
func (p *Planner) takeRelay() (int, bool) {
	for len(p.idle) > 0 {
		if from := take(&p.idle); !p.failed[from] {
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
	if a.From != Source && o == RelayFailed {
		p.failed[a.From] = true
		p.retries = append(p.retries, a.To)
		return
	}
	if a.From != Source {
		p.idle = append(p.idle, a.From)
	}
	if o != Received {
		return
	}
	for range p.bounds.Fanout {
		p.idle = append(p.idle, a.To)
	}
}

// Waiting returns how many peers have not been assigned, or are to be assigned again.
func (p *Planner) Waiting() int { return len(p.waiting) + len(p.retries) }

func take(queue *[]int) int {
	first := (*queue)[0]
	*queue = (*queue)[1:]
	return first
}
