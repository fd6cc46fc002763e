package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// Where a machine's own defaults are: in the shape of a parameter file, below everything else that says something.
const (
	siteFile     = "/etc/dma-copy/config.json"
	siteVariable = "DMA_COPY_CONFIG" // names another
)

// Environment looks up an environment variable, as os.LookupEnv.
type Environment func(name string) (string, bool)

// Variable returns an environment variable; an empty one counts as not set, which is also the convention of NO_COLOR.
func (e Environment) Variable(name string) (string, bool) {
	value, _ := e(name)
	return value, value != ""
}

// originDefault marks the values of the table.
const originDefault = "default"

// Declare adds the flags of a command. They hold text: one parser per option serves all origins, and it runs once the
// winner is known.
func Declare(flags *pflag.FlagSet, s Settings) {
	for _, opt := range s.options() {
		declareFlag(flags, opt, opt.name, opt.short)
		if opt.alias != "" {
			declareFlag(flags, opt, opt.alias, opt.aliasKey)
		}
	}
}

func declareFlag(flags *pflag.FlagSet, opt option, name, short string) {
	flags.StringP(name, short, opt.fallback, opt.help)
	flags.Lookup(name).Hidden = opt.hidden
	if opt.isSwitch() {
		flags.Lookup(name).NoOptDefVal = "true"
	}
}

// Load fills in the settings of a command from parsed flags, the parameter file, the environment, the machine's
// file and the defaults, in this order of precedence. The notes say what was given and has no effect. Errors have the code
// exit.Usage; with one, the settings are those that can be told nevertheless.
func Load(flags *pflag.FlagSet, env Environment, s Settings) (notes []string, err error) {
	merged, table := viper.New(), s.options()
	notes, err = mergeOrigins(merged, flags, env, table)
	for _, opt := range table {
		err = cmp.Or(err, assignWinner(winner(merged, opt.name), opt))
	}
	return notes, err
}

// mergeOrigins merges as much as it can, and returns the first error.
func mergeOrigins(merged *viper.Viper, flags *pflag.FlagSet, env Environment, table []option) ([]string, error) {
	flagsErr := mergeFlags(merged, flags, table)
	notes, err := mergeFileAndEnvironment(merged, env, table)
	return notes, cmp.Or(flagsErr, err)
}

// mergeFlags puts the flags that were given on top and the defaults at the bottom, each key by itself on the caller's
// own instance: where a whole flag set is bound to the shared one, the last command to bind wins.
func mergeFlags(merged *viper.Viper, flags *pflag.FlagSet, table []option) error {
	used := layer{}
	var failed error
	for _, opt := range table {
		merged.SetDefault(opt.name, given{text: opt.fallback, origin: originDefault})
		for _, name := range opt.names() {
			flag := flags.Lookup(name)
			if !flag.Changed {
				continue
			}
			failed = cmp.Or(failed, used.add(opt, given{text: flag.Value.String(), origin: "--" + name}))
			merged.Set(opt.name, used[opt.name])
		}
	}
	return failed
}

// mergeFileAndEnvironment puts the parameter file over the environment, and that over the machine's own defaults. viper's own
// environment layer stands above its file layer, and what is found only there is missing from a decoded struct, so all of them
// go into the file layer.
func mergeFileAndEnvironment(merged *viper.Viper, env Environment, table []option) ([]string, error) {
	site, notes, siteErr := loadSite(env)
	environment, environmentErr := loadEnvironment(env, table)
	err := cmp.Or(siteErr, environmentErr, mergeLayer(merged, site), mergeLayer(merged, environment))
	named := winner(merged, "json")
	if named.origin == originDefault {
		return notes, err
	}
	file, more, fileErr := loadParams(named.text, named.origin, everyOption())
	return append(notes, more...), cmp.Or(err, fileErr, mergeLayer(merged, file))
}

// loadSite reads the machine's own defaults, a parameter file that need not be there unless somebody names it.
func loadSite(env Environment) (layer, []string, error) {
	path, named := env.Variable(siteVariable)
	if !named {
		path = siteFile
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil
		}
	}
	return loadParams(path, siteVariable, everyOption())
}

// loadEnvironment returns the values of all variables that do not contradict each other, and an error if some do.
func loadEnvironment(env Environment, table []option) (layer, error) {
	environment := layer{}
	var failed error
	for _, opt := range table {
		for _, name := range opt.names() {
			text, ok := env.Variable(variableName(name))
			if !ok {
				continue
			}
			failed = cmp.Or(failed, environment.add(opt, given{text: text, origin: variableName(name)}))
		}
	}
	return environment, failed
}

func mergeLayer(merged *viper.Viper, values layer) error {
	keys := make(map[string]any, len(values))
	for name, value := range values {
		keys[name] = value
	}
	if err := merged.MergeConfigMap(keys); err != nil {
		return fmt.Errorf("merge the settings: %w", err)
	}
	return nil
}

// winner returns the value of highest precedence.
func winner(merged *viper.Viper, name string) given {
	value, ok := merged.Get(name).(given)
	if !ok {
		panic("internal error: no default for " + name)
	}
	return value
}

func assignWinner(value given, opt option) error {
	if value.origin == originDefault && value.text == "" {
		return nil // the zero value says "not given"
	}
	if err := opt.assign(value.text); err != nil {
		return badValue(value, err)
	}
	return nil
}

// badValue is the one form in which a value is refused.
func badValue(value given, cause error) error {
	return exit.Usagef("%s %s: %w", value.origin, quote.Text(value.text), cause)
}

// LibraryDir returns the directory in which --version looks for DOCA. It answers even where other settings would be
// refused, so it reads the flag and the variable alone.
func LibraryDir(flags *pflag.FlagSet, env Environment) string {
	if given := flags.Lookup("doca-libdir"); given.Changed {
		return given.Value.String()
	}
	dir, _ := env.Variable(variableName("doca-libdir"))
	return dir
}
