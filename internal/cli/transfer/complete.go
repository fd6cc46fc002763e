package transfer

import (
	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/root"
)

// pushArguments completes SRC... [PEER]:SHARE[/PATH].
func pushArguments(c root.Completer, before []string, word string) ([]string, root.Directive) {
	if len(before) == 0 && !contact.IsRemote(word) {
		return nil, root.Files
	}
	return contact.CompleteEither(c, word)
}

// pullArguments completes [PEER]:SHARE/PATH... DST.
func pullArguments(c root.Completer, before []string, word string) ([]string, root.Directive) {
	if len(before) == 0 {
		return contact.CompleteRemote(c, word)
	}
	return contact.CompleteEither(c, word)
}

// syncArguments completes SRC and DST, of which one is in a share.
func syncArguments(c root.Completer, before []string, word string) ([]string, root.Directive) {
	switch {
	case len(before) == 0:
		return contact.CompleteEither(c, word)
	case len(before) > 1:
		return nil, root.OnlyThese
	case contact.IsRemote(before[0]):
		return nil, root.Files
	default:
		return contact.CompleteRemote(c, word)
	}
}
