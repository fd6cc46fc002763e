package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// Share is a directory that peers use.
type Share struct {
	Path  string
	Write bool // otherwise nothing below it can be changed

	at os.FileInfo // of the directory, in a resolved policy
}

// Policy lists the files that the process may open after Restrict. Files that are open already stay open, with the
// access that they have. Apart from shares, files that do not exist, and empty names, are left out. A rule for a file
// does not hold for another file that is later given its name, one for a directory does.
type Policy struct {
	Shares  []Share
	Read    []string // files, and directories with all below them
	Reread  []string // files that may be replaced under their names: every file in and below their directories
	Append  []string // directories in which log files are created and written
	Sockets []string // directories in which sockets, files and directories are made, replaced and removed
	Devices []string // device files, or directories of them: read, write and ioctl
	UCX     bool     // TCP ports and abstract unix sockets may be used; those that listen already always may
}

// WithDevice returns the policy with the files that a device needs for connections, memory and engines that are made
// after Restrict: files of the software device with that runtime directory or, if it is empty, of DOCA's libraries and
// of the kernel's interface to the card.
func (p Policy) WithDevice(softDir string) Policy {
	if softDir != "" {
		p.Sockets = append(slices.Clone(p.Sockets), softDir)
		p.Read = append(slices.Clone(p.Read), "/proc") // the start times of the peers' processes
		return p
	}
	p.Devices = append(slices.Clone(p.Devices), "/dev/infiniband", "/dev/hugepages")
	p.Read = append(slices.Clone(p.Read), "/sys", "/proc", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/opt/mellanox",
		"/etc/libibverbs.d", "/etc/ld.so.cache")
	return p
}

// WithUCX returns the policy with what UCX needs for workers that are made after Restrict: device files, the kernel's
// tables of devices, shared memory, and sockets of its own and of its peers: TCP, and unix sockets without a name.
func (p Policy) WithUCX() Policy {
	p = p.WithDevice("")
	p.Sockets = append(slices.Clone(p.Sockets), "/dev/shm")
	p.UCX = true
	return p
}

// resolved returns the policy with all paths absolute and without symlinks, so that covers can compare them, and with
// the identity of each share.
func (p Policy) resolved() (Policy, error) {
	r := p
	r.Shares = make([]Share, len(p.Shares))
	for i, share := range p.Shares {
		path, err := resolve(share.Path)
		var at os.FileInfo
		if err == nil {
			at, err = os.Stat(path)
		}
		if err != nil {
			return Policy{}, fmt.Errorf("confine the daemon to %s: %w", quote.Bare(share.Path), err)
		}
		r.Shares[i] = Share{Path: path, Write: share.Write, at: at}
	}
	return r, nil
}

func resolve(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(absolute)
}

// covers reports whether one of the shares permits what the share s needs. The paths are resolved. A rule of Landlock
// is for a directory and not for its path, so it does not hold for what has been renamed to it or mounted over it.
func (p Policy) covers(s Share) bool {
	for _, have := range p.Shares {
		below := have.Path == s.Path || have.Path == "/" || strings.HasPrefix(s.Path, have.Path+"/")
		if !below || s.Write && !have.Write {
			continue
		}
		if at, err := os.Stat(have.Path); err == nil && os.SameFile(at, have.at) {
			return true
		}
	}
	return false
}
