// Package sandbox takes from the process what a daemon no longer needs once its device, keys, sockets and logs are
// open: access to files outside its shares (Landlock), TCP, signals to other processes, ambient capabilities, and the
// gain of privileges by execve.
//
// All of it holds for every thread of the process, C threads included, and cannot be undone. The package must not know
// what a daemon does; the Policy lists the files that it needs.
package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// The rights of Landlock that each kind of path gets. Nothing may be executed, and no device file or FIFO be made.
const (
	readRights = landlock.AccessFSSet(ll.AccessFSReadFile | ll.AccessFSReadDir)

	// A receiver creates, truncates, links, renames and removes. Refer is for renames between directories of a share,
	// such as renames of staged files.
	shareRights = readRights | landlock.AccessFSSet(ll.AccessFSWriteFile|ll.AccessFSTruncate|ll.AccessFSMakeReg|
		ll.AccessFSMakeDir|ll.AccessFSMakeSym|ll.AccessFSRemoveFile|ll.AccessFSRemoveDir|ll.AccessFSRefer)

	rereadRights = landlock.AccessFSSet(ll.AccessFSReadFile)
	appendRights = landlock.AccessFSSet(ll.AccessFSWriteFile | ll.AccessFSMakeReg)
	socketRights = readRights | landlock.AccessFSSet(ll.AccessFSWriteFile|ll.AccessFSTruncate|ll.AccessFSMakeReg|
		ll.AccessFSMakeDir|ll.AccessFSMakeSock|ll.AccessFSRemoveFile|ll.AccessFSRemoveDir|ll.AccessFSResolveUnix)
	deviceRights = readRights | landlock.AccessFSSet(ll.AccessFSWriteFile|ll.AccessFSIoctlDev)

	// The kernel refuses a rule that gives a file the rights of a directory.
	fileRights = landlock.AccessFSSet(ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate |
		ll.AccessFSIoctlDev)
)

// The versions of Landlock's interface with which the kernel began to enforce something.
const (
	abiFiles    = 1
	abiRefer    = 2 // renames between directories; before it they were always refused
	abiTruncate = 3
	abiTCP      = 4
	abiIoctl    = 5
	abiScope    = 6 // signals, abstract unix sockets
	abiNewest   = abiScope
)

// Restriction is what Restrict has put into effect.
type Restriction struct {
	policy Policy
	abi    int  // of Landlock; 0: not in effect
	apart  bool // each thread has credentials of its own
}

// kernel is the part of the system that Restrict calls; tests replace it by kernels without Landlock.
type kernel struct {
	landlockABI func() int
	landlock    func(rules []landlock.Rule, sockets bool) error // sockets: leaves the sockets of Policy.UCX
	prctl       func(option int, arguments ...uintptr) error    // on all threads
	ambient     func() bool                                     // whether a thread may have ambient capabilities
}

var running = kernel{
	landlockABI: landlockABI,
	landlock:    restrictWithLandlock,
	prctl: func(option int, arguments ...uintptr) error {
		var all [4]uintptr
		copy(all[:], arguments)
		return ll.AllThreadsPrctl(option, all[0], all[1], all[2], all[3])
	},
	ambient: mayHaveAmbient,
}

func restrictWithLandlock(rules []landlock.Rule, sockets bool) error {
	if !sockets {
		return landlock.V9.BestEffort().Restrict(rules...)
	}
	signals, err := landlock.NewConfig(landlock.ScopedSet(ll.ScopeSignal))
	if err != nil {
		return err
	}
	return errors.Join(landlock.V9.BestEffort().RestrictPaths(rules...), signals.BestEffort().RestrictScoped())
}

func landlockABI() int {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return abi
}

// Restrict puts the policy into effect for the whole process, for good. Call it once, with all shares open. Landlock is
// used as far as the kernel has it, see Missing; anything else that fails is an error, and the process must end then,
// because it may be restricted in part.
func Restrict(p Policy) (*Restriction, error) { return running.restrict(p) }

func (k kernel) restrict(p Policy) (*Restriction, error) {
	p, err := p.resolved()
	if err != nil {
		return nil, err
	}
	if err := k.prctl(unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return nil, fmt.Errorf("set no_new_privs: %w", err)
	}
	r := &Restriction{policy: p, abi: k.landlockABI()}
	if k.ambient() {
		r.apart = true
		if err := k.prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL); err != nil {
			return nil, fmt.Errorf("drop the ambient capabilities: %w", err)
		}
	}
	if r.abi < abiRefer {
		return r, nil
	}
	r.apart = true
	if err := k.landlock(p.rules(), p.UCX); err != nil {
		return nil, fmt.Errorf("confine the daemon to its files with Landlock: %w", err)
	}
	return r, nil
}

func (p Policy) rules() []landlock.Rule {
	// The process's own files in /proc name files without a name, and tell the umask and the threads.
	rules := []landlock.Rule{landlock.PathAccess(readRights, "/proc/self/")}
	for _, share := range p.Shares {
		rights := readRights
		if share.Write {
			rights = shareRights
		}
		rules = append(rules, landlock.PathAccess(rights, share.Path))
	}
	// An editor or a package manager replaces a file by another one, for which a rule of the old one does not hold.
	var rereadIn []string
	for _, file := range p.Reread {
		if file != "" {
			rereadIn = append(rereadIn, filepath.Dir(file))
		}
	}
	for _, kind := range []struct {
		rights landlock.AccessFSSet
		paths  []string
	}{
		{readRights, p.Read}, {rereadRights, rereadIn}, {appendRights, p.Append}, {socketRights, p.Sockets},
		{deviceRights, p.Devices},
	} {
		for _, path := range kind.paths {
			rights := kind.rights
			if info, err := os.Stat(path); err != nil {
				continue // without a rule it stays closed
			} else if !info.IsDir() {
				rights &= fileRights
			}
			rules = append(rules, landlock.PathAccess(rights, path).IgnoreIfMissing())
		}
	}
	return rules
}

// Missing returns one sentence about what the kernel does not enforce, for the log; empty if nothing is missing.
func (r *Restriction) Missing() string {
	var missing []string
	switch {
	case r.abi < abiFiles:
		return "the kernel has no Landlock, or it is not enabled at boot: files outside the shares are protected by " +
			"their permissions alone"
	case r.abi < abiRefer:
		return "Landlock of this kernel (version 1) would refuse renames between directories, so it is not used: " +
			"files outside the shares are protected by their permissions alone"
	}
	for _, feature := range []struct {
		since int
		name  string
	}{{abiTruncate, "truncation of files"}, {abiTCP, "TCP"}, {abiIoctl, "ioctl on devices"},
		{abiScope, "signals and abstract sockets"}} {
		if r.abi < feature.since && !(feature.since == abiTCP && r.policy.UCX) {
			missing = append(missing, feature.name)
		}
	}
	if missing == nil {
		return ""
	}
	return fmt.Sprintf("Landlock of this kernel (version %d of %d) does not restrict %s", r.abi, abiNewest,
		strings.Join(missing, ", "))
}

// Confined reports whether files outside the policy can no longer be opened.
func (r *Restriction) Confined() bool { return r.abi >= abiRefer }

// Apart reports whether each thread has got credentials of its own. Then the kernel refuses a thread to write to the
// file of a software RDMA device that another thread has opened.
func (r *Restriction) Apart() bool { return r.apart }

// Forbids reports whether the process has given up the right to use the directory that is at the path of a share now.
// It may be called concurrently, and on nil, when nothing is given up.
func (r *Restriction) Forbids(s Share) bool {
	if r == nil || !r.Confined() {
		return false
	}
	path, err := resolve(s.Path)
	if err != nil {
		return false // the caller learns it, too
	}
	return !r.policy.covers(Share{Path: path, Write: s.Write}) || isForbidden(path)
}

// isForbidden reports whether Landlock, and not the permissions, forbids the process to open a directory. The rule of a
// directory is gone when its file system was unmounted, even if it has been mounted again.
func isForbidden(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd) // it was only opened
	}
	return errors.Is(err, unix.EACCES) && unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK, unix.AT_EACCESS) == nil
}

// Admit returns an error with the code exit.Usage if a share that is added or changed while the daemon runs needs a
// file that the process can no longer open. A share below a directory that the daemon had when it started is admitted,
// if it needs no more rights.
func (r *Restriction) Admit(name string, s Share) error {
	if !r.Confined() {
		return nil
	}
	path, err := resolve(s.Path)
	if err != nil {
		return exit.Usagef("share %s: %w", quote.Text(name), err)
	}
	if r.policy.covers(Share{Path: path, Write: s.Write}) {
		return nil
	}
	access := "read"
	if s.Write {
		access = "write to"
	}
	return exit.Usagef("share %s: the daemon may not %s %s, because no share allowed it when the daemon started: "+
		"restart it", quote.Text(name), access, quote.Bare(path))
}

// mayHaveAmbient reports whether a thread has ambient capabilities, or whether that is not known. Clearing an empty set
// would give each thread credentials of its own, with which the kernel refuses a thread the use of a software RDMA
// device that another thread has opened.
func mayHaveAmbient() bool {
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(threads) == 0 {
		return true
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if err != nil || !hasNoAmbient(status) {
			return true
		}
	}
	return false
}

// hasNoAmbient reports whether the status of a thread says that its set of ambient capabilities is empty.
func hasNoAmbient(status []byte) bool {
	_, after, found := bytes.Cut(status, []byte("\nCapAmb:\t"))
	set, _, complete := bytes.Cut(after, []byte("\n"))
	return found && complete && len(set) > 0 && len(bytes.Trim(set, "0")) == 0
}
