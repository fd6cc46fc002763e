package copying

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// maxListSize bounds what is read of a file of patterns or paths, in bytes: it is kept in memory.
const maxListSize = 256 << 20

// Select sets which entries of a tree are sent, and returns the rules of the filter. It reads the files of
// patterns and paths, which may be pipes, until the end of ctx.
func Select(
	ctx context.Context, s Settings, stdin io.Reader, o *dmaxfer.Options,
) ([]tree.Rule, error) {
	var rules []tree.Rule
	var filter *tree.Filter
	var paths []string
	err := fileio.Interruptible(ctx, func() (err error) {
		if rules, err = rulesOf(s.Filters, s.IdleTimeout); err != nil {
			return err
		}
		if len(s.Filters) > 0 {
			if filter, err = tree.NewFilter(rules); err != nil {
				return err
			}
		}
		paths, err = pathsOf(s, stdin)
		return err
	})
	if err != nil {
		return nil, err // the job may still be at work
	}
	o.Filter, o.FilesFrom = filter, paths
	now := time.Now()
	o.Scope.Newer, o.Scope.Older = s.Newer.From(now), s.Older.From(now)
	return rules, nil
}

// rulesOf returns the rules in their order, with the rules of the files among them.
func rulesOf(given []FilterRule, grace time.Duration) ([]tree.Rule, error) {
	var rules []tree.Rule
	for _, rule := range given {
		if rule.Kind != FilterExcludeFrom {
			rules = append(rules, tree.Rule{Include: rule.Kind == FilterInclude, Pattern: rule.Text})
			continue
		}
		more, err := ReadList("--exclude-from", rule.Text, nil, grace, tree.ParsePatterns)
		if err != nil {
			return nil, err
		}
		rules = append(rules, more...)
	}
	return rules, nil
}

// pathsOf returns the paths of --files-from, nil without that flag.
func pathsOf(s Settings, stdin io.Reader) ([]string, error) {
	if s.FilesFrom == "" {
		return nil, nil
	}
	separator := byte('\n')
	if s.Null {
		separator = 0
	}
	parse := func(from io.Reader) ([]string, error) { return tree.ParsePaths(from, separator) }
	paths, err := ReadList("--files-from", s.FilesFrom, stdin, s.IdleTimeout, parse)
	if err == nil && len(paths) == 0 {
		err = exit.Usagef("--files-from %s: the list names no entry; leave --files-from out to send all",
			quote.Text(s.FilesFrom))
	}
	return paths, err
}

// ReadList parses the file that a flag names, or stdin if that is not nil and the name stands for it. Grace is how
// long the writer of a FIFO may take to begin.
func ReadList[T any](
	flag, path string, stdin io.Reader, grace time.Duration, parse func(io.Reader) ([]T, error),
) ([]T, error) {
	from := stdin
	if stdin == nil || path != option.Stream {
		file, err := fileio.OpenList(path, grace)
		if errors.Is(err, fileio.ErrNoWriter) {
			return nil, exit.Usagef("%s %s: %w for %s: write the list to it, or name a file", flag, quote.Text(path),
				err, grace)
		}
		if err != nil {
			return nil, exit.Usagef("%s %s: %s; check the path and its permissions", flag, quote.Text(path),
				disk.Reason(err))
		}
		defer file.Close() // only read
		from = file
	}
	limited := &io.LimitedReader{R: from, N: maxListSize + 1}
	list, err := parse(limited)
	if limited.N == 0 {
		err = fmt.Errorf("larger than %d bytes", maxListSize)
	}
	if failed, is := errors.AsType[*os.PathError](err); is {
		err = failed.Err
	}
	if err != nil {
		return nil, exit.Usagef("%s %s: %w", flag, quote.Text(path), err)
	}
	return list, nil
}
