package ucxpath

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/window"
	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// Path makes the windows of one data path of one connection. One goroutine at a time calls its methods, as for a
// window.Memory.
type Path struct {
	path wire.Path
	with Config

	// Replaced by tests:
	ports func() []ucx.Port
	opens func(devices []string) bool
}

// Config is what a Path may use. The functions are called whenever a transfer begins.
type Config struct {
	// UCX: Reads is set by the path, and Transports unless there are some, which only tests need.
	UCX ucx.Settings

	// ReachTime is how long the first read of each lane may take: then the two machines are taken to have no network in
	// common on which memory can be read. 0 is DefaultReachTime.
	ReachTime time.Duration

	// SameUser reports whether the peer is a process of this user on this machine: only then can memory be shared with
	// it. An error means that the connection has ended. nil: it is not.
	SameUser func() (bool, error)

	// HardwareOnly reports whether the threads of this process have different credentials: then software RDMA devices
	// cannot be used, and UCX would end the process. nil: they have the same.
	HardwareOnly func() bool
}

// DefaultReachTime is the ReachTime of a Config without one.
const DefaultReachTime = 5 * time.Second

// New returns PathMessages or PathRMA.
func New(path wire.Path, c Config) *Path {
	if c.SameUser == nil {
		c.SameUser = func() (bool, error) { return false, nil }
	}
	if c.HardwareOnly == nil {
		c.HardwareOnly = func() bool { return false }
	}
	c.ReachTime = cmp.Or(c.ReachTime, DefaultReachTime)
	c.UCX.Reads = path == wire.PathRMA
	return &Path{path: path, with: c, ports: ucx.RDMAPorts, opens: opensHardware}
}

// available returns why this process cannot use UCX, or nil. It is found out once.
var available = sync.OnceValue(func() error {
	c, err := ucx.Open(ucx.Settings{Transports: []string{"self"}})
	if err != nil {
		return err
	}
	return c.Close()
})

// hardwareFound has what opensHardware has found out, by the devices: a func() bool for each list.
var hardwareFound sync.Map

// opensHardware reports whether UCX finds RDMA devices among those that it may use; none stands for all. A container
// may show the devices of its host, and have no files of them. It is found out once, with no other devices than a copy
// has: other devices may be some that this process must not use.
func opensHardware(devices []string) bool {
	find := sync.OnceValue(func() bool {
		c, err := ucx.Open(ucx.Settings{Transports: hardware, NetDevices: devices})
		if err == nil {
			err = c.Close()
		}
		return !errors.Is(err, ucx.StatusNoDevice)
	})
	found, _ := hardwareFound.LoadOrStore(strings.Join(devices, ","), find)
	return found.(func() bool)()
}

// Usable returns a job.ErrCapability if this machine cannot use the path with this peer, and the error of SameUser.
func (p *Path) Usable() error {
	if _, err := p.transports(); err != nil {
		return err
	}
	if err := available(); err != nil {
		return job.NewError(job.ErrCapability, err, "use --path tls", "path %s: %v", p.path, err)
	}
	return nil
}

func (p *Path) noTransport() error {
	if device := p.refusedDevice(); device != "" {
		return job.NewError(job.ErrCapability, nil, "choose others with --net-devices, or use --path tls",
			"path %s: a daemon that the kernel confines cannot use the software RDMA device %s", p.path, device)
	}
	if found := p.devices(); len(found) > 0 {
		return job.NewError(job.ErrCapability, nil, "give the process /dev/infiniband, or use --path tls",
			"path %s: UCX cannot use the RDMA device %s", p.path, found[0].Device)
	}
	return job.NewError(job.ErrCapability, nil, "use --path tls, or check dma-copy devices --driver ucx",
		"path rma needs an active RDMA device, or a peer of the same user on this machine")
}

// devices returns the active RDMA ports that the user permits.
func (p *Path) devices() []ucx.Port {
	permitted := p.with.UCX.NetDevices
	return slices.DeleteFunc(p.ports(), func(port ucx.Port) bool {
		return !port.Active || len(permitted) > 0 && !slices.Contains(permitted, port.Name()) &&
			!slices.Contains(permitted, port.Device)
	})
}

// refusedDevice returns the first software device that UCX would use and this process cannot; "" if there is none.
func (p *Path) refusedDevice() string {
	for _, port := range p.devices() {
		if port.Software && len(p.with.UCX.Transports) == 0 && p.with.HardwareOnly() {
			return port.Device
		}
	}
	return ""
}

// hasRDMA reports whether there are RDMA ports, and this process can use them.
func (p *Path) hasRDMA() bool {
	return len(p.devices()) > 0 && p.refusedDevice() == "" && p.opens(p.with.UCX.NetDevices)
}

// The transports of UCX that a path may use. Transports within a machine let the peer name the process whose memory is
// read or mapped, so they are for a peer that may do that anyway. tcp is not for reads, which UCX then serves in
// software.
var (
	hardware = []string{"rc", "dc"}
	messages = []string{"tcp"}
	machine  = []string{"posix", "sysv", "cma"}
)

// transports returns the transports of the path, or why this machine cannot use the path with this peer.
func (p *Path) transports() ([]string, error) {
	switch found := p.hasRDMA(); {
	case len(p.with.UCX.Transports) > 0:
		return p.with.UCX.Transports, nil
	case p.path == wire.PathMessages && found:
		return slices.Concat(hardware, messages), nil
	case p.path == wire.PathMessages:
		return messages, nil
	case found:
		return hardware, nil
	}
	same, err := p.with.SameUser()
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, p.noTransport()
	}
	return machine, nil
}

// The sizes of a window, unless the user chooses them. With RDMA a slot and a buffer stay in a core's cache, and there
// are enough operations in flight for a network of 400 Gbit/s. Otherwise the CPUs of both sides copy, which takes less
// time the fewer messages there are between the copies: in shared memory, where nothing is in flight, fewer slots
// suffice, whose pages have to be accessed for the first time; over TCP the sizes are the same as on the path tcp.
var (
	sizes       = window.Sizes{Smallest: 64 << 10, Largest: 512 << 10, Chunks: 256, Depth: 16}
	sharedSizes = window.Sizes{Smallest: 64 << 10, Largest: 1 << 20, Chunks: 128, Depth: 4}
	tcpSizes    = window.Sizes{Smallest: 512 << 10, Largest: 2 << 20, Chunks: 32, Depth: 4}
)

// Traits implements window.Memory for one path. A device that reads by itself is another processor than this one.
func (p *Path) Traits() window.Traits {
	t := window.Traits{Lanes: wire.MaxLanes, Sizes: sizes}
	switch {
	case p.hasRDMA():
		t.Offloaded = p.path == wire.PathRMA
	case p.path == wire.PathRMA:
		t.Sizes = sharedSizes
	default:
		t.Sizes = tcpSizes
	}
	return t
}

// endpointMemory is about what UCX has of an endpoint over TCP, in bytes.
const endpointMemory = 128 << 10

// Overhead is as in window.Buffering: the buffers of this side's workers, and the endpoints of a sender of messages,
// whose number the receiver chooses.
func (p *Path) Overhead(l window.Layout, peer native.Window) int64 {
	lanes := int64(l.Lanes)
	if p.path == wire.PathRMA && l.Sends {
		lanes = 1
	}
	bytes := lanes * p.workerMemory()
	workers, err := native.DecodeWorkers(peer.Descriptor, p.path, uint32(l.Depth))
	if err != nil {
		return bytes // Open fails, or it is the window of this side
	}
	return bytes + endpointMemory*int64(min(l.Depth, l.Lanes*len(workers.Addresses)))
}

func (p *Path) workerMemory() int64 {
	if p.hasRDMA() {
		return ucx.WorkerMemoryRDMA
	}
	return ucx.WorkerMemory
}

// Expose makes the window: a receiver's slots for messages, or a sender's memory to be read.
func (p *Path) Expose(_ context.Context, l window.Layout) (*window.Window, error) {
	if p.path == wire.PathMessages {
		return p.build(l, exposeSlots)
	}
	return p.build(l, exposeMemory)
}

// Open opens the peer's window: to send to a receiver's slots, or to read a sender's memory.
func (p *Path) Open(ctx context.Context, l window.Layout, of native.Window) (*window.Window, error) {
	workers, err := native.DecodeWorkers(of.Descriptor, p.path, uint32(l.Depth))
	if err != nil {
		return nil, err
	}
	if p.path == wire.PathMessages {
		return p.build(l, func(b *builder) error { return b.openSlots(workers) })
	}
	return p.build(l, func(b *builder) error { return b.openMemory(ctx, workers, of.Address) })
}

// builder makes one window.
type builder struct {
	*resources
	layout    window.Layout
	window    *window.Window
	reachTime time.Duration
}

// build returns a window that owns everything that was opened for it.
func (p *Path) build(l window.Layout, fill func(*builder) error) (*window.Window, error) {
	opened, err := p.openContext()
	if err != nil {
		return nil, err
	}
	b := &builder{
		resources: newResources(opened), layout: l, window: &window.Window{}, reachTime: p.with.ReachTime,
	}
	b.window.AddCloser(b.resources)
	if err := fill(b); err != nil {
		return nil, errors.Join(p.explain(err), b.window.Close())
	}
	return b.window, nil
}

// explain returns the error for a window for which there is no memory: UCX takes it from /dev/shm, if no device has it.
func (p *Path) explain(err error) error {
	if !errors.Is(err, ucx.StatusNoMemory) && !errors.Is(err, ucx.StatusNoResource) {
		return err
	}
	return job.NewError(job.ErrCapability, err,
		"enlarge /dev/shm or remove files there, give less with --depth or --chunk, or use --path tls",
		"path %s: no shared memory for the window (%v)", p.path, err)
}

func (p *Path) openContext() (*ucx.Context, error) {
	transports, err := p.transports()
	if err != nil {
		return nil, err
	}
	settings := p.with.UCX
	settings.Transports = transports
	opened, err := ucx.Open(settings)
	switch {
	case !errors.Is(err, ucx.StatusNoDevice):
	case len(settings.NetDevices) == 0:
		return nil, job.NewError(job.ErrCapability, err, "use --path tls, or check dma-copy devices --driver ucx",
			"path %s: UCX has none of the transports %s", p.path, strings.Join(settings.Transports, ", "))
	default:
		return nil, job.NewError(job.ErrCapability, err, "give devices that dma-copy devices --driver ucx lists",
			"path %s: UCX has none of the transports %s on %s", p.path, strings.Join(settings.Transports, ", "),
			quote.Printable(strings.Join(settings.NetDevices, ", ")))
	}
	return opened, err
}

// resources are what one window has of UCX.
type resources struct {
	context *ucx.Context
	workers []*ucx.Worker
	memory  []*ucx.Memory

	serving sync.WaitGroup // goroutines that progress workers
	stop    context.CancelFunc
	serve   context.Context
}

func newResources(c *ucx.Context) *resources {
	r := &resources{context: c}
	r.serve, r.stop = context.WithCancel(context.Background())
	return r
}

// partingTime is how long the operations of a window may take to end by themselves when it is closed, before they are
// forced to. It is within the second that a side may take beyond its idle timeout.
const partingTime = 300 * time.Millisecond

// Close implements io.Closer. A resource that cannot be closed keeps what it uses; Close can be called again.
func (r *resources) Close() error {
	r.stop()
	r.serving.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), partingTime)
	defer cancel()
	for _, w := range r.workers {
		if err := w.Close(ctx); err != nil {
			return err
		}
	}
	for _, m := range r.memory {
		if err := m.Close(); err != nil {
			return err
		}
	}
	return r.context.Close()
}

// alloc returns registered memory.
func (r *resources) alloc(length int64, access ucx.Access) (*ucx.Memory, error) {
	m, err := r.context.Alloc(length, access)
	if err != nil {
		return nil, fmt.Errorf("registering buffers: %w", err)
	}
	r.memory = append(r.memory, m)
	return m, nil
}

// worker returns a worker for so many operations in flight.
func (r *resources) worker(depth int) (*ucx.Worker, error) {
	w, err := r.context.NewWorker(depth)
	if err != nil {
		return nil, fmt.Errorf("opening a UCX worker: %w", err)
	}
	r.workers = append(r.workers, w)
	return w, nil
}

// progress progresses a worker of a side that serves its peer, until the window is closed. take is called with each
// event, and ended with the error that ends it before.
func (r *resources) progress(w *ucx.Worker, take func(ucx.Event), ended func(error)) {
	r.serving.Go(func() {
		if err := r.reap(w, take); err != nil && r.serve.Err() == nil {
			ended(err)
		}
	})
}

func (r *resources) reap(w *ucx.Worker, take func(ucx.Event)) (err error) {
	defer job.Recover(&err)
	var events [16]ucx.Event
	for r.serve.Err() == nil && err == nil {
		n := 0
		n, err = w.Reap(r.serve, events[:])
		for _, e := range events[:n] {
			take(e)
		}
	}
	return err
}

// lost returns the error for an endpoint or operation that has failed: the peer is gone, or the network.
func lost(err error) error { return fmt.Errorf("%w: %w", comch.ErrPeerLost, err) }
