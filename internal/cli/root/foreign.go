package root

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/dma-copy/dma-copy/internal/share"
)

// foreignCommands are commands of other programs, by the one that does the same here. A copy depends on its arguments.
var foreignCommands = map[string]string{
	"cp": CopyName, "copy": CopyName, "scp": CopyName, "rsync": CopyName, "rcp": CopyName,
	"put": "push", "upload": "push", "send": "push", "get": "pull", "download": "pull", "receive": "pull",
	"mirror": "sync", "list": "ls", "dir": "ls", "ll": "ls", "del": "rm", "delete": "rm", "remove": "rm",
	"unlink": "rm", "daemon": "serve", "server": "serve", "check": "verify", "cmp": "verify",
	"diff": "verify", "sha256sum": "verify",
}

// secureShell is a file on another machine, as scp and rsync write it.
var secureShell = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([^@:/]+@[^@:/]+):(.*)$`) })

// RefuseSecureShell returns an error if an argument is a file on another machine, as scp writes it; nil: none is.
func RefuseSecureShell(args ...string) error {
	for _, arg := range args {
		if match := secureShell().FindStringSubmatch(arg); match != nil {
			at := match[2]
			if !strings.HasPrefix(at, "/") {
				at = "/~/" + at
			}
			return exit.Usagef("%s: write %s%s%s for a file on a machine that ssh logs in to", quote.Text(arg),
				share.LoginScheme, quote.Bare(match[1]), quote.Bare(at))
		}
	}
	return nil
}

// proposal returns the command line that copies by these arguments; empty: they do not say what to copy.
func proposal(args []string) string {
	places := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "-") })
	if len(places) < 2 {
		return ""
	}
	isRemote := func(arg string) bool {
		_, remote, _ := share.ParseRemote(arg)
		return remote
	}
	command := "local"
	switch last := len(places) - 1; {
	case isRemote(places[last]):
		command = "push"
	case slices.ContainsFunc(places[:last], isRemote):
		command = "pull"
	case last > 1:
		return ""
	}
	shown := make([]string, len(places))
	for i, place := range places {
		shown[i] = quote.Bare(place)
	}
	return "dma-copy " + command + " " + strings.Join(shown, " ")
}

// refuseForeign explains arguments that belong to another program; nil: they do not.
func refuseForeign(args []string) error {
	if err := RefuseSecureShell(args...); err != nil {
		return err
	}
	command, known := foreignCommands[args[0]]
	switch {
	case known && command != CopyName:
		return exit.Usagef("unknown command %s: write dma-copy %s", quote.Text(args[0]), command)
	case known && proposal(args[1:]) != "":
		return exit.Usagef("unknown command %s: write %s", quote.Text(args[0]), proposal(args[1:]))
	case known:
		return exit.Usagef("unknown command %s: write dma-copy push, pull or local", quote.Text(args[0]))
	case proposal(args) != "" && !strings.Contains(proposal(args), " local "):
		return exit.Usagef("unexpected argument %s: write %s", quote.Text(args[0]), proposal(args))
	}
	return nil
}
