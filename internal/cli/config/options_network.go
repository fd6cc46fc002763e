package config

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/ucx"
)

// Network holds the settings of connections with other machines. What is 0 of acknowledgements follows from the idle
// timeout.
type Network struct {
	Encrypt      bool // file data must be encrypted
	ucx.Settings      // TrafficClass, 0 to 255, also applies to TCP; Reads and Transports are not set
}

// Limits of the options.
const (
	maxNetDevices = 16
	maxAckRetries = 6 // 7, the most that a device has, means to try for ever
	maxAckTimeout = 10 * time.Minute
	maxGIDIndex   = 255

	maxTrafficClass = 255
)

// dataOptions are about the data connections of copies between machines.
func (n *Network) dataOptions() []option.Option {
	return []option.Option{
		option.Switch(option.NativeFlags, "encrypt", &n.Encrypt,
			"ucx: fail rather than copy without encryption; permits --path tls only"),
		option.Text(option.AddedFlags, "net-devices", "LIST", &n.NetDevices, parseNetDevices,
			"ucx: network devices that UCX may use, such as mlx5_0:1,eth0; see devices --driver ucx"),
		option.Duration(option.AddedFlags, "ack-timeout", &n.AckTimeout, "0", parseAckTimeout,
			"ucx: time after which an RDMA device sends a packet again that is not acknowledged; 0 is derived from "+
				"--idle-timeout"),
		option.Count(option.AddedFlags, "ack-retries", &n.AckRetries, "0", 0, maxAckRetries,
			"ucx: how often, 1 to 6; 0 is derived from --idle-timeout"),
		{Group: option.AddedFlags, Name: "gid-index", Value: "auto|INDEX", Default: gidAuto, JSON: option.JSONNumber,
			Assign: option.Into(&n.GIDIndex, parseGIDIndex), Words: []string{gidAuto},
			Help: "ucx: entry of the RDMA device's GID table, for RoCE version and address"},
		option.Size(option.AddedFlags, "device-memory", &n.DeviceMemory, "0",
			"ucx: bytes of the RDMA device's own memory for each buffer of short messages; 0: UCX's choice"),
	}
}

// trafficClassOption is for every command that connects to another machine.
func (n *Network) trafficClassOption() option.Option {
	return option.Count(option.AddedFlags, "traffic-class", &n.TrafficClass, "0", 0, maxTrafficClass,
		"ucx: ToS byte of TCP and RDMA packets, which is 4 times the DSCP; 0 to 255. UCX over TCP does not set it "+
			"(--path am)")
}

// Table are those of a copy.
func (n *Network) Table() []option.Option { return append(n.dataOptions(), n.trafficClassOption()) }

// networkPaths are the choices of --path between machines, devicePaths those of a device.
var (
	devicePaths  = []PathChoice{PathDMA, PathFast}
	networkPaths = []PathChoice{PathTLS, PathTCP, PathMessages, PathRMA}
)

// isNetwork reports whether the path is one between machines.
func (p PathChoice) isNetwork() bool { return slices.Contains(networkPaths, p) }

// parsePathList parses the paths that a daemon permits. Nil is auto.
func parsePathList(text string) ([]PathChoice, error) {
	if text == string(PathAuto) {
		return nil, nil
	}
	return option.ParseList(option.ParseOneOf(everyPath()...))(text)
}

// everyPath returns all paths but auto.
func everyPath() []PathChoice { return slices.Concat(devicePaths, networkPaths) }

func withAuto(paths []PathChoice) []PathChoice { return append([]PathChoice{PathAuto}, paths...) }

// netDevicePattern is that of UCX: an RDMA device with a port, or a network interface.
var netDevicePattern = option.Pattern(`[A-Za-z0-9_.-]{1,64}(?::[0-9]{1,3})?`)

func parseNetDevices(text string) ([]string, error) {
	names, err := option.ParseList(parseNetDevice)(text)
	if len(names) > maxNetDevices {
		return nil, fmt.Errorf("more than %d devices; give those that a copy may use", maxNetDevices)
	}
	return names, err
}

func parseNetDevice(text string) (string, error) {
	if !netDevicePattern().MatchString(text) {
		return "",
			errors.New("not a network device; give names such as mlx5_0:1,eth0 (see dma-copy devices --driver ucx)")
	}
	return text, nil
}

func parseAckTimeout(text string) (time.Duration, error) {
	timeout, err := option.ParseDuration(text)
	if err == nil && (timeout < 0 || timeout > maxAckTimeout) {
		return 0, fmt.Errorf("out of range; give at most %s, such as 100ms, or 0 to derive it", maxAckTimeout)
	}
	return timeout, err
}

// gidAuto leaves the choice of the GID to UCX.
const gidAuto = "auto"

func parseGIDIndex(text string) (*int, error) {
	if text == gidAuto {
		return nil, nil
	}
	index, err := option.ParseCount(0, maxGIDIndex)(text)
	return &index, err
}
