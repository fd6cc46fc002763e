package ucx

import (
	"strconv"
	"strings"
	"time"
)

// Settings choose devices and limits of a Context. The zero value leaves everything to UCX.
type Settings struct {
	// Reads chooses what workers of the context are for: Get of memory whose key is known, or Send and Receive of
	// messages. UCX serves reads and writes of a worker with Reads in software, too, where the transport cannot:
	// anybody who can connect to its port can then read and write all memory of this process. So Reads is for trusted
	// networks only, and never with the transport "tcp" outside tests.
	Reads bool

	// Transports are names as in UCX_TLS, such as "tcp", "rc", "posix" and "cma"; none: all, or what UCX_TLS says in
	// the environment, which cannot change transports that are given here.
	Transports []string

	// NetDevices are the network devices that may be used, as in UCX_NET_DEVICES, such as "eth0" and "mlx5_0:1"; none:
	// all, or what UCX_NET_DEVICES says in the environment.
	NetDevices []string

	TrafficClass int  // of RDMA packets, 1 to 255: the ToS byte of RoCE v2, not of "tcp"; 0: the device's default
	GIDIndex     *int // of the RDMA port, 0 to 255; nil: UCX chooses

	// AckTimeout is how long an RDMA device waits for an acknowledgement before it sends again, and AckRetries how
	// often it does that before the connection fails: 1 to MaxAckRetries. 0: UCX's defaults. See AckFor.
	AckTimeout time.Duration
	AckRetries int

	DeviceMemory int64 // bytes of RDMA device memory for small messages; 0: UCX's default
}

// MaxAckRetries is the maximum of Settings.AckRetries: with 7, some RDMA devices never give up.
const MaxAckRetries = 6

// minAckTimeout is about the shortest acknowledgement timeout that survives congestion.
const minAckTimeout = 4 * time.Millisecond

// ackSlack is how many times longer than it is told a device waits at most (InfiniBand specification, 9.7.6.1.3).
const ackSlack = 4

// AckFor returns an acknowledgement timeout and a number of retries with which an RDMA device gives up within half of
// the idle timeout, so that its error is known before the idle timeout ends the transfer without a reason.
func AckFor(idleTimeout time.Duration) (timeout time.Duration, retries int) {
	retries = 3
	timeout = idleTimeout / 2 / ackSlack / time.Duration(retries+1)
	return min(max(timeout, minAckTimeout), time.Second), retries
}

// AckLimit returns the longest time after which an RDMA device with these settings gives up.
func AckLimit(timeout time.Duration, retries int) time.Duration {
	return ackSlack * timeout * time.Duration(retries+1)
}

// options returns the settings as names and values of UCX's configuration.
func (s Settings) options(rdma bool) (options []option) {
	add := func(name, value string) { options = append(options, option{name, value}) }
	if len(s.Transports) > 0 {
		add("TLS", strings.Join(s.Transports, ","))
	}
	if len(s.NetDevices) > 0 {
		add("NET_DEVICES", strings.Join(s.NetDevices, ","))
	}
	// The format of addresses that every release of UCX 1 has, and that checkAddress knows.
	add("ADDRESS_VERSION", "v1")
	add("UNIFIED_MODE", "n")
	// The control connection notices a lost peer, stopped ones included. UCX would also send datagrams over RDMA to
	// notice it, and ends the process if the device cannot send them, as soft-RoCE over a link that is down.
	add("KEEPALIVE_INTERVAL", "inf")
	if rdma {
		s.addRDMA(add)
	}
	return options
}

// addRDMA adds the settings that only RDMA transports have: without them UCX would warn of unused ones.
func (s Settings) addRDMA(add func(name, value string)) {
	if s.TrafficClass > 0 {
		add("IB_TRAFFIC_CLASS", strconv.Itoa(s.TrafficClass))
	}
	if s.GIDIndex != nil {
		add("GID_INDEX", strconv.Itoa(*s.GIDIndex))
	}
	if s.AckTimeout > 0 {
		add("RC_TIMEOUT", microseconds(s.AckTimeout))
	}
	if s.AckRetries > 0 {
		add("RC_RETRY_COUNT", strconv.Itoa(min(s.AckRetries, MaxAckRetries)))
	}
	if s.DeviceMemory > 0 {
		add("IB_DM_SIZE", strconv.FormatInt(s.DeviceMemory, 10))
	}
}

func microseconds(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) + "us" }
