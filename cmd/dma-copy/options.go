package main

import (
	"slices"
	"strings"
	"time"
)

// option is one thing that a run can be told. The table in options(), and for what only one command knows the one beside
// that command, is the only place that knows them: flags, keys of the parameter file, environment variables, defaults
// and help all follow from it.
type option struct {
	group    optionGroup
	name     string // long flag, key of the parameter file, and stem of the variable
	short    string // one letter, or empty
	alias    string // second long name with the same meaning, or empty
	aliasKey string // one letter for the alias
	value    string // what the help calls the value; empty for a switch
	fallback string // the default, spelled as on the command line; empty: none
	json     jsonShape
	assign   func(s *settings, text string) error
	help     string
}

// optionGroup says in which block of the help, and in which group of the parameter file, an option stands.
type optionGroup int

const (
	docaOptions    optionGroup = iota // general flags that every DOCA program has
	programOptions                    // flags of DOCA's own DMA copy program
	addedOptions                      // flags that only this program has
)

// jsonShape says which JSON values spell an option in the parameter file.
type jsonShape struct {
	kinds  string // the accepted kinds, each by its first byte as hujson.Kind has it
	wanted string // the same for an error
}

var (
	jsonNone   = jsonShape{} // command line only
	jsonText   = jsonShape{`"`, "a string"}
	jsonNumber = jsonShape{`0"`, "a number or a string"}
	jsonSwitch = jsonShape{`tf`, "true or false"}
)

const levelHelp = "10=DISABLE, 20=CRITICAL, 30=ERROR,\n40=WARNING, 50=INFO, 60=DEBUG, 70=TRACE"

// options are those of a copy.
func options() []option {
	return []option{
		{group: docaOptions, name: "log-level", short: "l", value: "LEVEL", fallback: "40", json: jsonNumber,
			assign: into(func(s *settings) *logLevel { return &s.LogLevel }, parseLevel),
			help:   "Log level of the program, by number or name:\n" + levelHelp},
		{group: docaOptions, name: "sdk-log-level", value: "LEVEL", fallback: "40", json: jsonNumber,
			assign: into(func(s *settings) *logLevel { return &s.SDKLogLevel }, parseLevel),
			help:   "The same for the driver's own messages"},
		{group: docaOptions, name: "json", short: "j", value: "FILE", json: jsonNone,
			assign: func(*settings, string) error { return nil }, // read before all others are merged
			help:   "Parameter file in DOCA's JSON form; may have\ncomments and trailing commas"},

		{group: programOptions, name: "pci-addr", short: "p", alias: "dev-pci", aliasKey: "d", value: "DEVICE",
			json: jsonText, assign: into(func(s *settings) *string { return &s.Device }, parseDevice),
			help: "Device: PCI address, IB or net device name;\nneeded only where more than one device fits"},
		{group: programOptions, name: "rep-pci", short: "r", value: "DEVICE",
			json: jsonText, assign: into(func(s *settings) *string { return &s.Representor }, parseDevice),
			help: "Representor of the host's device, DPU only"},
		{group: programOptions, name: "file", short: "f", value: "FILE",
			json: jsonText, assign: into(func(s *settings) *string { return &s.File }, parsePath),
			help: "File to send, or to create; mandatory"},

		{group: addedOptions, name: "driver", value: "auto|doca|soft", fallback: driverAuto,
			json:   jsonText,
			assign: into(func(s *settings) *string { return &s.Driver }, parseOneOf(driverAuto, driverDOCA, driverSoft)),
			help:   "DOCA's libraries or the software device; auto\nis DOCA where it loads and shows a device"},
		{group: addedOptions, name: "require-hw", fallback: "false", json: jsonSwitch,
			assign: into(func(s *settings) *bool { return &s.RequireHW }, parseSwitch),
			help:   "Fail rather than copy without the hardware"},
		{group: addedOptions, name: "doca-libdir", value: "DIR", json: jsonText,
			assign: into(func(s *settings) *string { return &s.LibraryDir }, parsePath),
			help:   "Directory of DOCA's libraries; if not given,\nthe loader's path and DOCA's own directories"},
		{group: addedOptions, name: "role", value: "auto|host|dpu", fallback: string(roleAuto),
			json:   jsonText,
			assign: into(func(s *settings) *role { return &s.Role }, parseOneOf(roleAuto, roleHost, roleDPU)),
			help:   "Side to play; auto is the DPU where the device\ncan be a server or -r is given"},
		{group: addedOptions, name: "wait", value: "DURATION", fallback: "30s",
			json: jsonText, assign: into(func(s *settings) *time.Duration { return &s.Wait }, parsePatience),
			help: "How long to wait for the peer to appear; either\nside may start first"},
		{group: addedOptions, name: "timeout", value: "DURATION", fallback: "0",
			json: jsonText, assign: into(func(s *settings) *time.Duration { return &s.Timeout }, parseLimit),
			help: "Limit for the whole run; 0 is none"},
		{group: addedOptions, name: "idle-timeout", value: "DURATION", fallback: "30s",
			json: jsonText, assign: into(func(s *settings) *time.Duration { return &s.IdleTimeout }, parsePatience),
			help: "Limit for a time without progress"},
		{group: addedOptions, name: "chunk", value: "SIZE", fallback: "0",
			json: jsonNumber, assign: into(func(s *settings) *int64 { return &s.Chunk }, parseSize),
			help: "Bytes per copy task, such as 65536, 256KiB or\n1M (1024 to the K); 0 asks the device"},
		{group: addedOptions, name: "depth", value: "COUNT", fallback: "0",
			json: jsonNumber, assign: into(func(s *settings) *int { return &s.Depth }, parseCount),
			help: "Copy tasks in flight; 0 asks the device"},
		{group: addedOptions, name: "overwrite", fallback: "false", json: jsonSwitch,
			assign: into(func(s *settings) *bool { return &s.Overwrite }, parseSwitch),
			help:   "Receive here, replacing FILE if it exists;\nwhere both sides have it, one must say so"},
		{group: addedOptions, name: "quiet", fallback: "false", json: jsonSwitch,
			assign: into(func(s *settings) *bool { return &s.Quiet }, parseSwitch),
			help:   "Print no summary"},
	}
}

// commonOptions are those that every command has.
func commonOptions() []option {
	return pickOptions("log-level", "sdk-log-level", "json", "driver", "require-hw", "doca-libdir")
}

// pickOptions takes some options of a copy.
func pickOptions(names ...string) []option {
	var picked []option
	for _, opt := range options() {
		if slices.Contains(names, opt.name) {
			picked = append(picked, opt)
		}
	}
	return picked
}

// everyOption is what any of the commands can be told, so that one parameter file serves all of them.
func everyOption() []option {
	table := options()
	for _, c := range commands() {
		for _, opt := range c.options {
			if _, known := optionByName(table, opt.name); !known {
				table = append(table, opt)
			}
		}
	}
	return table
}

// into makes an assignment of a parser and the field that takes its result.
func into[T any](field func(*settings) *T, parse func(string) (T, error)) func(*settings, string) error {
	return func(s *settings, text string) error {
		value, err := parse(text)
		if err != nil {
			return err
		}
		*field(s) = value
		return nil
	}
}

// names returns the long names of the option, the alias last.
func (o option) names() []string {
	if o.alias == "" {
		return []string{o.name}
	}
	return []string{o.name, o.alias}
}

// isSwitch says whether the option is given without a value.
func (o option) isSwitch() bool { return o.json == jsonSwitch }

// optionByName finds an option by its name or its alias.
func optionByName(table []option, name string) (option, bool) {
	for _, opt := range table {
		if name == opt.name || name == opt.alias && name != "" {
			return opt, true
		}
	}
	return option{}, false
}

// variableName is the environment variable of a long name: DMA_COPY_PCI_ADDR for pci-addr.
func variableName(name string) string {
	return "DMA_COPY_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
