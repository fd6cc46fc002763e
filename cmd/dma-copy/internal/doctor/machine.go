package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/doca"
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
	placement    func() (placement.Machine, error)
	user         func() account
	ownMemory    func() error        // reads this process's memory as if it was the peer's
	yamaScope    func() (int, error) // fs.ErrNotExist if the kernel has no Yama
	mayTrace     func() bool         // yamaScope does not bind this process
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

func thisMachine(s config.Doctor) machine {
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
		placement: placement.ThisMachine,
		user:      currentUser,
		ownMemory: readOwnMemory,
		yamaScope: yamaScope,
		mayTrace:  func() bool { return hasCapability(unix.CAP_SYS_PTRACE) },
		leftovers: func() ([]string, error) { return findLeftovers(".") },
		partials:  func() ([]disk.Leftover, error) { return findPartials(".") },
		now:       time.Now,
		network:   inventory.TakeNetwork,
		listener:  tcpport.Listening,
		pacing:    tryPacing,
		keys:      func() (keys, error) { return readKeys(s.Keys, os.Geteuid(), os.Getenv) },
	}
}

func lookForInventory(s config.Doctor) (found inventory.Inventory, err error) {
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

func currentUser() account {
	who := account{id: os.Geteuid()}
	who.name = nameOr(who.id, func(id string) (string, error) {
		found, err := user.LookupId(id)
		if err != nil {
			return "", err
		}
		return found.Username, nil
	})
	ids, _ := os.Getgroups() // shown without groups if they are unknown
	for _, id := range append([]int{os.Getegid()}, ids...) {
		name := nameOr(id, groupName)
		if len(who.groups) == 0 || name != who.groups[0] {
			who.groups = append(who.groups, name)
		}
	}
	return who
}

func groupName(id string) (string, error) {
	found, err := user.LookupGroupId(id)
	if err != nil {
		return "", err
	}
	return found.Name, nil
}

func nameOr(id int, lookUp func(string) (string, error)) string {
	text := strconv.Itoa(id)
	if name, err := lookUp(text); err == nil {
		return name
	}
	return text
}

// readOwnMemory returns an error if process_vm_readv is not usable: a process may always read itself, unless a filter
// forbids the call.
func readOwnMemory() error {
	there, here := []byte("dma-copy"), make([]byte, 8)
	var pins runtime.Pinner
	pins.Pin(&there[0]) // the kernel is given its address as a number
	defer pins.Unpin()
	local := []unix.Iovec{{Base: &here[0]}}
	local[0].SetLen(len(here))
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&there[0])), Len: len(there)}}
	n, err := unix.ProcessVMReadv(os.Getpid(), local, remote, 0)
	if err == nil && (n != len(here) || !bytes.Equal(here, there)) {
		err = fmt.Errorf("it read %q", here[:n])
	}
	return err
}

func yamaScope() (int, error) {
	text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// findLeftovers lists the temporary files of killed and of running copies in a directory, without those of
// findPartials.
func findLeftovers(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	partials, err := findPartials(directory)
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

// findPartials lists the partial files of interrupted copies and of running ones.
func findPartials(directory string) ([]disk.Leftover, error) {
	found, err := disk.FindPartials(disk.OS, directory)
	return found, err
}
