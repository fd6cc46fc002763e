package config

import (
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/root"
)

// configArguments completes show and a command, or check and a file. The flags behind the command are completed as its
// own, see shownBy.
func configArguments(p *root.Program) root.Completes {
	return func(_ root.Completer, before []string, word string) ([]string, root.Directive) {
		switch {
		case len(before) == 0:
			return root.Offer([]string{configShow, configCheck}, word)
		case len(before) == 1 && before[0] == configCheck:
			return nil, root.Files
		case len(before) == 1 && before[0] == configShow:
			return root.Offer(append(root.Names(p.Commands), root.CopyName), word)
		}
		return nil, root.OnlyThese
	}
}

// shownBy returns the command and the flags behind config show, nil if there is no command.
func shownBy(p *root.Program) func(before []string) []string {
	return func(before []string) []string {
		show := slices.Index(before, configShow)
		if show < 0 || show+1 == len(before) {
			return nil
		}
		if name := before[show+1]; name != root.CopyName && !slices.Contains(root.Names(p.Commands), name) {
			return nil
		}
		return before[show+1:]
	}
}
