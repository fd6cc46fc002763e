package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
)

// mayHaveAmbient reports whether a thread has ambient capabilities, or whether that is not known. Clearing an empty set
// would give each thread credentials of its own, with which the kernel refuses a thread the use of a software RDMA
// device that another thread has opened.
func mayHaveAmbient() bool {
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(threads) == 0 {
		return true
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if err != nil || !hasNoAmbient(status) {
			return true
		}
	}
	return false
}

// hasNoAmbient reports whether the status of a thread says that its set of ambient capabilities is empty.
func hasNoAmbient(status []byte) bool {
	_, after, found := bytes.Cut(status, []byte("\nCapAmb:\t"))
	set, _, complete := bytes.Cut(after, []byte("\n"))
	return found && complete && len(set) > 0 && len(bytes.Trim(set, "0")) == 0
}
