package contact

import (
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// CompleteInShares completes arguments that are all in shares.
func CompleteInShares(c root.Completer, _ []string, word string) ([]string, root.Directive) {
	return CompleteRemote(c, word)
}

// CompletePeer completes PEER, without a share.
func CompletePeer(c root.Completer, before []string, word string) ([]string, root.Directive) {
	if len(before) > 0 {
		return nil, root.OnlyThese
	}
	return completePeers(c, word, ""), root.OnlyThese
}

// ListSettings returns the settings with which ls would list a daemon.
func ListSettings(c root.Completer) *Places {
	s := new(unnamed)
	c.Load(s)
	s.Driver.LogLevel, s.TrustFirst = option.LevelDisable, false
	s.Wait = c.Grace()
	return &s.Places
}

// unnamed are the settings of a command that names a place, without options of its own.
type unnamed struct{ Places }

// Table implements option.Settings.
func (s *unnamed) Table() []option.Option {
	return slices.Concat(device.CommonOptions(&s.Logging, &s.Driver), s.Reach.Table(), s.PeerOptions())
}

// IsRemote reports whether a word is the beginning of a place on the other side, and no name of a peer or file so far.
func IsRemote(word string) bool {
	first, _, _ := strings.Cut(word, "/")
	return strings.Contains(first, ":")
}

// CompleteEither completes an argument that is on this side or on the other. A shell cannot add names of files to
// candidates, so they are listed here where names of peers begin like the word.
func CompleteEither(c root.Completer, word string) ([]string, root.Directive) {
	if IsRemote(word) {
		return CompleteRemote(c, word)
	}
	offered := completePeers(c, word, ":")
	if len(offered) == 0 {
		return nil, root.Files
	}
	return append(offered, root.Within(c.Grace(), func() []string { return filesHere(word) })...),
		root.MoreFollows
}

// filesHere returns the names in the working directory with this beginning, with a slash behind directories: all, or at
// least maxOffered of them. Hidden files need a beginning.
func filesHere(word string) (offered []string) {
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

// completePeers returns the names of the peers with this beginning, followed by what separates them from a share, and
// their addresses if the word has begun with one.
func completePeers(c root.Completer, word, separator string) (offered []string) {
	known := ListSettings(c).Peers
	for _, name := range slices.Sorted(maps.Keys(known)) {
		about := known[name].Device
		if address := known[name].Address; address != "" {
			about = share.Scheme + address
			if word != "" && strings.HasPrefix(about, word) {
				offered = append(offered, root.Candidate(about+strings.Repeat("/", len(separator)), name))
			}
		}
		if strings.HasPrefix(name+separator, word) {
			offered = append(offered, root.Candidate(name+separator, about))
		}
	}
	return offered
}

// CompleteRemote completes a place on the other side: peers, their shares, and what is in them. Without a peer in the
// configuration an empty word stands for the only daemon.
func CompleteRemote(c root.Completer, word string) ([]string, root.Directive) {
	base := directoryOf(word)
	if base == "" {
		if offered := completePeers(c, word, ":"); len(offered) > 0 || word != "" {
			return offered, root.MoreFollows
		}
		base = ":"
	}
	at, _, err := share.ParseRemote(base)
	if err != nil || at.Login != (share.Login{}) { // ssh could ask for a password
		return nil, root.OnlyThese
	}
	offered := root.Within(c.Grace()*3/2, func() []string {
		list, err := completeInDirectory(c, at, base, word)
		if err != nil {
			return nil // the beginning that all names have in common is unknown without the rest
		}
		return list
	})
	if len(offered) == 1 && !strings.Contains(offered[0], "/\t") {
		return offered, root.OnlyThese
	}
	return offered, root.MoreFollows
}

// directoryOf returns the part of the word in front of the name that is to be completed: up to the colon of a peer, or
// the slash behind an address or a directory. It is empty as long as the word does not name the daemon.
func directoryOf(word string) string {
	if behind, is := strings.CutPrefix(word, share.Scheme); is {
		if slash := strings.LastIndexByte(behind, '/'); slash >= 0 {
			return share.Scheme + behind[:slash+1]
		}
		return ""
	}
	if !IsRemote(word) {
		return ""
	}
	return word[:max(strings.LastIndexByte(word, '/'), strings.IndexByte(word, ':'))+1]
}

// maxOffered is as many names as a shell handles without a pause; a daemon may send, and a directory have, any number.
const maxOffered = 5000

var errTooMany = errors.New("more names than can be offered")

// completeInDirectory asks the daemon as ls does, and returns what in the directory has the beginning of the word.
func completeInDirectory(c root.Completer, at share.Remote, base, word string) (offered []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.Grace())
	defer cancel()
	s := ListSettings(c)
	s.Remote = []share.Remote{at}
	reach := reachForPlaces(s)
	ctx, daemon, err := Connect(ctx, c.Streams, reach, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	defer daemon.End(&err)
	_, err = daemon.Client.List(ctx, connect.PlaceOf(at), 0, func(e share.Entry) error {
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
		offered = append(offered, root.Candidate(name, about))
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
