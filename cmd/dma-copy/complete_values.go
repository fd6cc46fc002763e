package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// keyNames completes the argument of keys.
func keyNames(c completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(before) == 0 {
		var actions []string
		for _, action := range keysActions {
			actions = append(actions, action.name)
		}
		return offer(actions, word)
	}
	overwrites := c.flags.Changed("overwrite")
	switch {
	case before[0] == keysTrust && len(before) > 1:
		return nil, files // one with the line of a key
	case len(before) == 1 && (before[0] == keysRemove || before[0] == keysTrust && overwrites):
		return c.trusted(word), onlyThese
	}
	return nil, onlyThese
}

// trusted returns the names of the trusted keys with this beginning.
func (c completer) trusted(word string) (offered []cobra.Completion) {
	store, err := openKeys(c.streams.env, c.listSettings().Keys)
	if err != nil {
		return nil
	}
	known, err := store.Load()
	if err != nil {
		return nil
	}
	for _, grant := range known.All() {
		if strings.HasPrefix(grant.Name, word) {
			offered = append(offered, cobra.CompletionWithDesc(grant.Name, cmp.Or(grant.Comment, grant.Key.Words())))
		}
	}
	return offered
}

// configArguments completes show and a command, or check and a file. The flags behind the command are completed as its
// own, see shownBy.
func configArguments(p *program) completes {
	return func(_ completer, before []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(before) == 0:
			return offer([]string{configShow, configCheck}, word)
		case len(before) == 1 && before[0] == configCheck:
			return nil, files
		case len(before) == 1 && before[0] == configShow:
			return offer(append(names(p.commands), configCopy), word)
		}
		return nil, onlyThese
	}
}

// shownBy returns the command and the flags behind config show, nil if there is no command.
func shownBy(p *program) func(before []string) []string {
	return func(before []string) []string {
		show := slices.Index(before, configShow)
		if show < 0 || show+1 == len(before) {
			return nil
		}
		if name := before[show+1]; name != configCopy && !slices.Contains(names(p.commands), name) {
			return nil
		}
		return before[show+1:]
	}
}
