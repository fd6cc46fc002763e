package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/share"
)

func rmCommand() command {
	s := new(config.Remove)
	return command{
		name:    "rm",
		summary: "Remove from a share of a daemon",
		takes:   []string{"[PEER]:SHARE/PATH..."},
		about: `Removes files and symlinks from a share of a daemon (dma-copy serve), and with
-r directories with all that is in them. This side's key must have the right to
write, for -r and patterns also to read, and the share must permit that files
are replaced. A symlink is removed itself, and a share never. "*", "?", "[a-z]"
and "**" in PATH match names, and "\" escapes; write them in quotes. On a
terminal, -r asks before it removes more than 10 entries. PEER is a name in the
configuration, and may be left out. A daemon on another machine is
ucx://HOST[:PORT]/SHARE/PATH, or such a name with an address. -r is --recursive
here, and not the representor.
`,
		examples: `host$ dma-copy rm ':inbox/*.tmp'
host$ dma-copy rm -r dpu:inbox/photos
`,
		settings: s,
		complete: inShares,
		run: func(ctx context.Context, streams streams, args []string, log zerolog.Logger) error {
			w := report.NewChanges(streams.stdout, streams.stderr, "removed", s.Output, log)
			err := s.SetPaths(args)
			if err == nil {
				err = changeShares(ctx, streams, &s.Places, "rm", w, log, func(c contact) error {
					r := &removal{contact: c, settings: s, report: w}
					return r.run(ctx, streams)
				})
			}
			return ended(w, log, err)
		},
		refused: refusedChanges("removed", &s.Places),
	}
}

// maxAsked is the number of entries above which rm -r asks.
const maxAsked = 10

// removal is one rm.
type removal struct {
	contact
	settings *config.Remove
	report   *report.Changes

	all   []doomed
	count int // of their entries
	bytes int // of their paths
}

// doomed is one file, or one directory with what is in it.
type doomed struct {
	directory share.Remote // that it is in
	files     bool         // it must not be a directory
	names     []string     // below directory, in the order of their removal
}

// run finds all that is to be removed before it removes anything.
func (r *removal) run(ctx context.Context, streams streams) error {
	for _, argument := range r.settings.Remote {
		if err := r.find(ctx, argument); err != nil {
			return err
		}
	}
	if r.settings.Recursive && r.count > maxAsked && !r.settings.Force && streams.terminal && streams.asks() {
		yes, err := ask(ctx, streams.stdin, streams.stderr, fmt.Sprintf("remove %d entries?", r.count), func() error {
			_, err := r.client.Ping(ctx, nil)
			return err
		})
		if err != nil {
			return err
		}
		if !yes {
			return exit.Errorf(exit.Usage, "", "nothing was removed: the answer was not yes")
		}
	}
	for _, each := range r.all {
		if err := r.remove(ctx, each); err != nil {
			return err
		}
	}
	return r.report.End()
}

// find adds what an argument names. A failure that is about this argument alone is reported.
func (r *removal) find(ctx context.Context, argument share.Remote) error {
	x, err := r.expand(ctx, argument)
	if err != nil {
		return r.failed(argument, err)
	}
	if x.entries == nil {
		return r.findPlace(ctx, x.base)
	}
	for _, e := range x.entries {
		if err := r.findEntry(ctx, x.remote(e), e.Kind == negotiate.EntryDirectory); err != nil {
			return err
		}
	}
	return nil
}

// findPlace adds an entry whose kind matters only for --recursive.
func (r *removal) findPlace(ctx context.Context, at share.Remote) error {
	isDirectory := false
	if r.settings.Recursive {
		_, err := r.client.List(ctx, placeOf(at), negotiate.ListItself, func(e share.Entry) error {
			isDirectory = e.Kind == negotiate.EntryDirectory
			return nil
		})
		if err != nil {
			return r.failed(at, err)
		}
	}
	return r.findEntry(ctx, at, isDirectory)
}

func (r *removal) findEntry(ctx context.Context, at share.Remote, isDirectory bool) error {
	place := placeOf(at)
	above, name := path.Split(place.Path)
	d := doomed{directory: at, files: true, names: []string{name}}
	d.directory.Path = strings.TrimSuffix(above, "/")
	if isDirectory && r.settings.Recursive {
		d.files = false
		end, err := r.client.List(ctx, place, negotiate.ListRecursive, func(e share.Entry) error {
			if e.Path != "" {
				d.names = append(d.names, name+"/"+e.Path)
			}
			return r.add(len(name) + len(e.Path))
		})
		if err := errors.Join(err, incomplete(end)); err != nil {
			return r.failed(at, err)
		}
		slices.Reverse(d.names) // each directory after its content
	} else if err := r.add(len(name)); err != nil {
		return err
	}
	r.all = append(r.all, d)
	return nil
}

// add counts an entry with a path of so many bytes.
func (r *removal) add(bytes int) error {
	r.count++
	if r.bytes += bytes; r.bytes > maxDeletePaths {
		return job.NewError(job.ErrLimit, nil, "remove a part of them first",
			"the paths to remove have more than %d bytes, so nothing is removed", maxDeletePaths)
	}
	return nil
}

// failed reports that something could not be removed, unless it does not exist and --force is given. It returns an
// error after which nothing else can be removed.
func (r *removal) failed(at share.Remote, err error) error {
	if report.Unfinished(err) || errors.Is(err, job.ErrLimit) {
		return err
	}
	if err := withSide(r.side.side, err); report.ExitCode(err) != exit.Source || !r.settings.Force {
		r.report.Changed(at, err)
	}
	return nil
}

func (r *removal) remove(ctx context.Context, d doomed) error {
	call := r.client.Remove
	if d.files {
		call = r.client.RemoveFiles
	}
	err := call(ctx, placeOf(d.directory), d.names, func(name string, result negotiate.Removal) error {
		at := d.directory
		at.Path = path.Join(at.Path, name)
		if result.Code == 0 {
			r.report.Changed(at, nil)
			return nil
		}
		return r.failed(at, &negotiate.Refusal{Code: result.Code, Text: result.Text})
	})
	if refused, is := errors.AsType[*negotiate.Refusal](err); is {
		at := d.directory
		at.Path = path.Join(at.Path, d.names[len(d.names)-1])
		return r.failed(at, refused)
	}
	return err
}
