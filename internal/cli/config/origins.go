package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Value is the value of one option with its origin.
type Value struct {
	Name   string `json:"name"`   // of the option, or peers.NAME.KEY
	Text   string `json:"value"`  // as it was given; empty: not given, and there is no default
	Origin string `json:"origin"` // "--wait", "DMA_COPY_WAIT", "params.json:7" or "default"
}

// Origins returns the values with which a command would run, in the order of its help, with an option that may be
// repeated once for each value; the peers follow, by name. It takes the arguments of Load, and fails as that does.
func Origins(flags *pflag.FlagSet, env Environment, s Settings) ([]Value, error) {
	if _, err := Load(flags, env, s); err != nil {
		return nil, err
	}
	all, _, err := merge(flags, env, s, s.options())
	values := []Value{}
	for _, opt := range withoutRepeatedKeys(s.options()) {
		if !opt.hidden {
			values = append(values, valuesOf(opt, winner(all.values, opt.key()))...)
		}
	}
	if _, is := s.(contacting); is {
		values = append(values, all.peers.values()...)
	}
	return values, err
}

// valuesOf returns the value of an option, or those of its list.
func valuesOf(opt option, value given) []Value {
	if value.items == nil {
		return []Value{{opt.name, value.text, shortOrigin(cmp.Or(value.origin, originDefault))}}
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

// values returns what each peer has, by name.
func (p Peers) values() []Value {
	var values []Value
	for _, name := range slices.Sorted(maps.Keys(p)) {
		for _, field := range []struct{ key, text string }{
			{"device", p[name].Device}, {"representor", p[name].Representor}, {"key", p[name].Key},
			{"address", p[name].Address},
		} {
			if field.text != "" {
				values = append(values, Value{"peers." + name + "." + field.key, field.text, p[name].Origin})
			}
		}
	}
	return values
}

// File describes a parameter file that has been checked.
type File struct {
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

// CheckFile reads a parameter file, and checks each value and those of serve against each other. Errors have the code
// exit.Usage, and name the line.
func CheckFile(path string) (File, error) {
	checked := File{Path: path, Peers: []string{}, Notes: []string{}}
	read, err := loadParams(path, argumentToCheck)
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
	var s Serve
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	Declare(flags, &s)
	onlyFile := func(name string) (string, bool) {
		if name == siteVariable {
			return path, true
		}
		return "", false
	}
	if _, err := Load(flags, onlyFile, &s); err != nil {
		return checked, err
	}
	return checked, s.Validate()
}

// DefaultFile returns the path of the machine's own file.
func DefaultFile(env Environment) string {
	if path, named := env.Variable(siteVariable); named {
		return path
	}
	return siteFile
}
