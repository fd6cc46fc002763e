package disk

import "golang.org/x/sys/unix"

// DescriptorLimits returns how many files of a Tree may be open at once as a Partial, and how many, at most mostStaged,
// as a Staged, so that the limit on open files of this process suffices: at least one of each. sends says whether the
// process reads another tree at the same time.
func DescriptorLimits(mostStaged int64, sends bool) (partials, staged int64) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil || files.Cur >= 1<<20 {
		return maxPartials, mostStaged
	}
	left := int64(files.Cur) - otherFiles
	if sends {
		left -= senderFiles
	}
	partials = min(max(left/2/filesOfAPartial, 1), maxPartials)
	return partials, min(max(left-partials*filesOfAPartial, 1), mostStaged)
}
