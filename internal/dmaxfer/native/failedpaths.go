package native

import "hash/maphash"

// failedPaths is a set of paths that takes little memory, however long they are and however many there are. It may have
// a path that was not added, but that is as unlikely as a collision of 64-bit hashes, unless there are more than
// maxFailedPaths; then it has all.
type failedPaths struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newFailedPaths() failedPaths {
	return failedPaths{seed: maphash.MakeSeed(), hashes: make(map[uint64]struct{})}
}

func (f *failedPaths) add(path string) {
	if len(f.hashes) <= maxFailedPaths {
		f.hashes[maphash.String(f.seed, path)] = struct{}{}
	}
}

func (f *failedPaths) has(path string) bool {
	_, has := f.hashes[maphash.String(f.seed, path)]
	return has || len(f.hashes) > maxFailedPaths
}
