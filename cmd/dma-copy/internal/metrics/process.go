package metrics

import (
	"bytes"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// clockTicks is the number of ticks per second of the times in /proc, on all architectures of Linux that Go supports.
const clockTicks = 100

// writeProcess appends the usual metrics of processes and of Go programs. Their names are those of Prometheus's own
// client library, apart from go_gc_cycles_total and go_gc_pauses_seconds_total, which it does not have. What the system
// does not tell is left out.
func writeProcess(to *strings.Builder) {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) == nil {
		seconds := float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
		writeHead(to, "process_cpu_seconds_total", "User and system CPU time, in seconds.", typeCounter)
		writeSample(to, "process_cpu_seconds_total", "", seconds)
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		writeGauge(to, "process_open_fds", "Open file descriptors.", "", float64(len(open)-1)) // less that of the list
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		writeGauge(to, "process_max_fds", "Limit of open file descriptors.", "", float64(limit.Cur))
	}
	if virtual, resident, ok := memory(); ok {
		writeGauge(to, "process_virtual_memory_bytes", "Virtual memory, in bytes.", "", virtual)
		writeGauge(to, "process_resident_memory_bytes", "Resident memory, in bytes.", "", resident)
	}
	if start, ok := startTime(); ok {
		writeGauge(to, "process_start_time_seconds", "Start of the process, in seconds since 1970.", "", start)
	}
	writeRuntime(to)
}

func writeRuntime(to *strings.Builder) {
	version := labelText([]string{"version"}, []string{runtime.Version()})
	writeGauge(to, "go_info", "1, with the version of Go.", version, 1)
	writeGauge(to, "go_goroutines", "Goroutines.", "", float64(runtime.NumGoroutine()))
	writeGauge(to, "go_threads", "Threads that the runtime has created.", "",
		float64(pprof.Lookup("threadcreate").Count()))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for _, each := range []struct {
		name, help, kind string
		value            uint64
	}{
		{"alloc_bytes", "Allocated and not yet freed, in bytes.", typeGauge, m.Alloc},
		{"alloc_bytes_total", "Allocated until now, in bytes.", typeCounter, m.TotalAlloc},
		{"frees_total", "Freed objects.", typeCounter, m.Frees},
		{"heap_idle_bytes", "Heap in unused spans, in bytes.", typeGauge, m.HeapIdle},
		{"heap_inuse_bytes", "Heap in used spans, in bytes.", typeGauge, m.HeapInuse},
		{"heap_objects", "Allocated objects.", typeGauge, m.HeapObjects},
		{"heap_released_bytes", "Heap returned to the system, in bytes.", typeGauge, m.HeapReleased},
		{"mallocs_total", "Allocated objects until now.", typeCounter, m.Mallocs},
		{"next_gc_bytes", "Size of the heap at which the garbage collector runs next, in bytes.", typeGauge, m.NextGC},
		{"stack_inuse_bytes", "Stacks of goroutines, in bytes.", typeGauge, m.StackInuse},
		{"sys_bytes", "Memory of the Go runtime, in bytes.", typeGauge, m.Sys},
	} {
		writeHead(to, "go_memstats_"+each.name, each.help, each.kind)
		writeSample(to, "go_memstats_"+each.name, "", float64(each.value))
	}
	writeHead(to, "go_gc_cycles_total", "Runs of the garbage collector.", typeCounter)
	writeSample(to, "go_gc_cycles_total", "", float64(m.NumGC))
	writeHead(to, "go_gc_pauses_seconds_total",
		"Time for which the garbage collector stopped all goroutines, in seconds.", typeCounter)
	writeSample(to, "go_gc_pauses_seconds_total", "", float64(m.PauseTotalNs)/1e9)
}

// memory returns the virtual and resident memory of this process in bytes.
func memory() (virtual, resident float64, ok bool) {
	content, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(content))
	if err != nil || len(fields) < 2 {
		return 0, 0, false
	}
	page := float64(os.Getpagesize())
	pages, err := strconv.ParseFloat(fields[0], 64)
	used, errUsed := strconv.ParseFloat(fields[1], 64)
	return pages * page, used * page, err == nil && errUsed == nil
}

// startTime returns the time at which this process started, in seconds since 1970.
func startTime() (float64, bool) {
	own, err := os.ReadFile("/proc/self/stat")
	system, errSystem := os.ReadFile("/proc/stat")
	if err != nil || errSystem != nil {
		return 0, false
	}
	// The fields follow the name of the program in parentheses, which may hold anything; 20th of them is the start.
	fields := strings.Fields(string(own[bytes.LastIndexByte(own, ')')+1:]))
	_, rest, found := strings.Cut(string(system), "\nbtime ")
	boot, _, _ := strings.Cut(rest, "\n")
	if !found || len(fields) < 20 {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(boot, 64)
	ticks, errTicks := strconv.ParseFloat(fields[19], 64)
	return seconds + ticks/clockTicks, err == nil && errTicks == nil
}
