package share

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// Remote is what a command names on the other side, [PEER]:[SHARE[/PATH]], or on another machine,
// ucx://HOST[:PORT]/[SHARE[/PATH]] or ssh://[USER@]HOST[:PORT]/PATH.
type Remote struct {
	Peer    string // of the configuration; empty: the only one, unless there is an Address
	Address string // HOST:PORT as ParseAddress returns it; empty: not given
	Login   Login  // of a machine on which ssh starts the far side; the zero value: it runs there already
	Share   string // empty: the list of shares; with a Login the directory, which begins with "/" or "~"
	Path    string // as CleanPath returns it
}

// Daemon returns what stands in front of the share: "PEER:", ":", "ucx://HOST:PORT/" or "ssh://[USER@]HOST[:PORT]/".
func (r Remote) Daemon() string {
	switch {
	case r.Login != (Login{}):
		return LoginScheme + r.Login.String() + "/"
	case r.Address != "":
		return Scheme + r.Address + "/"
	}
	return r.Peer + ":"
}

// ShareName returns the name of the share for requests, empty for the list of shares.
func (r Remote) ShareName() string {
	if r.Login != (Login{}) {
		return LoginShare
	}
	return r.Share
}

// String returns a form that ParseRemote reads.
func (r Remote) String() string {
	text := r.Daemon() + strings.TrimPrefix(r.Share, "/")
	if r.Path != "" || r.Login != (Login{}) {
		text = strings.TrimSuffix(text, "/") + "/" + r.Path
	}
	return text
}

// otherScheme is the begin of an URL.
var otherScheme = pattern(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// ParseRemote parses an argument of a command. It is remote if there is a ":" before the first "/"; any other text is a
// path of this machine, and a path with such a ":" is written with "./" before it. Nothing of a path is decoded.
func ParseRemote(text string) (r Remote, remote bool, err error) {
	first, path, hasPath := strings.Cut(text, "/")
	peer, name, remote := strings.Cut(first, ":")
	if !remote {
		return Remote{}, false, nil
	}
	if behind, is := strings.CutPrefix(text, Scheme); is {
		if r, err = parseURL(behind); err != nil {
			return Remote{}, true, fmt.Errorf("%s: %w", quote.Text(text), err)
		}
		return r, true, nil
	}
	if behind, is := strings.CutPrefix(text, LoginScheme); is {
		if r, err = parseLoginURL(behind); err != nil {
			return Remote{}, true, fmt.Errorf("%s: %w", quote.Text(text), err)
		}
		return r, true, nil
	}
	if scheme := otherScheme().FindString(text); scheme != "" {
		return Remote{}, true, fmt.Errorf("%s: unknown scheme %s: write ucx://HOST:PORT/SHARE/PATH for a daemon on "+
			"another machine", quote.Text(text), scheme)
	}
	if err := checkRemote(peer, name, hasPath); err != nil {
		return Remote{}, true, fmt.Errorf("%s: %w (a file of this machine whose name contains a colon is written %s)",
			quote.Text(text), err, quote.Text("./"+text))
	}
	path, err = CleanPath(path)
	if err != nil {
		return Remote{}, true, fmt.Errorf("%s: %w", quote.Text(text), err)
	}
	return Remote{Peer: peer, Share: name, Path: path}, true, nil
}

func checkRemote(peer, name string, hasPath bool) error {
	if peer != "" {
		if err := CheckName(peer); err != nil {
			return fmt.Errorf("%s before the colon is not the name of a peer", quote.Text(peer))
		}
	}
	if name == "" && hasPath {
		return errors.New("there is no share between the colon and the slash: write [PEER]:SHARE/PATH")
	}
	if name != "" {
		return CheckName(name)
	}
	return nil
}

// CleanPath returns a path below a share without "." and superfluous slashes, except at its end: a path that ends with
// slashes keeps one, and a path whose last name is "." ends with "/.", or is ".". The share itself is the empty path,
// also with slashes. A path with "..", a zero byte, a name that is reserved for unfinished files, or more than
// tree.MaxPath bytes is an error.
func CleanPath(text string) (string, error) {
	switch {
	case len(text) > tree.MaxPath:
		return "", fmt.Errorf("a path below a share has at most %d bytes: shorten it", tree.MaxPath)
	case strings.IndexByte(text, 0) >= 0:
		return "", errors.New("a path cannot contain a zero byte: correct it")
	}
	cleaned, last, content := make([]byte, 0, len(text)), "", false
	for last = range strings.SplitSeq(text, "/") {
		content = last == "." || last == "" && content
		switch {
		case last == "" || last == ".":
			continue
		case last == "..":
			return "", errors.New(`a path below a share cannot contain "..": name it from the share on`)
		case disk.IsReserved(last):
			return "", fmt.Errorf("the name %s is reserved for unfinished files: choose another one", quote.Text(last))
		}
		if len(cleaned) > 0 {
			cleaned = append(cleaned, '/')
		}
		cleaned = append(cleaned, last...)
	}
	if len(cleaned) > 0 && (last == "" || content) {
		cleaned = append(cleaned, '/')
	}
	if content {
		cleaned = append(cleaned, '.')
	}
	return string(cleaned), nil
}
