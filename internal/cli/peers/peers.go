// Package peers lists and edits the names of daemons in the parameter file.
package peers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Settings holds the settings of peers.
type Settings struct {
	option.Logging
	Output    option.OutputForm
	Quiet     bool
	Overwrite bool
	Peer      option.Peer  // that add writes
	Peers     option.Peers // of the parameter files
	file      string       // of --json; empty: not given
}

// Table implements option.Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat(s.LogOptions(), []option.Option{
		option.ParameterFile(),
		option.Output(&s.Output, "list, show: output format"),
		option.Quiet(&s.Quiet, "add, remove: print errors only"),
	}, option.FlagsOnly(option.Everyday(option.Switch(option.AddedFlags, "overwrite", &s.Overwrite,
		"add: replace the peer that has this NAME"))), option.PeerOptions(&s.Peer))
}

// Loaded takes over what is not an option.
func (s *Settings) Loaded(l option.Loaded) { s.Peers, s.file = l.Peers, l.ParameterFile }

// UsesPeers marks settings to which the peers of the parameter files belong.
func (s *Settings) UsesPeers() {}

// The actions.
const (
	actionAdd    = "add"
	actionList   = "list"
	actionShow   = "show"
	actionRemove = "remove"
)

var actions = []string{actionAdd, actionList, actionShow, actionRemove}

// Command returns the command peers. all returns the settings of all commands, by which a parameter file is checked.
func Command(all func() option.Commands) root.Command {
	s := new(Settings)
	return root.Command{
		Name:    "peers",
		Summary: "Give daemons names",
		Takes:   []string{"add NAME", "list", "show NAME", "remove NAME"},
		About: `A peer is a name for a daemon: how it is reached, and which key it must have.
Commands take it as PEER. The names are in the group "peers" of a parameter
file: the --json file, or else DMA_COPY_CONFIG or /etc/dma-copy/config.json.
`,
		List: []option.Row{
			{Term: "add NAME", Text: "adds a peer with the device or the address, and the key, that the flags name"},
			{Term: "list", Text: "lists the peers of all parameter files"},
			{Term: "show NAME", Text: "prints one peer, and where it is defined"},
			{Term: "remove NAME", Text: "removes a peer"},
		},
		Notes: `add and remove replace the file at once, and keep what else is in it, comments
too. A file that is not valid is not changed.
`,
		Examples: `host$ dma-copy peers add dpu --device b1:00.1 --key dpu
here$ dma-copy peers add lab --address lab.example --key lab
here$ dma-copy peers list
`,
		Settings: s,
		Complete: func(_ root.Completer, before []string, word string) ([]string, root.Directive) {
			switch {
			case len(before) == 0:
				return root.Offer(actions, word)
			case len(before) == 1 && (before[0] == actionShow || before[0] == actionRemove):
				return root.Offer(slices.Sorted(maps.Keys(s.Peers)), word)
			}
			return nil, root.OnlyThese
		},
		Run: func(ctx context.Context, streams root.Streams, args []string, _ zerolog.Logger) error {
			return run(ctx, streams, s, args, all)
		},
	}
}

func run(ctx context.Context, streams root.Streams, s *Settings, args []string, all func() option.Commands) error {
	if len(args) == 0 {
		return exit.Usagef("peers: nothing to do: give %s", phrase.Or(actions))
	}
	name := strings.Join(args[1:], " ")
	switch known := slices.Contains(actions, args[0]); {
	case !known:
		return exit.Usagef("peers %s: unknown: give %s", quote.Bare(args[0]), phrase.Or(actions))
	case args[0] == actionList && len(args) > 1 || args[0] != actionList && len(args) != 2:
		return exit.Usagef("peers %s takes %s: see dma-copy peers --help", args[0],
			map[bool]string{true: "no argument", false: "the NAME of a peer"}[args[0] == actionList])
	case args[0] != actionAdd && (s.Peer != option.Peer{} || s.Overwrite):
		return exit.Usagef("the flags of a peer are for peers add: leave them out of peers %s", args[0])
	case args[0] == actionList:
		return print(streams, s, slices.Sorted(maps.Keys(s.Peers)))
	}
	if share.CheckName(name) != nil {
		return exit.Usagef("%s is not a name of a peer: use a-z, 0-9, dots, dashes and underscores", quote.Text(name))
	}
	old, exists := s.Peers[name]
	switch {
	case args[0] == actionAdd:
		return s.add(ctx, streams, name, old, exists, all())
	case !exists:
		return exit.Usagef("there is no peer %s: see dma-copy peers list", name)
	case args[0] == actionShow:
		return print(streams, s, []string{name})
	}
	return s.replace(ctx, streams, "removed", name, nil, all())
}

func (s *Settings) add(
	ctx context.Context, streams root.Streams, name string, old option.Peer, exists bool, all option.Commands,
) error {
	origin := old.Origin
	old.Origin = ""
	switch {
	case s.Peer == option.Peer{}:
		return exit.Usagef("peers add %s: give --device or --address, as in --device b1:00.1", name)
	case exists && old == s.Peer:
		return s.say(streams, "unchanged", name)
	case exists && !s.Overwrite:
		return exit.Errorf(exit.Target, "replace it with --overwrite", "%s: there is a peer %s already", origin, name)
	}
	return s.replace(ctx, streams, "added", name, &s.Peer, all)
}

// replace writes the parameter file with the peer, or without it.
func (s *Settings) replace(
	ctx context.Context, streams root.Streams, done, name string, peer *option.Peer, all option.Commands,
) error {
	path := s.file
	if path == "" {
		path = option.DefaultFile(streams.Env)
	}
	text, err := all.WithPeer(path, name, peer)
	if err != nil {
		return err
	}
	file, err := fileio.Create(path, true)
	if err != nil {
		return err
	}
	defer file.Discard()
	if _, err := file.Write(text); err != nil {
		return err
	}
	if err := file.Commit(ctx); err != nil {
		return err
	}
	return s.say(streams, done, name)
}

func (s *Settings) say(streams root.Streams, done, name string) error {
	if s.Quiet {
		return nil
	}
	_, err := fmt.Fprintf(streams.Stdout, "%s %s\n", done, name)
	return err
}

// listed is a peer as JSON.
type listed struct {
	Name        string `json:"name"`
	Device      string `json:"device,omitempty"`
	Representor string `json:"representor,omitempty"`
	Address     string `json:"address,omitempty"`
	Key         string `json:"key,omitempty"`
	Origin      string `json:"origin"`
}

// print prints peers by name.
func print(streams root.Streams, s *Settings, names []string) error {
	document := struct {
		Version int      `json:"v"`
		Peers   []listed `json:"peers"`
	}{1, []listed{}}
	var text strings.Builder
	for _, name := range names {
		p := s.Peers[name]
		document.Peers = append(document.Peers, listed{name, p.Device, p.Representor, p.Address, p.Key, p.Origin})
		fmt.Fprintf(&text, "%s\n", name)
		for _, field := range []struct{ name, value string }{
			{"device", p.Device}, {"representor", p.Representor}, {"address", p.Address}, {"key", p.Key},
			{"from", p.Origin},
		} {
			if field.value != "" {
				fmt.Fprintf(&text, "  %-11s %s\n", field.name, quote.Printable(field.value))
			}
		}
	}
	return output.Print(streams.Stdout, s.Output, "peers", document, text.String())
}
