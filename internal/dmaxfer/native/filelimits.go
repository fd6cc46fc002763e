package native

import (
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// The numbers of descriptors that a receiver of a tree needs. Besides those of the files that it receives, up to 66 are
// of the target and the directories above it, whose locks it holds or tries to get.
const (
	otherFiles     = 192
	filesOfATarget = 5 // file and its duplicate, journal, directory, and the userfaultfd(2) of a file on tmpfs
	maxTargets     = 64
)

// senderFiles is how many descriptors the sender of a tree needs: those of 64 directories, and some for files.
const senderFiles = 96

// fileLimits returns how many files may be open at once that come in chunks, and how many may be staged. Each of the
// latter has a descriptor. local says whether the sender is in this process.
func fileLimits(local bool) (targets, staged int64) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil || files.Cur >= 1<<20 {
		return maxTargets, negotiate.MaxOpen
	}
	left := int64(files.Cur) - otherFiles
	if local {
		left -= senderFiles
	}
	targets = min(max(left/2/filesOfATarget, 1), maxTargets)
	return targets, min(max(left-targets*filesOfATarget, 1), negotiate.MaxOpen)
}
