package bench

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const unknown = "unknown"

// Machine describes the machine that the measurement ran on.
type Machine struct {
	CPU       string `json:"cpu"`
	Arch      string `json:"arch"`
	Cores     int    `json:"cores"`
	Memory    int64  `json:"memory_bytes"`
	Kernel    string `json:"kernel"`
	HugePages string `json:"transparent_huge_pages"` // the selected setting
	ShmemHuge string `json:"shmem_huge_pages"`       // the same for shared memory

	// Load is the load average of the minute before. Other processes disturb the measurement.
	Load float64 `json:"load_average"`
}

func thisMachine() Machine {
	return Machine{
		CPU: fieldOf("/proc/cpuinfo", "model name"), Arch: runtime.GOARCH, Cores: runtime.NumCPU(),
		Memory: memoryField("MemTotal"), Kernel: kernelRelease(),
		HugePages: selected(readText("/sys/kernel/mm/transparent_hugepage/enabled")),
		ShmemHuge: selected(readText("/sys/kernel/mm/transparent_hugepage/shmem_enabled")),
		Load:      loadAverage(readText("/proc/loadavg")),
	}
}

// readText returns the content of a file, or "" if it cannot be read.
func readText(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// fieldOf returns the value of the first line with that key in a file of "key : value" lines.
func fieldOf(path, key string) string {
	for line := range strings.Lines(readText(path)) {
		name, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

// memoryField returns a value of /proc/meminfo in bytes, or 0 if there is none.
func memoryField(key string) int64 {
	number, _, _ := strings.Cut(fieldOf("/proc/meminfo", key), " ")
	kilobytes, _ := strconv.ParseInt(number, 10, 64)
	return kilobytes << 10
}

// AvailableMemory returns how much memory programs can still get, in bytes, or 0 if that is not known.
func AvailableMemory() int64 { return memoryField("MemAvailable") }

// loadAverage returns the first number of /proc/loadavg, or 0 if there is none.
func loadAverage(text string) float64 {
	minute, _, _ := strings.Cut(text, " ")
	load, _ := strconv.ParseFloat(minute, 64)
	return load
}

func kernelRelease() string {
	var names unix.Utsname
	if err := unix.Uname(&names); err != nil {
		return unknown
	}
	return unix.ByteSliceToString(names.Release[:])
}

// selected returns the word in brackets, as in "always [madvise] never".
func selected(setting string) string {
	_, rest, _ := strings.Cut(setting, "[")
	word, _, found := strings.Cut(rest, "]")
	if !found {
		return unknown
	}
	return word
}
