package verify

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"path"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// paths is a set of paths, of which it has the hashes with a random seed. In a set of ten million paths another path
// seems to be with a probability below 1e-12.
type paths struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newPaths(number int) *paths {
	return &paths{maphash.MakeSeed(), make(map[uint64]struct{}, number)}
}

func (p *paths) add(name string) { p.hashes[p.hash(name)] = struct{}{} }

func (p *paths) has(name string) bool {
	_, found := p.hashes[p.hash(name)]
	return found
}

// hash leaves out what does not change the meaning of a path, such as "./".
func (p *paths) hash(name string) uint64 { return maphash.String(p.seed, path.Clean(name)) }

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
