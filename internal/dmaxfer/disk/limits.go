package disk

import "time"

// The sizes, counts and times of this package.
const (
	// journalStep is the number of bytes that are verified between two writes of the journal. A transfer that is killed
	// repeats at most this much.
	journalStep = 16 << 20

	// allocationStep and flushStep are the numbers of bytes that are preallocated and flushed between two checks of the
	// context.
	allocationStep = 256 << 20
	flushStep      = 32 << 20

	// basisStep is the number of bytes that are copied of the file that is replaced between two reports of progress.
	basisStep = 32 << 20

	// writeBehindStep is the number of bytes that the write-behind flushes at once: few, so that a slow disk reports
	// progress, too. At most writeBehindSteps of them are queued, so that a fast peer does not fill this machine's
	// memory with dirty pages.
	writeBehindStep  = 8 << 20
	writeBehindSteps = 16

	// writeStep is the number of bytes written with one call. The page cache allocates blocks as large as the call. In
	// a virtual machine large free blocks are returned to its host, and each page of them costs a fault there when it
	// is used again. With smaller steps the calls and the blocks take more time.
	writeStep = 256 << 10

	// zerosSize is the number of zeros written at once for a hole.
	zerosSize = 1 << 20

	// unsizedStep is the number of bytes read of a file of size 0 to find out whether it is empty.
	unsizedStep = 64 << 10

	// streamStep is the number of bytes of a stream read between two reports of progress, the capacity of a pipe.
	streamStep = 64 << 10

	// streamPause is the time after which the bytes of a slow stream are sent.
	streamPause = 100 * time.Millisecond

	// maxProbed is the number of combinations of attributes that a Prober remembers.
	maxProbed = 4096

	// openAttempts is how often a partial file that is renamed or removed while it is opened is opened again.
	openAttempts = 10

	// maxLocked is the number of directories above one that are locked with it. Each is open as long.
	maxLocked = 64

	// lockAttempts is how often a lock is tried that another process has, and lockRetryDelay the time between two
	// attempts: a second in all, in which a process that was killed frees its memory.
	lockAttempts   = 21
	lockRetryDelay = 50 * time.Millisecond

	// filesOfAPartial is the number of descriptors of a Partial: file and its duplicate, journal, directory, and the
	// userfaultfd(2) of a file on tmpfs. maxPartials is the largest result of DescriptorLimits. otherFiles is the
	// number of descriptors for anything else: up to 66 are of the root of a Tree and the directories above it, whose
	// locks it holds or tries to get. senderFiles is the number for a tree that is read: 64 directories, some files.
	filesOfAPartial = 5
	maxPartials     = 64
	otherFiles      = 192
	senderFiles     = 96

	// maxLinks is the number of symlinks that are followed one after the other, as in the kernel.
	maxLinks = 40

	// maxNameLength is the length of the longest file name in bytes.
	maxNameLength = 255
)
