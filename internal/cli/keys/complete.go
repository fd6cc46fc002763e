package keys

import (
	"cmp"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/root"
)

// keyNames completes the argument of keys.
func keyNames(c root.Completer, before []string, word string) ([]string, root.Directive) {
	if len(before) == 0 {
		var actions []string
		for _, action := range keysActions {
			actions = append(actions, action.name)
		}
		return root.Offer(actions, word)
	}
	overwrites := c.Flags.Changed("overwrite")
	switch {
	case before[0] == keysTrust && len(before) > 1:
		return nil, root.Files // one with the line of a key
	case len(before) == 1 && (before[0] == keysRemove || before[0] == keysTrust && overwrites):
		return completeTrusted(c, word), root.OnlyThese
	}
	return nil, root.OnlyThese
}

// completeTrusted returns the names of the trusted keys with this beginning.
func completeTrusted(c root.Completer, word string) (offered []string) {
	store, err := contact.OpenKeys(c.Streams.Env, contact.ListSettings(c).Keys)
	if err != nil {
		return nil
	}
	known, err := store.Load()
	if err != nil {
		return nil
	}
	for _, grant := range known.All() {
		if strings.HasPrefix(grant.Name, word) {
			offered = append(offered, root.Candidate(grant.Name, cmp.Or(grant.Comment, grant.Key.Words())))
		}
	}
	return offered
}
