package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/share"
)

func rmCommand() command {
	s := new(config.Remove)
	return command{
		name:    "rm",
		summary: "Remove from a share of a daemon",
		takes:   []string{"[PEER]:SHARE/PATH..."},
		about: `Removes files, symlinks, FIFOs, sockets and devices from a share of a daemon
(dma-copy serve), and with -r directories with all that is in them. This side's
key must have the right to write, for -r and patterns also to read, and the
share must permit that files are replaced. A symlink is removed itself, a share
never, and -r leaves mount points with all that is in them. "*", "?", "[a-z]"
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
			w := output.NewChanges(streams.stdout, streams.stderr, "removed", s.Output, log)
			err := s.SetPaths(args)
			if err == nil {
				err = output.InRequest("rm", runRemove(ctx, streams, s, w, log))
			}
			return ended(w, log, err)
		},
		refused: refusedChanges("removed", &s.Places),
	}
}

func runRemove(
	ctx context.Context, streams streams, s *config.Remove, w *output.Changes, log zerolog.Logger,
) (err error) {
	ctx, cancel := limitTime(ctx, s.Timeout)
	defer cancel()
	ctx, c, err := connectShares(ctx, streams, &s.Places, w, log)
	if err != nil {
		return err
	}
	defer c.end(&err)
	r := &removal{contact: c, settings: s, report: w}
	return r.run(ctx, streams)
}

// maxAsked is the number of entries above which rm -r asks.
const maxAsked = 10

// removal is one rm.
type removal struct {
	*contact
	settings *config.Remove
	report   *output.Changes

	all   []doomed
	count int // of their entries
	bytes int // of their paths
}

// doomed is one file, or one directory with what is in it.
type doomed struct {
	directory share.Remote // that it is in
	files     bool         // it must not be a directory
	names     []string     // below directory, in the order of their removal; none if all has to stay
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
	x, err := r.expand(ctx, argument, service.ListAll)
	if err != nil {
		return r.failed(argument, err)
	}
	if x.entries == nil {
		return r.findPlace(ctx, x.base)
	}
	last := "" // path of the last entry: with -r, what is below it goes with it
	for _, e := range x.entries {
		if r.settings.Recursive {
			e = x.outermost(e)
			if last != "" && (e.Path == last || strings.HasPrefix(e.Path, last+"/")) {
				continue
			}
		}
		last = e.Path
		if err := r.findEntry(ctx, x.remote(e), e); err != nil {
			return err
		}
	}
	return nil
}

// findPlace adds an entry whose kind matters only for --recursive.
func (r *removal) findPlace(ctx context.Context, at share.Remote) error {
	var found share.Entry
	if r.settings.Recursive {
		_, err := r.client.List(ctx, placeOf(at), service.ListItself|service.ListAll, func(e share.Entry) error {
			found = e
			return nil
		})
		if err != nil {
			return r.failed(at, err)
		}
	}
	return r.findEntry(ctx, at, found)
}

func (r *removal) findEntry(ctx context.Context, at share.Remote, e share.Entry) error {
	place := placeOf(at)
	above, name := path.Split(place.Path)
	d := doomed{directory: at, files: true, names: []string{name}}
	d.directory.Path = strings.TrimSuffix(above, "/")
	switch {
	case e.Mounted && r.settings.Recursive:
		return r.failed(at, isMounted(at))
	case e.Kind == wire.EntryDirectory && r.settings.Recursive:
		below, mounted, err := r.findBelow(ctx, place)
		if err != nil {
			return r.failed(at, err)
		}
		for _, each := range mounted {
			in := at
			in.Path = path.Join(place.Path, each)
			if err := r.failed(in, isMounted(in)); err != nil {
				return err
			}
		}
		d.files, d.names = false, nil
		for _, each := range below {
			d.names = append(d.names, path.Join(name, each))
		}
	default:
		if err := r.add(len(name)); err != nil {
			return err
		}
	}
	r.all, r.count = append(r.all, d), r.count+len(d.names)
	return nil
}

// findBelow returns the paths of a directory and of what is below it, each directory after its content, and of the
// mount points among it. What is in a mount point stays, and so do the directories above one.
func (r *removal) findBelow(ctx context.Context, at service.Place) (paths, mounted []string, err error) {
	stay := make(map[string]bool)
	end, err := r.client.List(ctx, at, service.ListRecursive|service.ListAll, func(e share.Entry) error {
		last := len(mounted) - 1
		switch {
		case last >= 0 && strings.HasPrefix(e.Path, mounted[last]+"/"):
			return nil
		case e.Mounted:
			mounted = append(mounted, e.Path)
			for above := path.Dir(e.Path); !stay[above]; above = path.Dir(above) {
				stay[above] = true
			}
		default:
			paths = append(paths, path.Clean(e.Path))
		}
		return r.add(len(at.Path) + len(e.Path))
	})
	paths = slices.DeleteFunc(paths, func(each string) bool { return stay[each] })
	slices.Reverse(paths)
	return paths, mounted, errors.Join(err, incomplete(end))
}

// isMounted returns the error for a mount point below a directory that is to be removed, or such a directory.
func isMounted(at share.Remote) error {
	return job.NewError(job.ErrTarget, nil, "unmount it first",
		"cannot remove %s: it is a mount point, so nothing in it was removed", placeOf(at).Path)
}

// add bounds the memory of the paths to remove, of which one more has so many bytes.
func (r *removal) add(bytes int) error {
	if r.bytes += bytes; r.bytes > maxDeletePaths {
		return job.NewError(job.ErrLimit, nil, "remove a part of them first",
			"the paths to remove have more than %d bytes, so nothing is removed", maxDeletePaths)
	}
	return nil
}

// failed reports that something could not be removed, unless it does not exist and --force is given. It returns an
// error after which nothing else can be removed.
func (r *removal) failed(at share.Remote, err error) error {
	if output.Unfinished(err) || errors.Is(err, job.ErrLimit) {
		return err
	}
	if err := withSide(r.side.side, err); output.ExitCode(err) != exit.Source || !r.settings.Force {
		r.report.Changed(at, err)
	}
	return nil
}

func (r *removal) remove(ctx context.Context, d doomed) error {
	request := service.RemoveRequest{Place: placeOf(d.directory), Files: d.files, Paths: d.names}
	err := r.client.Remove(ctx, request, func(name string, result service.Removal) error {
		at := d.directory
		at.Path = path.Join(at.Path, name)
		if result.Code == 0 {
			r.report.Changed(at, nil)
			return nil
		}
		return r.failed(at, &service.Refusal{Code: result.Code, Text: result.Text})
	})
	if refused, is := errors.AsType[*service.Refusal](err); is {
		at := d.directory
		at.Path = path.Join(at.Path, d.names[len(d.names)-1])
		return r.failed(at, refused)
	}
	return err
}
