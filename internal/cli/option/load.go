package option

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// The file with a machine's own defaults, in the form of a parameter file. Its precedence is lowest.
const (
	siteFile     = "/etc/dma-copy/config.json"
	siteVariable = "DMA_COPY_CONFIG" // names another
)

// Environment looks up an environment variable, like os.LookupEnv.
type Environment func(name string) (string, bool)

// Variable returns an environment variable and reports whether it is set. An empty one counts as not set, which is
// also the convention of NO_COLOR.
func (e Environment) Variable(name string) (string, bool) {
	value, _ := e(name)
	return value, value != ""
}

// Get returns an environment variable, empty if it is not set, like os.Getenv.
func (e Environment) Get(name string) string {
	value, _ := e(name)
	return value
}

// originDefault is the origin of the defaults in the tables.
const originDefault = "default"

// Declare adds the flags of a command. Their values are text: one parser per option serves flags, files and variables,
// and runs once precedence is decided.
func Declare(flags *pflag.FlagSet, s Settings) {
	lists := map[string]*[]given{}
	for _, opt := range s.Table() {
		if opt.List != "" && lists[opt.List] == nil {
			lists[opt.List] = new([]given)
		}
		declareFlag(flags, opt, opt.Name, opt.Short, lists[opt.List])
		if opt.Alias != "" {
			declareFlag(flags, opt, opt.Alias, opt.AliasShort, lists[opt.List])
		}
	}
}

// declareFlag adds one flag. list is nil for a single value.
func declareFlag(flags *pflag.FlagSet, opt Option, name, short string, list *[]given) {
	if list == nil {
		flags.VarP(&valueFlag{text: opt.Default}, name, short, opt.Help)
	} else {
		flags.VarP(&listFlag{option: opt.Name, list: list}, name, short, opt.Help)
	}
	flags.Lookup(name).Hidden = opt.Hidden
	flags.Lookup(name).NoOptDefVal = opt.Bare
	if opt.IsSwitch() {
		flags.Lookup(name).NoOptDefVal = "true"
	}
}

// valueFlag is the value of a flag that may be given once.
type valueFlag struct {
	text  string
	given []string // all texts on the command line
}

var _ pflag.Value = (*valueFlag)(nil)

// Set implements pflag.Value. A flag that is given too often is refused with the settings, when they can be reported.
func (f *valueFlag) Set(text string) error {
	f.text, f.given = text, append(f.given, text)
	return nil
}

// String implements pflag.Value.
func (f *valueFlag) String() string { return f.text }

// Type implements pflag.Value.
func (f *valueFlag) Type() string { return "string" }

// check returns an error if a flag was given twice, since one of the values would have no effect. A switch may be
// repeated.
func (f *valueFlag) check(opt Option, name string) error {
	for i := 1; i < len(f.given); i++ {
		if !opt.IsSwitch() || f.given[i] != f.given[0] {
			return exit.Usagef("--%s is given twice, as %s and %s: leave one of them out", name,
				quote.Text(f.given[0]), quote.Text(f.given[i]))
		}
	}
	return nil
}

// listFlag is the value of a flag that may be repeated. All flags of one list append to the same slice, which keeps
// their order on the command line.
type listFlag struct {
	option string
	list   *[]given
}

var _ pflag.Value = (*listFlag)(nil)

// Set implements pflag.Value.
func (f *listFlag) Set(text string) error {
	*f.list = append(*f.list, given{text: text, origin: "--" + f.option, option: f.option})
	return nil
}

// String implements pflag.Value. Nothing is shown as a default.
func (f *listFlag) String() string { return "" }

// GetSlice implements cobra.SliceValue, by which the completion in a shell knows that the flag may be repeated.
func (f *listFlag) GetSlice() []string { return nil }

// Type implements pflag.Value.
func (f *listFlag) Type() string { return "string" }

// Load fills in the settings of a command from parsed flags, the parameter file, the environment, the machine's file
// and the defaults, in this order of precedence. The notes say which input has no effect. Errors have the code
// exit.Usage; with one, the settings hold those values that are valid.
func (c Commands) Load(flags *pflag.FlagSet, env Environment, s Settings) (notes []string, err error) {
	table := s.Table()
	merged, notes, err := c.merge(flags, env, s, table)
	for _, opt := range withoutRepeatedKeys(table) {
		err = cmp.Or(err, assignWinner(winner(merged.values, opt.key()), opt, table))
	}
	if listening, is := s.(interface{ Loaded(Loaded) }); is {
		listening.Loaded(Loaded{
			Peers: merged.peers, Flags: flags, ParameterFile: winner(merged.values, "json").text,
			IsDefault: func(name string) bool { return winner(merged.values, name).origin == originDefault },
			Again: func(now Settings) error {
				_, err := c.Load(flags, env, now)
				return err
			},
		})
	}
	return notes, err
}

// Loaded tells settings that have a method Loaded how they were loaded.
type Loaded struct {
	Peers         Peers                         // of the parameter files
	Flags         *pflag.FlagSet                // of the command line
	ParameterFile string                        // of --json; empty: none
	IsDefault     func(name string) bool        // reports whether nothing was given for an option
	Again         func(settings Settings) error // loads other settings, by the files of today
}

// merged holds the settings of a command from all origins.
type merged struct {
	values *viper.Viper
	peers  Peers
}

// merge merges all origins, also after an error, and returns the first one. table is the table of the settings.
func (c Commands) merge(flags *pflag.FlagSet, env Environment, s Settings, table []Option) (merged, []string, error) {
	all := merged{viper.New(), Peers{}}
	flagsErr := mergeFlags(all.values, flags, table)
	notes, err := all.mergeFilesAndEnvironment(c, env, s, table)
	all.quieten()
	return all, notes, cmp.Or(flagsErr, err)
}

// quieten makes the default levels of the logs ERROR with --quiet: a warning is output, too.
func (m *merged) quieten() {
	value, _ := m.values.Get(quietName).(given)
	if quiet, err := ParseSwitch(value.text); err != nil || !quiet {
		return
	}
	for _, name := range []string{logLevelName, SDKLogLevelName} {
		m.values.SetDefault(name, given{text: strconv.Itoa(int(LevelError)), origin: originDefault})
	}
}

// withoutRepeatedKeys returns the table with only the first option of each list.
func withoutRepeatedKeys(table []Option) []Option {
	var first []Option
	keys := make(map[string]bool, len(table))
	for _, opt := range table {
		if !keys[opt.key()] {
			first = append(first, opt)
			keys[opt.key()] = true
		}
	}
	return first
}

// mergeFlags gives the flags on the command line the highest precedence and the defaults the lowest. Keys are set one
// by one on an own instance of viper: if whole flag sets were bound to the shared one, the last command to bind would
// win.
func mergeFlags(merged *viper.Viper, flags *pflag.FlagSet, table []Option) error {
	used := layer{}
	var failed error
	for _, opt := range table {
		merged.SetDefault(opt.key(), given{text: opt.Default, origin: originDefault})
		if opt.FlagOnly {
			merged.Set(opt.key(), given{text: opt.Default, origin: originDefault})
		}
		for _, name := range opt.Names() {
			flag := flags.Lookup(name)
			if !flag.Changed {
				continue
			}
			if repeated, is := flag.Value.(*listFlag); is {
				merged.Set(opt.key(), given{items: *repeated.list})
				continue
			}
			if single, is := flag.Value.(*valueFlag); is {
				failed = cmp.Or(failed, single.check(opt, name))
			}
			failed = cmp.Or(failed, used.add(opt, given{text: flag.Value.String(), origin: "--" + name}))
			merged.Set(opt.key(), used[opt.key()])
		}
	}
	return failed
}

// mergeFilesAndEnvironment gives the parameter file precedence over the environment, and that over the machine's own
// defaults. All three go into viper's file layer: its environment layer would precede the file.
func (m *merged) mergeFilesAndEnvironment(
	c Commands, env Environment, s Settings, table []Option,
) ([]string, error) {
	site, siteErr := c.loadSite(env)
	environment, environmentErr := loadEnvironment(env, table)
	maps.Copy(m.peers, site.peers)
	err := cmp.Or(siteErr, environmentErr, mergeLayer(m.values, site.forCommand(s)), mergeLayer(m.values, environment))
	named := winner(m.values, "json")
	if named.origin == originDefault {
		return site.notes, err
	}
	file, fileErr := c.loadParams(named.text, named.origin)
	maps.Copy(m.peers, file.peers)
	return append(site.notes, file.notes...), cmp.Or(err, fileErr, mergeLayer(m.values, file.forCommand(s)))
}

// loadSite reads the machine's own defaults. The file may be absent, unless the environment names it.
func (c Commands) loadSite(env Environment) (params, error) {
	path, named := env.Variable(siteVariable)
	if !named {
		path = siteFile
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return params{}, nil
		}
	}
	return c.loadParams(path, siteVariable)
}

// loadEnvironment returns the values of all variables, and an error if two of them contradict each other.
func loadEnvironment(env Environment, table []Option) (layer, error) {
	environment := layer{}
	var failed error
	for _, opt := range table {
		for _, name := range opt.Names() {
			text, ok := env.Variable(VariableName(name))
			if !ok {
				continue
			}
			values := []string{text}
			if opt.List != "" { // one per line
				values = slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" })
			}
			for _, value := range values {
				failed = cmp.Or(failed, environment.add(opt, given{text: value, origin: VariableName(name)}))
			}
		}
	}
	return environment, failed
}

func mergeLayer(merged *viper.Viper, values layer) error {
	keys := make(map[string]any, len(values))
	for key, value := range values {
		keys[key] = value
	}
	if err := merged.MergeConfigMap(keys); err != nil {
		return fmt.Errorf("merge the settings: %w", err)
	}
	return nil
}

// winner returns the value of highest precedence.
func winner(merged *viper.Viper, key string) given {
	value, ok := merged.Get(key).(given)
	if !ok {
		panic("internal error: no default for " + key)
	}
	return value
}

// assignWinner assigns the value of an option, or the items of the list that the option and others of the table append
// to.
func assignWinner(value given, opt Option, table []Option) error {
	for _, item := range value.items {
		of, _ := ByName(table, item.option)
		if err := of.Assign(item.text); err != nil {
			return badValue(item, err)
		}
	}
	if value.text == "" && (opt.List != "" || value.origin == originDefault) {
		return nil // the zero value means that the option was not given
	}
	if err := opt.Assign(value.text); err != nil {
		return badValue(value, err)
	}
	return nil
}

// badValue returns the error of a value that was refused.
func badValue(value given, cause error) error {
	return exit.Usagef("%s %s: %w", value.origin, quote.Text(value.text), cause)
}

// TextOf returns the text of a flag or else of its variable, also where the settings would be refused.
func TextOf(name string, flags *pflag.FlagSet, env Environment) string {
	if given := flags.Lookup(name); given.Changed {
		return given.Value.String()
	}
	text, _ := env.Variable(VariableName(name))
	return text
}
