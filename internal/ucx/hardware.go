package ucx

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// rdmaDirectory is where the kernel lists RDMA devices.
const rdmaDirectory = "/sys/class/infiniband"

// Port is a port of an RDMA device of this machine.
type Port struct {
	Device    string // such as "mlx5_0"
	Number    int    // from 1
	Active    bool
	State     string      // as the kernel says, such as "ACTIVE"
	LinkLayer string      // "Ethernet" or "InfiniBand"
	NetDevice string      // of Ethernet, such as "eth0"; "" if there is none
	GIDs      map[int]GID // by index; without the empty ones

	// Software: the device is one of the kernel's own, such as soft-RoCE. Programs use it by system calls, which the
	// kernel refuses to a thread with other credentials than those that the device was opened with.
	Software bool
}

// GID is an entry of a port's GID table.
type GID struct {
	Address string // such as "fe80:0000:0000:0000:5054:00ff:fe12:3456"
	Type    string // such as "RoCE v2"
}

// Name returns the port as UCX names it, such as "mlx5_0:1".
func (p Port) Name() string { return p.Device + ":" + strconv.Itoa(p.Number) }

// RDMAPorts returns the ports of the RDMA devices that the kernel knows, whether or not UCX can use them.
func RDMAPorts() []Port { return rdmaPorts(rdmaDirectory) }

func rdmaPorts(directory string) (ports []Port) {
	found, _ := filepath.Glob(filepath.Join(directory, "*", "ports", "*"))
	for _, path := range found {
		number, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		ports = append(ports, readPort(path, number))
	}
	return ports
}

func readPort(path string, number int) Port {
	_, state, _ := strings.Cut(readLine(filepath.Join(path, "state")), ": ")
	device := filepath.Dir(filepath.Dir(path))
	_, err := os.Stat(filepath.Join(device, "device")) // on a bus
	return Port{
		Device: filepath.Base(device), Number: number, Software: errors.Is(err, fs.ErrNotExist),
		Active: state == "ACTIVE", State: state, LinkLayer: readLine(filepath.Join(path, "link_layer")),
		NetDevice: readLine(filepath.Join(path, "gid_attrs", "ndevs", "0")), GIDs: readGIDs(path),
	}
}

// readGIDs leaves out empty entries: a port has up to 256.
func readGIDs(path string) map[int]GID {
	gids := map[int]GID{}
	entries, _ := os.ReadDir(filepath.Join(path, "gids"))
	for _, entry := range entries {
		index, err := strconv.Atoi(entry.Name())
		address := readLine(filepath.Join(path, "gids", entry.Name()))
		if err != nil || strings.Trim(address, "0:") == "" {
			continue
		}
		gids[index] = GID{Address: address, Type: readLine(filepath.Join(path, "gid_attrs", "types", entry.Name()))}
	}
	return gids
}

// readLine returns the content of a small file without white space around it; "" if it cannot be read.
func readLine(path string) string {
	content, _ := os.ReadFile(path)
	return strings.TrimSpace(string(content))
}
