package dmaxfer

import (
	"context"
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// localFiles are source and target of a copy within this process.
type localFiles struct{ source, target *job.LocalFile }

// findLocal looks for both files, and refuses what cannot be copied to the other.
func findLocal(ctx context.Context, o Options, target string) (localFiles, error) {
	search := job.Search{FS: o.FS, IdleTimeout: o.IdleTimeout, Stdin: o.Stdin, Stdout: o.Stdout}
	search.Path, search.Use = o.File, job.SourceUse
	source, err := job.Find(ctx, search)
	if err != nil {
		return localFiles{}, err
	}
	search.Path, search.Use = target, job.TargetUse
	search.Overwrite, search.IgnoreExisting = o.Overwrite, o.IgnoreExisting
	search.MakePath, search.DryRun = o.MakePath, o.DryRun
	f := localFiles{source: source}
	if f.target, err = job.Find(ctx, search); err != nil {
		source.Close()
		return localFiles{}, err
	}
	if err := f.check(ctx, o); err != nil {
		f.close()
		return localFiles{}, err
	}
	return f, nil
}

func (f localFiles) close() {
	f.source.Close()
	f.target.Close()
}

func (f localFiles) pair() job.Pair {
	return job.Pair{Source: f.source.Path, Target: f.target.Path}
}

func (f localFiles) check(ctx context.Context, o Options) error {
	if err := f.checkKinds(); err != nil {
		return err
	}
	if err := f.checkStreams(o.DryRun); err != nil {
		return err
	}
	isDirectory := f.target.Directory && !f.target.Exists && !f.target.Unfinished
	if o.RefuseSame && (f.target.Source != nil || isDirectory) {
		return f.pair().Exists()
	}
	var calls job.Calls
	err := calls.Do(ctx, o.IdleTimeout, nil, func(context.Context) error { return f.checkDistinct() })
	if calls.Hung() {
		return job.Hung(err)
	}
	return err
}

// checkKinds refuses a file for a directory, and the other way round.
func (f localFiles) checkKinds() error {
	source, target := f.source, f.target
	targetIsFile := target.Source != nil || target.Unsized != nil || target.Exists && !target.Directory
	switch {
	case source.Directory && target.Stream && !targetIsFile:
		return f.pair().DirectoryForStream()
	case source.Directory && targetIsFile:
		return f.pair().DirectoryForFile()
	case !source.Directory && target.Directory:
		return f.pair().FileForDirectory()
	case !source.Directory && target.NoFile:
		return job.NewError(job.ErrTarget, nil, "leave out the slash at the end of the path",
			"%s/ does not exist, and %s is not a directory", target.Path, source.Path)
	}
	return nil
}

// checkStreams refuses a stream where a file is needed to compare, or to plan.
func (f localFiles) checkStreams(dryRun bool) error {
	source, target := f.source, f.target
	switch {
	case target.Unsized != nil, source.Stream && target.Source != nil:
		return f.pair().Exists()
	case source.Stream && target.Stream:
		return f.pair().StreamForStream()
	case dryRun && (source.Stream || target.Stream):
		return job.NewError(job.ErrSettings, nil, "leave out --dry-run, or name files or directories",
			"a stream has no plan that --dry-run could print")
	}
	return nil
}

// checkDistinct refuses to copy a file to itself, a directory into itself, and what an interrupted copy has left, which
// another copy may replace while it is read.
func (f localFiles) checkDistinct() error {
	if f.source.Stream || f.target.Stream {
		return nil
	}
	on := f.source.FS
	source, err := on.Stat(f.source.Name)
	if err != nil {
		return disk.CannotStat(f.source.Path, err)
	}
	target, err := on.Stat(f.target.Name)
	if err == nil && target.SameFile(source.Identity) {
		return job.NewError(job.ErrSource, nil, "name another target",
			"%s and %s are the same file or directory", f.source.Path, f.target.Path)
	}
	if _, name := disk.Split(f.source.Path); disk.IsLeftover(name) {
		return job.NewError(job.ErrSource, nil, "repeat that copy, or rename the file",
			"%s is an unfinished file of another copy", f.source.Path)
	}
	if f.source.Directory && f.inSource(source) {
		return job.NewError(job.ErrSource, nil, "name a target outside of it",
			"%s is inside the directory %s", f.target.Path, f.source.Path)
	}
	return nil
}

// inSource reports whether the target is below the source, as far as the directories above it can be examined.
func (f localFiles) inSource(source disk.Info) bool {
	above, _ := disk.Split(strings.TrimRight(f.target.Path, "/"))
	var last disk.Info
	for {
		info, err := f.source.FS.Stat(above)
		switch {
		case err != nil, info.SameFile(last.Identity): // the root is above itself
			return false
		case info.SameFile(source.Identity):
			return true
		}
		last, above = info, above+"/.."
	}
}
