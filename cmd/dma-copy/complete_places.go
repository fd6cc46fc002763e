package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// inShares completes arguments of which all are in shares.
func inShares(c completer, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.remote(word)
}

// pushArguments completes SRC... [PEER]:SHARE[/PATH].
func pushArguments(c completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(before) == 0 && !isRemote(word) {
		return nil, files
	}
	return c.either(word)
}

// pullArguments completes [PEER]:SHARE/PATH... DST.
func pullArguments(c completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(before) == 0 {
		return c.remote(word)
	}
	return c.either(word)
}

// syncArguments completes SRC and DST, of which one is in a share.
func syncArguments(c completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case len(before) == 0:
		return c.either(word)
	case len(before) > 1:
		return nil, onlyThese
	case isRemote(before[0]):
		return nil, files
	default:
		return c.remote(word)
	}
}

// peerArgument completes PEER, without a share.
func peerArgument(c completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(before) > 0 {
		return nil, onlyThese
	}
	return c.peers(word, ""), onlyThese
}

// listSettings returns the settings with which ls would list a daemon.
func (c completer) listSettings() *config.List {
	s := new(config.List)
	c.load(s)
	s.Driver.LogLevel, s.TrustFirst = option.LevelDisable, false
	s.Wait = c.patience()
	return s
}

// isRemote reports whether a word is the beginning of a place on the other side, and no name of a peer or file so far.
func isRemote(word string) bool {
	first, _, _ := strings.Cut(word, "/")
	return strings.Contains(first, ":")
}

// either completes an argument that is on this side or on the other. A shell cannot add names of files to candidates,
// so they are listed here where names of peers begin like the word.
func (c completer) either(word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if isRemote(word) {
		return c.remote(word)
	}
	offered := c.peers(word, ":")
	if len(offered) == 0 {
		return nil, files
	}
	return append(offered, within(c.patience(), func() []cobra.Completion { return filesHere(word) })...), moreFollows
}

// filesHere returns the names in the working directory with this beginning, those of directories with a slash: all, or
// at least maxOffered of them. Hidden files need a beginning.
func filesHere(word string) (offered []cobra.Completion) {
	here, err := os.Open(".")
	if err != nil {
		return nil
	}
	defer here.Close()
	for err == nil && len(offered) < maxOffered {
		var entries []os.DirEntry
		entries, err = here.ReadDir(readTogether)
		for _, entry := range entries {
			name := entry.Name()
			if !strings.HasPrefix(name, word) || word == "" && strings.HasPrefix(name, ".") || !canOffer(name) {
				continue
			}
			if entry.IsDir() {
				name += "/"
			}
			offered = append(offered, name)
		}
	}
	return offered
}

// readTogether is how many entries of a directory are read at a time.
const readTogether = 256

// peers returns the names of the peers with this beginning, followed by what separates them from a share, and their
// addresses if the word has begun with one.
func (c completer) peers(word, separator string) (offered []cobra.Completion) {
	known := c.listSettings().Peers
	for _, name := range slices.Sorted(maps.Keys(known)) {
		about := known[name].Device
		if address := known[name].Address; address != "" {
			about = share.Scheme + address
			if word != "" && strings.HasPrefix(about, word) {
				offered = append(offered, cobra.CompletionWithDesc(about+strings.Repeat("/", len(separator)), name))
			}
		}
		if strings.HasPrefix(name+separator, word) {
			offered = append(offered, cobra.CompletionWithDesc(name+separator, about))
		}
	}
	return offered
}

// remote completes a place on the other side: peers, their shares, and what is in them. Without a peer in the
// configuration an empty word is that of the only daemon.
func (c completer) remote(word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	base := directoryOf(word)
	if base == "" {
		if offered := c.peers(word, ":"); len(offered) > 0 || word != "" {
			return offered, moreFollows
		}
		base = ":"
	}
	at, _, err := share.ParseRemote(base)
	if err != nil {
		return nil, onlyThese
	}
	offered := within(c.patience()*3/2, func() []cobra.Completion {
		list, err := c.list(at, base, word)
		if err != nil {
			return nil // the beginning that all names have in common is unknown without the rest
		}
		return list
	})
	if len(offered) == 1 && !strings.Contains(offered[0], "/\t") {
		return offered, onlyThese
	}
	return offered, moreFollows
}

// directoryOf returns the part of the word in front of the name that is to be completed: up to the colon of a peer, the
// slash behind an address or that of a directory. It is empty as long as the word does not name the daemon.
func directoryOf(word string) string {
	if behind, is := strings.CutPrefix(word, share.Scheme); is {
		if slash := strings.LastIndexByte(behind, '/'); slash >= 0 {
			return share.Scheme + behind[:slash+1]
		}
		return ""
	}
	if !isRemote(word) {
		return ""
	}
	return word[:max(strings.LastIndexByte(word, '/'), strings.IndexByte(word, ':'))+1]
}

// maxOffered is as many names as a shell handles without a pause; a daemon may send, and a directory have, any number.
const maxOffered = 5000

var errTooMany = errors.New("more names than can be offered")

// list asks the daemon as ls does, and returns what in the directory has the beginning of the word.
func (c completer) list(at share.Remote, base, word string) (offered []cobra.Completion, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.patience())
	defer cancel()
	s := c.listSettings()
	s.Remote = []share.Remote{at}
	reach := reachForPlaces(&s.Places)
	ctx, daemon, err := connect(ctx, c.streams, reach, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	defer daemon.end(&err)
	_, err = daemon.client.List(ctx, placeOf(at), 0, func(e share.Entry) error {
		name := base + path.Base(e.Path)
		if e.Path == "" || !strings.HasPrefix(name, word) || !canOffer(name) {
			return nil
		}
		if len(offered) == maxOffered {
			return errTooMany
		}
		about := quantity.Bytes(uint64(e.Size))
		switch {
		case at.Share == "":
			name, about = name+"/", "share"
		case e.Kind == wire.EntryDirectory:
			name, about = name+"/", "directory"
		case e.Kind == wire.EntrySymlink:
			about = "symlink"
		}
		offered = append(offered, cobra.CompletionWithDesc(name, about))
		return nil
	})
	return offered, err
}

// shellSyntax has the characters by which a word could run a command. bash inserts what several candidates have in
// common without quotes, and evaluates the line when it completes the next word.
const shellSyntax = "$`\\\"';&|<>!"

// canOffer reports whether a name of a peer or file can be given to a shell, to which candidates are lines of text.
func canOffer(name string) bool {
	return quote.Printable(name) == name && !strings.ContainsAny(name, shellSyntax)
}
