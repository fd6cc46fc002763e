package contact

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// PathForPeers returns the absolute path of a file, empty for a stream.
func PathForPeers(file string) string {
	path, err := filepath.Abs(file)
	if err != nil || file == option.Stream {
		return ""
	}
	return path
}

// MachineName returns the name of this machine for the peer, empty if it has none that can be sent.
func MachineName() string {
	name, _ := os.Hostname() // empty with an error
	return nameForPeers(name)
}

// UserName returns the name of the user of this process for the peer, empty if there is none that can be sent.
func UserName() string {
	account, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil {
		return ""
	}
	return nameForPeers(account.Username)
}

// nameForPeers returns a name if the service protocol can have it, which is printable ASCII, and otherwise nothing.
func nameForPeers(name string) string {
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	if len(name) > wire.MaxSoftwareName || strings.ContainsFunc(name, unprintable) {
		return ""
	}
	return name
}
