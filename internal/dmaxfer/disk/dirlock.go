package disk

import (
	"errors"
	"io"
	"time"
)

// LockMode says what a transfer does in a directory. No transfer deletes where another one stores something: modes
// exclude each other if one of the transfers deletes and the other one is about the same entries.
type LockMode int

// The modes, in an order in which those that exclude another one follow each other.
const (
	NoLock          LockMode = iota
	LockStore                // it stores an entry in the directory, or something in a directory below it
	LockFill                 // it may store anything in the directory and below it
	LockDelete               // it fills the directory, and may delete everything else in it and below it
	LockDeleteBelow          // it does that in a directory below it
)

// ExcludedBy returns the first and the last of the modes that exclude this one, as it excludes them.
func (m LockMode) ExcludedBy() (first, last LockMode) {
	switch m {
	case LockStore:
		return LockDelete, LockDelete
	case LockFill:
		return LockDelete, LockDeleteBelow
	case LockDeleteBelow:
		return LockFill, LockDelete
	default:
		return LockStore, LockDeleteBelow
	}
}

// lockDir is Dir.Lock for a target at path.
func lockDir(dir Dir, own, above LockMode, path string) (locks io.Closer, err error) {
	err = soon(func() (err error) {
		locks, err = dir.Lock(own, above)
		return err
	})
	switch {
	case err == nil:
		return locks, nil
	case errors.Is(err, ErrLocked):
		return nil, excluded(max(own, above), path)
	default:
		return nil, CannotCreate(path, err)
	}
}

// excluded returns the error for a target whose lock another transfer excludes.
func excluded(mode LockMode, path string) error {
	other, where := "another process runs sync --delete into", "a directory above it"
	if mode >= LockDelete {
		other = "another process copies into"
	}
	if mode == LockFill || mode == LockDelete {
		where = "it or a directory below it"
	}
	return NewError(ErrBusy, nil, "wait until it has ended",
		"cannot receive %s: %s %s", path, other, where)
}

// soon makes a call that takes a lock again if another process has it, which may be for a moment: one that looks
// whether it can have it, or one that has been killed and still frees its memory.
func soon(lock func() error) error {
	err := lock()
	for tried := 1; errors.Is(err, ErrLocked) && tried < lockAttempts; tried++ {
		time.Sleep(lockRetryDelay)
		err = lock()
	}
	return err
}
