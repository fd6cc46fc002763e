package tree

import "hash/maphash"

// maxPaths is how many paths a PathSet tells apart. They take 16 MiB at most.
const maxPaths = 256 << 10

// PathSet is a set of paths that takes little memory, however long they are and however many there are. It may have
// a path that was not added, but that is as unlikely as a collision of 64-bit hashes, unless there are more than
// maxPaths; then it has all.
type PathSet struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

// NewPathSet returns an empty set.
func NewPathSet() PathSet {
	return PathSet{seed: maphash.MakeSeed(), hashes: make(map[uint64]struct{})}
}

// Add adds a path.
func (s *PathSet) Add(path string) {
	if len(s.hashes) <= maxPaths {
		s.hashes[maphash.String(s.seed, path)] = struct{}{}
	}
}

// Has reports whether a path was added.
func (s *PathSet) Has(path string) bool {
	if s.hashes == nil { // the zero value
		return false
	}
	_, has := s.hashes[maphash.String(s.seed, path)]
	return has || len(s.hashes) > maxPaths
}
