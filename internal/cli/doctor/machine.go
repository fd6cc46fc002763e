package doctor

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/tcpport"
)

// machine answers the questions of the checks. Its fields are functions, so that tests can replace them; none of them
// changes anything.
type machine struct {
	installation func() (doca.Installation, error)
	inventory    func() (inventory.Inventory, error)
	softDir      func() (doca.SoftDir, error)
	memlock      func() (uint64, error) // bytes that this process may lock; unix.RLIM_INFINITY: any
	mayLockAny   func() bool            // the limit does not bind this process
	verbs        func() []string        // the device files of RDMA
	accessible   func(path string) error
	root         fs.FS // all files
	placement    func() (placement.Machine, error)
	user         func() account
	leftovers    func() ([]string, error)
	partials     func() ([]disk.Leftover, error)
	now          func() time.Time
	network      func() (inventory.Network, error)
	listener     func(netip.AddrPort) (owner tcpport.Owner, taken bool)
	pacing       func() error // nil: the kernel can pace TCP connections
	keys         func() (keys, error)
}

// account is the user of this process.
type account struct {
	id     int
	name   string
	groups []string
}

func thisMachine(s Settings) machine {
	return machine{
		installation: func() (doca.Installation, error) { return doca.FindInstallation(s.Driver.LibraryDir) },
		inventory:    func() (inventory.Inventory, error) { return lookForInventory(s) },
		softDir:      func() (doca.SoftDir, error) { return doca.InspectSoftDir("") },
		memlock:      memlockLimit,
		mayLockAny:   func() bool { return hasCapability(unix.CAP_IPC_LOCK) },
		verbs: func() []string {
			files, _ := filepath.Glob("/dev/infiniband/uverbs*") // fails for a bad pattern only
			return files
		},
		accessible: func(path string) error {
			return unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS)
		},
		root:      os.DirFS("/"),
		placement: placement.ThisMachine,
		user:      currentUser,
		leftovers: func() ([]string, error) { return findLeftovers(".") },
		partials:  func() ([]disk.Leftover, error) { return disk.FindPartials(disk.OS, ".") },
		now:       time.Now,
		network:   inventory.TakeNetwork,
		listener:  tcpport.Listening,
		pacing:    tryPacing,
		keys:      func() (keys, error) { return readKeys(s.Keys, os.Geteuid(), os.Getenv) },
	}
}

func lookForInventory(s Settings) (found inventory.Inventory, err error) {
	err = inventory.Look(s.Driver.Options(), func(driver *doca.Driver) (err error) {
		found, err = inventory.Take(driver)
		return err
	})
	return found, err
}

func memlockLimit() (uint64, error) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit)
	return limit.Cur, err
}

// tryPacing sets the rate of a socket, which is closed without having been used.
func tryPacing() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		return err
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 1<<20)
	return errors.Join(err, unix.Close(fd))
}

// hasCapability reports whether the effective set has the capability: root in a container may lack some.
func hasCapability(capability int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return false
	}
	return sets[capability/32].Effective&(1<<(capability%32)) != 0
}

// currentUser returns the user of this process, without names and groups that are unknown.
func currentUser() account {
	who := account{id: os.Geteuid()}
	who.name = strconv.Itoa(who.id)
	if found, err := user.LookupId(who.name); err == nil {
		who.name = found.Username
	}
	ids, _ := os.Getgroups()
	for _, id := range append([]int{os.Getegid()}, ids...) {
		name := strconv.Itoa(id)
		if found, err := user.LookupGroupId(name); err == nil {
			name = found.Name
		}
		if !slices.Contains(who.groups, name) {
			who.groups = append(who.groups, name)
		}
	}
	return who
}

// findLeftovers lists the temporary files of killed and of running copies in a directory, without the files of
// disk.FindPartials.
func findLeftovers(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	partials, err := disk.FindPartials(disk.OS, directory)
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		name := entry.Name()
		known := slices.ContainsFunc(partials,
			func(p disk.Leftover) bool { return name == p.Name || name == p.Journal })
		if strings.HasPrefix(name, ".") && strings.Contains(name, ".dma-copy-") && !known {
			names = append(names, name)
		}
	}
	return names, err
}
