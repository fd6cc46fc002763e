// Command tunlink is one end of a network link between two network namespaces, for lab/scripts/test-netns.sh: it
// carries the packets of a TUN device to the other end, over a unix socket, and does to them what a bad network does. A
// kernel does the same with netem, which many lack.
//
//	tunlink DEVICE SOCKET listen|dial < settings
//
// Each line of its standard input replaces the settings: "delay=10ms loss=0.01 rate=2500000 reorder=0.05 duplicate=0.01
// corrupt=0.001 down"; any may be missing. rate is in bytes per second, the others are probabilities.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "tunlink:", err)
	}
}

func run(args []string, settings io.Reader) error {
	if len(args) != 3 {
		return errors.New("usage: tunlink DEVICE SOCKET listen|dial")
	}
	device, err := openDevice(args[0])
	if err != nil {
		return err
	}
	other, err := connect(args[1], args[2] == "listen")
	if err != nil {
		return err
	}
	l := &link{device: device, other: other, late: make(chan packet, longestQueue)}
	l.settings.Store(&impairments{})
	ended := make(chan error, 3)
	go func() { ended <- l.take() }()
	go func() { ended <- l.send() }()
	go func() { ended <- l.receive() }()
	fmt.Println("ready")
	go func() { ended <- l.configure(settings) }()
	return <-ended
}

// openDevice opens a TUN device that exists.
func openDevice(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, fmt.Errorf("device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// connect connects both ends. The one that dials is started later.
func connect(path string, listens bool) (net.Conn, error) {
	if !listens {
		return net.Dial("unixpacket", path)
	}
	listener, err := net.Listen("unixpacket", path)
	if err != nil {
		return nil, err
	}
	fmt.Println("listening")
	return listener.Accept()
}

// impairments are what happens to the packets that leave this end.
type impairments struct {
	delay                             time.Duration
	loss, reorder, duplicate, corrupt float64 // probabilities
	rate                              float64 // bytes per second; 0: no limit
	down                              bool    // nothing passes
}

func parse(line string) (*impairments, error) {
	var i impairments
	numbers := map[string]*float64{
		"loss": &i.loss, "reorder": &i.reorder, "duplicate": &i.duplicate, "corrupt": &i.corrupt, "rate": &i.rate,
	}
	for _, word := range strings.Fields(line) {
		name, value, _ := strings.Cut(word, "=")
		number, known := numbers[name]
		var err error
		switch {
		case name == "down":
			i.down = true
		case name == "delay":
			i.delay, err = time.ParseDuration(value)
		case known:
			*number, err = strconv.ParseFloat(value, 64)
		default:
			err = errors.New("unknown setting")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
	}
	return &i, nil
}

// longestQueue is how many packets may wait; further ones are lost.
const longestQueue = 10_000

// packet is one that waits to be sent.
type packet struct {
	bytes []byte
	due   time.Time
}

type link struct {
	device   *os.File
	other    net.Conn
	settings atomic.Pointer[impairments]
	late     chan packet
}

// configure applies each line of settings. The end of it leaves them as they are.
func (l *link) configure(from io.Reader) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		i, err := parse(lines.Text())
		if err != nil {
			return err
		}
		l.settings.Store(i)
	}
	return lines.Err()
}

// take takes the packets that the system sends.
func (l *link) take() error {
	buffer := make([]byte, 64<<10)
	var free time.Time // when the line is free, with a rate
	for {
		n, err := l.device.Read(buffer)
		if err != nil {
			return err
		}
		i := l.settings.Load()
		now := time.Now()
		if i.rate > 0 {
			if free.Before(now) {
				free = now
			}
			free = free.Add(time.Duration(float64(n) / i.rate * float64(time.Second)))
			now = free
		}
		l.queue(i, append([]byte(nil), buffer[:n]...), now)
	}
}

// queue decides what happens to a packet that the line has taken at some time.
func (l *link) queue(i *impairments, bytes []byte, at time.Time) {
	chance := func(p float64) bool { return p > 0 && rand.Float64() < p }
	if i.down || chance(i.loss) {
		return
	}
	if chance(i.corrupt) {
		bytes[rand.IntN(len(bytes))] ^= 1 << rand.IntN(8)
	}
	if chance(i.reorder) {
		_, _ = l.other.Write(bytes) // before those that wait
		return
	}
	for range map[bool]int{false: 1, true: 2}[chance(i.duplicate)] {
		select {
		case l.late <- packet{bytes, at.Add(i.delay)}:
		default: // the queue is full
		}
	}
}

// send sends packets when they are due.
func (l *link) send() error {
	for p := range l.late {
		time.Sleep(time.Until(p.due))
		if l.settings.Load().down {
			continue
		}
		if _, err := l.other.Write(p.bytes); err != nil {
			return err
		}
	}
	return nil
}

// receive gives the system the packets of the other end.
func (l *link) receive() error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.other.Read(buffer)
		if err != nil {
			return err
		}
		if !l.settings.Load().down {
			_, _ = l.device.Write(buffer[:n]) // one that is not a packet any more is lost
		}
	}
}
