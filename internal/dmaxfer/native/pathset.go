package native

import "hash/maphash"

// pathSet is a set of paths that takes little memory, however long they are and however many there are. It may have
// a path that was not added, but that is as unlikely as a collision of 64-bit hashes, unless there are more than
// maxPaths; then it has all.
type pathSet struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newPathSet() pathSet {
	return pathSet{seed: maphash.MakeSeed(), hashes: make(map[uint64]struct{})}
}

func (s *pathSet) add(path string) {
	if len(s.hashes) <= maxPaths {
		s.hashes[maphash.String(s.seed, path)] = struct{}{}
	}
}

func (s *pathSet) has(path string) bool {
	_, has := s.hashes[maphash.String(s.seed, path)]
	return has || len(s.hashes) > maxPaths
}
