package config

import (
	"path"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Ends are both ends of one copy of push, pull or sync. Where it lands follows from the spelling of source and target
// alone: the same command means the same again, whatever the first run has created.
type Ends struct {
	Local     string
	Remote    share.Remote
	Directory bool // the source is meant by its content, so it has to be a directory
}

// Ends returns the ends of each copy, for settings with one target. It refuses sources that cannot land there.
func (s *Transfer) Ends() ([]Ends, error) {
	sources, text, target := s.Local, "", ""
	if s.Sends {
		text, target = s.Remote[0].String(), s.Remote[0].Path
	} else {
		sources, text, target = nil, s.Local[0], s.Local[0]
		for _, remote := range s.Remote {
			sources = append(sources, remote.Share+"/"+remote.Path)
		}
	}
	isPattern := func(source string) bool { return s.Kind == Pull && !s.Expanded && share.IsPattern(source) }
	several := len(sources) > 1 || isPattern(sources[0])
	if err := copying.CheckTarget(text, target, sources[0], several); err != nil {
		return nil, err
	}
	var all []Ends
	seen := map[string]bool{}
	for i, source := range sources {
		landed := copying.Landing(source, target)
		if seen[landed] && !isPattern(source) {
			return nil, exit.Usagef("two sources have the name %s in DST %s: copy them one by one",
				quote.Text(copying.NameOf(source)), quote.Text(text))
		}
		seen[landed] = true
		e := Ends{Directory: copying.NameOf(source) == ""}
		if s.Sends {
			e.Local, e.Remote = source, s.Remote[0]
			e.Remote.Path = path.Clean("/" + landed)[1:]
		} else {
			e.Local, e.Remote = landed, s.Remote[i]
		}
		all = append(all, e)
	}
	return all, nil
}
