package placement

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const tasks = "/proc/self/task" // a folder for each thread of this process

// ThisMachine returns this machine, with the CPUs that the process may use now: the thread's mask reflects containers,
// cpusets and taskset.
func ThisMachine() (Machine, error) {
	m := Machine{Sys: os.DirFS("/sys")}
	if err := unix.SchedGetaffinity(os.Getpid(), &m.Usable.CPUSet); err != nil {
		return Machine{}, fmt.Errorf("ask which CPUs this process may use: %w", err)
	}
	return m, nil
}

// runOn moves every thread of the process to the CPUs, and with them those that they will start. Existing memory stays
// where it is. After an error, some threads may have moved. Not safe for concurrent use.
func runOn(cpus Set) error {
	moved := map[int]bool{}
	for {
		fresh, err := moveThreads(&cpus.CPUSet, moved)
		if err != nil || fresh == 0 {
			return err
		}
	}
}

// moveThreads moves the threads that have not been moved yet and returns their number. Meanwhile, a thread that has
// not been moved may start another one.
func moveThreads(cpus *unix.CPUSet, moved map[int]bool) (fresh int, err error) {
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return 0, fmt.Errorf("list the threads of this process: %w", err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil || moved[id] {
			continue
		}
		// It may have ended.
		if err := unix.SchedSetaffinity(id, cpus); err != nil && !errors.Is(err, unix.ESRCH) {
			return fresh, fmt.Errorf("move a thread of this process to other CPUs: %w", err)
		}
		moved[id], fresh = true, fresh+1
	}
	return fresh, nil
}
