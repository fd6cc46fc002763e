package option

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// Value is the value of one option with its origin.
type Value struct {
	Name   string `json:"name"`   // of the option, or peers.NAME.KEY
	Text   string `json:"value"`  // as it was given; empty: not given, and there is no default
	Origin string `json:"origin"` // "--wait", "DMA_COPY_WAIT", "params.json:7" or "default"
}

// Origins returns the values with which a command would run, in the order of its help, with an option that may be
// repeated once for each value; the peers follow, by name. It takes the arguments of Load, and fails as that does.
func (c Commands) Origins(flags *pflag.FlagSet, env Environment, s Settings) ([]Value, error) {
	if _, err := c.Load(flags, env, s); err != nil {
		return nil, err
	}
	all, _, err := c.merge(flags, env, s, s.Table())
	values := []Value{}
	for _, opt := range withoutRepeatedKeys(s.Table()) {
		if !opt.Hidden {
			values = append(values, valuesOf(opt, winner(all.values, opt.key()))...)
		}
	}
	if _, is := s.(interface{ UsesPeers() }); is {
		values = append(values, all.peers.values()...)
	}
	return values, err
}

// valuesOf returns the value of an option, or the values of its list.
func valuesOf(opt Option, value given) []Value {
	if value.items == nil {
		return []Value{{opt.Name, value.text, shortOrigin(cmp.Or(value.origin, originDefault))}}
	}
	var values []Value
	for _, item := range value.items {
		values = append(values, Value{item.option, item.text, shortOrigin(item.origin)})
	}
	return values
}

// shortOrigin leaves out the key, which follows file and line.
func shortOrigin(origin string) string {
	if end := strings.LastIndex(origin, ": "); end > 0 {
		return origin[:end]
	}
	return origin
}

// CheckedFile describes a parameter file that has been checked.
type CheckedFile struct {
	Path   string   `json:"file"`
	Valid  bool     `json:"valid"`
	Error  string   `json:"error,omitempty"`
	Values int      `json:"values"` // of options
	Shares int      `json:"shares"` // of serve
	Peers  []string `json:"peers"`  // by name
	Notes  []string `json:"notes"`  // input without effect
}

// argumentToCheck is the origin of the path of CheckFile.
const argumentToCheck = "FILE"

// CheckFile reads a parameter file, and checks each value, and the values of serve against each other. Errors have the
// code exit.Usage, and name the line.
func (c Commands) CheckFile(path string) (CheckedFile, error) {
	checked := CheckedFile{Path: path, Peers: []string{}, Notes: []string{}}
	read, err := c.loadParams(path, argumentToCheck)
	if err != nil {
		return checked, err
	}
	checked.Values, checked.Shares = len(read.layer)+len(read.serve), len(read.serve["share"].items)
	checked.Peers = slices.AppendSeq(checked.Peers, maps.Keys(read.peers))
	slices.Sort(checked.Peers)
	checked.Notes = append(checked.Notes, read.notes...)
	if len(read.serve) == 0 {
		return checked, nil
	}
	daemon := blank(c.owner(GroupServe)).(grouped)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	Declare(flags, daemon)
	onlyFile := func(name string) (string, bool) {
		if name == siteVariable {
			return path, true
		}
		return "", false
	}
	if _, err := c.Load(flags, onlyFile, daemon); err != nil {
		return checked, err
	}
	return checked, daemon.Validate()
}

// DefaultFile returns the path of the machine's own file.
func DefaultFile(env Environment) string {
	if path, named := env.Variable(siteVariable); named {
		return path
	}
	return siteFile
}

// FormatValues returns the values as columns.
func FormatValues(values []Value) string {
	nameWidth, textWidth := 0, 0
	for _, v := range values {
		nameWidth = max(nameWidth, len(v.Name))
		textWidth = max(textWidth, min(len(quote.Printable(v.Text)), 40))
	}
	var out strings.Builder
	for _, v := range values {
		fmt.Fprintf(&out, "%-*s  %-*s  %s\n", nameWidth, v.Name, textWidth, quote.Printable(v.Text), v.Origin)
	}
	return out.String()
}
