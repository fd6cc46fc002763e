package ucx

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// library is the file that Open loads: the name of every release of UCX 1.
const library = "libucp.so.0"

// load loads the library of this process once: UCX keeps state of its own in it and cannot be unloaded.
var load = sync.OnceValues(func() (abi, error) { return loadLibrary(library) })

// Context is UCX with one set of settings. It is safe for concurrent use.
type Context struct {
	abi      abi
	settings Settings

	directory *memoryDirectory // nil: none

	mu     sync.Mutex // of calls that need one at a time
	handle contextHandle
}

// Open loads UCX, the first time, and opens a context. Errors that wrap ErrUnavailable say what to install.
// StatusNoDevice means that none of the transports is on any of the network devices, ErrTooManyDevices that they have
// to be chosen. It is safe for concurrent use. Implements: ucp_init.
func Open(s Settings) (*Context, error) {
	a, err := load()
	if err == nil {
		err = s.checkDevices()
	}
	if err != nil {
		return nil, err
	}
	return open(a, s)
}

func open(a abi, s Settings) (*Context, error) {
	c := &Context{abi: a, settings: s}
	options := s.options(len(RDMAPorts()) > 0)
	if s.sharesMemory() {
		options = append(options, fewReceiveBuffers...)
		// Without the directory UCX reports itself what it cannot do.
		if c.directory, _ = newMemoryDirectory(sharedMemory); c.directory != nil {
			options = append(options, c.directory.options()...)
		}
	}
	var encoded []byte
	for _, o := range options {
		encoded = append(encoded, o.name+"\x00"+o.value+"\x00"...)
	}
	handle, status := a.contextOpen(append(encoded, 0), s.Reads)
	if status != StatusOK {
		return nil, errors.Join(failed(a, "ucp_init", status), c.removeDirectory())
	}
	c.handle = handle
	return c, nil
}

// removeDirectory is called when UCX uses it no more.
func (c *Context) removeDirectory() error {
	if c.directory == nil {
		return nil
	}
	if err := c.directory.Close(); err != nil {
		return fmt.Errorf("removing the directory of shared memory: %w", err)
	}
	return nil
}

// failed returns nil, or an error for a call.
func failed(a abi, op string, status Status) error {
	if status == StatusOK {
		return nil
	}
	return &Error{Op: op, Status: status, Text: a.statusText(status)}
}

// Version returns the release of UCX at run time, such as "1.13.1". Implements: ucp_get_version_string.
func (c *Context) Version() string { return c.abi.version() }

// hasSharedMemory reports whether a transport of this context uses memory that both processes have mapped.
func (c *Context) hasSharedMemory() bool {
	resources, err := c.Resources()
	return err == nil && slices.ContainsFunc(resources, func(r Resource) bool {
		return r.Transport == "posix" || r.Transport == "sysv"
	})
}

// Resource is a transport of UCX on a device.
type Resource struct {
	Transport string // such as "tcp", "rc_mlx5", "posix"
	Device    string // such as "eth0", "mlx5_0:1", "memory"
}

// RDMA reports whether the resource is remote memory access by hardware (or by the kernel's soft-RoCE).
func (r Resource) RDMA() bool {
	return slices.ContainsFunc([]string{"rc", "dc", "ud"}, func(kind string) bool {
		return r.Transport == kind || strings.HasPrefix(r.Transport, kind+"_")
	})
}

// Resources returns the transports and devices that this context may use. Implements: ucp_context_print_info.
func (c *Context) Resources() ([]Resource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handle == nil {
		return nil, ErrClosed
	}
	return parseResources(c.abi.contextDescribe(c.handle)), nil
}

// Close ends the context. Its workers and memory must be closed before. Implements: ucp_cleanup.
func (c *Context) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handle == nil {
		return nil
	}
	c.abi.contextClose(c.handle)
	c.handle = nil
	return c.removeDirectory()
}
