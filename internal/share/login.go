package share

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// LoginScheme begins what a command names on a machine that it logs in to with ssh: ssh://[USER@]HOST[:PORT]/PATH.
const LoginScheme = "ssh://"

// LoginShare is the name of the only share of a far side that was started with ssh.
const LoginShare = "files"

// home stands for the user's home directory at the beginning of a directory of a Login.
const home = "~"

// Login is a machine that ssh logs in to, as the ssh program takes it. The zero value is none.
type Login struct {
	User string // empty: by the configuration of ssh
	Host string // a name in DNS or in the configuration of ssh, or an IP address without brackets
	Port string // empty: by the configuration of ssh
}

// String returns [USER@]HOST[:PORT] as ParseLogin reads it.
func (l Login) String() string {
	text := l.Host
	switch {
	case l.Port != "":
		text = net.JoinHostPort(l.Host, l.Port)
	case strings.Contains(text, ":"):
		text = "[" + text + "]"
	}
	if l.User != "" {
		text = l.User + "@" + text
	}
	return text
}

// userPattern accepts no name that ssh or a shell could take for something else.
var userPattern = pattern(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}$`)

// ParseLogin parses [USER@]HOST[:PORT]. No part of it can be an option of ssh.
func ParseLogin(text string) (l Login, err error) {
	at := text
	if end := strings.LastIndexByte(text, '@'); end >= 0 {
		l.User, at = text[:end], text[end+1:]
		if !userPattern().MatchString(l.User) {
			return Login{}, fmt.Errorf("%s is not the name of a user", quote.Text(l.User))
		}
	}
	if l.Host, l.Port, err = splitAddress(at, ""); err != nil {
		return Login{}, err
	}
	return l, checkHost(l.Host, strings.HasPrefix(at, "["))
}

// parseLoginURL parses the text behind LoginScheme. A path that ends with "/" or "/." names a directory that is shared
// itself. Any other path is below the directory above it, or above its first name with a pattern.
func parseLoginURL(text string) (Remote, error) {
	login, path, found := strings.Cut(text, "/")
	if !found {
		return Remote{}, errors.New("there is no path behind the host: write ssh://HOST/DIRECTORY/NAME, or " +
			"ssh://HOST/~/NAME for the home directory")
	}
	var r Remote
	var err error
	if r.Login, err = ParseLogin(login); err != nil {
		return Remote{}, err
	}
	r.Share = "/"
	if first, rest, more := strings.Cut(path, "/"); first == home || first == "." && more {
		r.Share, path = home, rest
	}
	if path, err = CleanPath(path); err != nil {
		return Remote{}, err
	}
	names := strings.Split(path, "/")
	last := len(names) - 1
	shared := 0
	for shared < last && !IsPattern(names[shared]) {
		shared++
	}
	r.Share = joinDirectory(r.Share, strings.Join(names[:shared], "/"))
	r.Path = strings.Join(names[shared:], "/")
	return r, nil
}

func joinDirectory(base, below string) string {
	if below == "" || base == "" {
		return base + below
	}
	return strings.TrimSuffix(base, "/") + "/" + below
}

// Unite returns places of one Login below the deepest directory that they have in common, which then is the Share of
// each. Other places stay as they are.
func Unite(places []Remote) ([]Remote, error) {
	if len(places) < 2 || places[0].Login == (Login{}) {
		return places, nil
	}
	common := strings.Split(places[0].directory(), "/")
	for _, each := range places {
		if each.Login != places[0].Login {
			return places, nil // which the command refuses
		}
		names := strings.Split(each.directory(), "/")
		same := 0
		for same < min(len(names), len(common)) && names[same] == common[same] {
			same++
		}
		common = common[:same]
	}
	if len(common) == 0 {
		return nil, fmt.Errorf("%s and %s are below the home directory and below /: copy them one by one",
			quote.Text(places[0].String()), quote.Text(places[len(places)-1].String()))
	}
	shared := Remote{Share: strings.Join(common, "/")}
	if shared.Share == "" {
		shared.Share = "/"
	}
	united := make([]Remote, len(places))
	for i, each := range places {
		below := strings.TrimPrefix(strings.TrimPrefix(each.directory(), shared.directory()), "/")
		united[i] = Remote{Login: each.Login, Share: shared.Share, Path: each.Path}
		if below != "" {
			united[i].Path = below + "/" + each.Path
		}
	}
	return united, nil
}

// directory returns the Share of a place with a Login; "/" becomes empty.
func (r Remote) directory() string { return strings.TrimSuffix(r.Share, "/") }
