// Package fleet reads the list of peers that a command copies to, and schedules the copies. It must not know how a peer
// is reached, how a copy is made, or what is reported about it.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dma-copy/dma-copy/internal/lines"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// The bounds of a list of peers. A longer line than MaxLine bytes is none that names a path below a share.
const (
	MaxPeers = 10_000
	MaxList  = 4 << 20 // bytes
	MaxLine  = 8 << 10 // bytes
)

// Target is where one peer of a list receives.
type Target struct {
	Remote share.Remote // with a share
	Line   int          // of the list, from 1 on
}

// ParseTargets reads a list of peers with one on each line: PEER or ucx://HOST:PORT, or with a target of its own what a
// command accepts for that, PEER:SHARE[/PATH] or ucx://HOST:PORT/SHARE[/PATH]. Where a line has none, its target is the
// command's, whose peer is empty; nil means that the command has none. Empty lines are ignored, and so is text from a
// "#" on that begins a line or follows a space. An error names the line.
func ParseTargets(from io.Reader, target *share.Remote) ([]Target, error) {
	limited := &io.LimitedReader{R: from, N: MaxList + 1}
	var all []Target
	seen := map[share.Remote]int{}
	number, err := lines.Each(limited, '\n', MaxLine, func(number int, line string) error {
		text := withoutComment(line)
		if text == "" {
			return nil
		}
		remote, err := parseLine(text, target)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if before, is := seen[remote]; is {
			return fmt.Errorf("line %d: duplicate target %s, also in line %d", number, quote.Text(remote.String()),
				before)
		}
		seen[remote] = number
		if all = append(all, Target{remote, number}); len(all) > MaxPeers {
			return fmt.Errorf("line %d: more than %d peers: split the list", number, MaxPeers)
		}
		return nil
	})
	switch {
	case errors.Is(err, lines.ErrTooLong):
		return nil, fmt.Errorf("line %d: longer than %d bytes", number, MaxLine)
	case err != nil:
		return nil, err
	case limited.N == 0:
		return nil, fmt.Errorf("larger than %d bytes: split the list", MaxList)
	case len(all) == 0:
		return nil, errors.New("it names no peer")
	}
	return all, nil
}

func withoutComment(line string) string {
	for i := range line {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			line = line[:i]
			break
		}
	}
	return strings.Trim(line, " \t")
}

func parseLine(text string, target *share.Remote) (share.Remote, error) {
	remote, isRemote, err := share.ParseRemote(text)
	switch {
	case err != nil:
		return share.Remote{}, err
	case !isRemote && share.CheckName(text) != nil:
		return share.Remote{}, fmt.Errorf("%s is not a peer: write PEER, PEER:SHARE/PATH or ucx://HOST:PORT",
			quote.Text(text))
	case !isRemote:
		remote = share.Remote{Peer: text}
	}
	if remote == (share.Remote{Share: remote.Share, Path: remote.Path}) {
		return share.Remote{}, fmt.Errorf("%s names no peer: write PEER or PEER:SHARE/PATH", quote.Text(text))
	}
	if remote.Share != "" {
		return remote, nil
	}
	if target == nil {
		return share.Remote{}, fmt.Errorf("peer %s has no target: write %sSHARE/PATH, or end the command with "+
			":SHARE/PATH for all peers", quote.Text(text), remote.Daemon())
	}
	remote.Share, remote.Path = target.Share, target.Path
	return remote, nil
}

// Run calls send for each number below count, in order, at most parallel at once, each in a goroutine of its own, and
// calls ended in its own goroutine as each returns. It starts none once ctx has ended, or ended has returned false;
// those that run are waited for.
func Run[R any](
	ctx context.Context, count, parallel int, send func(context.Context, int) R, ended func(int, R) bool,
) {
	type end struct {
		index  int
		result R
	}
	ends := make(chan end)
	goOn := true
	for next, running := 0, 0; ; {
		for goOn && ctx.Err() == nil && next < count && running < parallel {
			index := next
			next, running = next+1, running+1
			go func() { ends <- end{index, send(ctx, index)} }()
		}
		if running == 0 {
			return
		}
		e := <-ends
		running--
		goOn = ended(e.index, e.result) && goOn
	}
}
