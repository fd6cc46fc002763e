package bundle

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// maxFact is how many bytes of one file are kept.
const maxFact = 16 << 10

// facts are the files that say what a copy meets on a machine, as patterns of fs.Glob below the root directory. Each is
// readable by every user, and has no name of a user's file in it.
var facts = []string{
	"etc/os-release", "etc/mlnx-release", "etc/bf-release", "proc/version", "proc/meminfo", "proc/self/limits",
	"proc/self/status", "proc/sys/kernel/yama/ptrace_scope", "proc/sys/net/core/[rw]mem_*",
	"sys/kernel/security/lsm", "sys/kernel/mm/transparent_hugepage/enabled", "sys/class/iommu/*/intel-iommu/version",
	"sys/devices/system/node/node*/cpulist", "sys/module/mlx5_core/version", "sys/module/mlx5_core/parameters/*",
	"sys/class/infiniband/*/fw_ver", "sys/class/infiniband/*/board_id", "sys/class/infiniband/*/hca_type",
	"sys/class/infiniband/*/ports/*/state", "sys/class/infiniband/*/ports/*/rate",
	"sys/class/infiniband/*/ports/*/link_layer", "sys/class/net/*/phys_port_name", "sys/class/net/*/phys_switch_id",
	"opt/mellanox/doca/applications/VERSION",
}

// functionFacts are files of the PCI functions with NVIDIA's vendor number, below sys/bus/pci/devices/ADDRESS.
var functionFacts = []string{
	"device", "subsystem_device", "class", "revision", "numa_node", "enable", "current_link_speed",
	"current_link_width", "max_link_speed", "max_link_width", "sriov_numvfs", "sriov_totalvfs", "infiniband/*", "net/*",
}

const nvidia = "0x15b3"

// Machine returns facts about the kernel, its drivers, NVIDIA's PCI functions and the libraries of DOCA: the content of
// files below root, each under its path. A file that cannot be read is left out.
func Machine(root fs.FS) []byte {
	var text bytes.Buffer
	for _, pattern := range facts {
		writeFacts(&text, root, pattern)
	}
	writeFact(&text, "proc/modules, of NVIDIA and RDMA", matchingLines(root, "proc/modules", aboutDriver))
	writeFact(&text, "proc/cpuinfo, of the first CPU", firstParagraph(root, "proc/cpuinfo"))
	functions, _ := fs.Glob(root, "sys/bus/pci/devices/*") // fails for a bad pattern only
	for _, function := range functions {
		if vendor, _ := fs.ReadFile(root, function+"/vendor"); strings.TrimSpace(string(vendor)) != nvidia {
			continue
		}
		writeFact(&text, function, []byte("function of NVIDIA\n"))
		for _, pattern := range functionFacts {
			writeFacts(&text, root, function+"/"+pattern)
		}
	}
	for _, pattern := range []string{"opt/mellanox/doca/lib/*/libdoca_*", "usr/lib/*/libuc[pst]*"} {
		names, _ := fs.Glob(root, pattern)
		for _, name := range names {
			fmt.Fprintf(&text, "== /%s\n", name)
		}
	}
	return text.Bytes()
}

func writeFacts(text *bytes.Buffer, root fs.FS, pattern string) {
	names, _ := fs.Glob(root, pattern)
	for _, name := range names {
		content, err := fs.ReadFile(root, name)
		if err != nil && path.Base(pattern) != "*" { // a directory of devices is known by its name
			continue
		}
		writeFact(text, name, content)
	}
}

func writeFact(text *bytes.Buffer, name string, content []byte) {
	fmt.Fprintf(text, "== /%s\n%s", name, content[:min(len(content), maxFact)])
	if len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")) {
		text.WriteByte('\n')
	}
}

// aboutDriver matches lines about the drivers that a copy depends on.
var aboutDriver = regexp.MustCompile(`(?i)mlx[45]|mlnx|doca|bluefield|\bib_|rdma|\bvfio|iommu|tmfifo|knem|xpmem`)

func matchingLines(root fs.FS, name string, expression *regexp.Regexp) []byte {
	content, _ := fs.ReadFile(root, name)
	return keepLines(content, expression)
}

func keepLines(content []byte, expression *regexp.Regexp) []byte {
	var kept []byte
	for line := range bytes.Lines(content) {
		if expression.Match(line) {
			kept = append(kept, line...)
		}
	}
	return kept
}

func firstParagraph(root fs.FS, name string) []byte {
	content, _ := fs.ReadFile(root, name)
	first, _, _ := bytes.Cut(content, []byte("\n\n"))
	return first
}

// KernelLog returns the lines of the kernel's log about the drivers that a copy depends on, or why it cannot be read:
// mostly it is root's alone.
func KernelLog() []byte {
	const readAll = 3 // SYSLOG_ACTION_READ_ALL
	log := make([]byte, 1<<20)
	n, err := unix.Klogctl(readAll, log)
	if err != nil {
		return fmt.Appendf(nil, "the kernel's log cannot be read: %v\n", os.NewSyscallError("syslog", err))
	}
	return keepLines(log[:n], aboutDriver)
}
