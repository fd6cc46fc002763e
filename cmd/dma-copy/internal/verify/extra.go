package verify

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"path"
	"slices"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// paths is a set of paths in 8 bytes for each: their hashes, with a random seed. In a set of ten
// million paths another path seems to be with a probability below 1e-12.
type paths struct {
	seed   maphash.Seed
	hashes []uint64
	sorted bool
}

func newPaths(number int) *paths {
	return &paths{seed: maphash.MakeSeed(), hashes: make([]uint64, 0, number)}
}

// add adds a path, without what does not change its meaning, such as "./".
func (p *paths) add(name string) {
	p.hashes = append(p.hashes, maphash.String(p.seed, path.Clean(name)))
	p.sorted = false
}

func (p *paths) has(name string) bool {
	if !p.sorted {
		slices.Sort(p.hashes)
		p.sorted = true
	}
	_, found := slices.BinarySearch(p.hashes, maphash.String(p.seed, path.Clean(name)))
	return found
}

// reportExtra prints and counts the regular files below a directory that a manifest does not list.
func (v verifier) reportExtra(ctx context.Context, manifest, directory string, known *paths, count *tally) error {
	walk, err := openWalk(directory, manifest, nil)
	if err != nil {
		return err
	}
	defer walk.close()
	for {
		name, err := walk.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case known.has(name):
			continue
		}
		count.extra++
		path := disk.Join(directory, name)
		r := result{fileName: nameOf(path), Verdict: unlisted}
		if err := v.printResult(r, "%s: the manifest does not list it", path); err != nil {
			return err
		}
	}
}
