package contest

import (
	"context"
	"fmt"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
)

// task is what is done before and after a run of a copy, for the candidates that do the same work alike.
type task interface {
	// Prepare is that of a candidate.
	Prepare(ctx context.Context) error

	// Check is that of a candidate.
	Check(ctx context.Context, thoroughly bool) error
}

// conditions are those of every run of a group.
type conditions struct {
	workspace     *workspace
	size          int64 // bytes that a run writes
	memoryTouched bool  // before every run so far
}

func (w *workspace) newConditions(size int64) *conditions {
	return &conditions{workspace: w, size: size, memoryTouched: true}
}

// establish sees to it that there is no target, the source is in the page cache, and the hypervisor has granted memory.
func (c *conditions) establish() error {
	if err := c.workspace.clear(); err != nil {
		return err
	}
	if err := c.workspace.warm(); err != nil {
		return err
	}
	c.memoryTouched = touchMemory(c.size) && c.memoryTouched
	return nil
}

// fileTask is the copy of a file to an absent target.
type fileTask struct{ *conditions }

func (t fileTask) Prepare(context.Context) error { return t.establish() }

func (t fileTask) Check(ctx context.Context, thoroughly bool) error {
	if err := t.workspace.checkSize(t.size); err != nil || !thoroughly {
		return err
	}
	return t.workspace.checkContent(ctx)
}

// treeTask is the copy of a tree to an absent target.
type treeTask struct {
	*conditions
	tree       *filetree.Tree
	target     string
	comparison filetree.Comparison // what the candidate preserves
}

func (t treeTask) Prepare(context.Context) error { return t.establish() }

func (t treeTask) Check(ctx context.Context, thoroughly bool) error {
	found, err := filetree.List(ctx, t.target)
	if err != nil {
		return err
	}
	if err := t.tree.Check(found); err != nil || !thoroughly {
		return err
	}
	return t.comparison.Compare(ctx, t.workspace.source(), t.target)
}

// repeatTask is the repetition of a copy of a tree when nothing has changed. The target is the candidate's own, and
// stays from round to round.
type repeatTask struct {
	treeTask
	first copyCandidate // makes the target
	made  bool
	found []filetree.Entry // in the target before the run
}

func (t *repeatTask) Prepare(ctx context.Context) error {
	if !t.made {
		if _, err := t.first.Run(ctx); err != nil {
			return fmt.Errorf("the first copy: %w", err)
		}
		t.made = true
	}
	if err := t.establish(); err != nil {
		return err
	}
	var err error
	t.found, err = filetree.List(ctx, t.target)
	return err
}

func (t *repeatTask) Check(ctx context.Context, thoroughly bool) error {
	found, err := filetree.List(ctx, t.target)
	if err != nil {
		return err
	}
	if written := filetree.Written(t.found, found); len(written) > 0 {
		return fmt.Errorf("%d unchanged files were written again, first %q", len(written), written[0])
	}
	return t.treeTask.Check(ctx, thoroughly)
}
