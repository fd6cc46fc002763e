package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/serve"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/share"
)

// configs is the directory of the parameter files that are shipped.
const configs = "../../configs"

func TestAcceptedParameterFiles(t *testing.T) {
	cases := []struct {
		name, text string
		want       func(*copying.Settings)
	}{
		{"DOCA's own keys", `{ "doca_general_flags": { "log-level": 50 },
			"doca_program_flags": { "file": "x", "pci-addr": "03:00.0", "rep-pci": "b1:00.0" } }`,
			func(s *copying.Settings) { s.LogLevel, s.Device, s.Representor = 50, "03:00.0", "b1:00.0" }},
		{"comments and trailing commas", `// first
			{ /* second */ "doca_program_flags": { "file": "x", // third
			}, }`,
			func(*copying.Settings) {}},
		{"device under the old key", `{"doca_program_flags": {"file": "x", "dev-pci": "b1:00.1"}}`,
			func(s *copying.Settings) { s.Device = "b1:00.1" }},
		{"device under both keys, the same", `{"doca_program_flags": {"file": "x", "dev-pci": "a", "pci-addr": "a"}}`,
			func(s *copying.Settings) { s.Device = "a" }},
		{"levels by name", `{"doca_general_flags": {"log-level": "trace", "sdk-log-level": "10"},
			"doca_program_flags": {"file": "x"}}`,
			func(s *copying.Settings) { s.LogLevel, s.Driver.LogLevel = option.LevelTrace, option.LevelDisable }},
		{"numbers as numbers", `{"doca_program_flags": {"file": "x", "chunk": 65536, "depth": 16}}`,
			func(s *copying.Settings) { s.Options.Chunk, s.Options.Depth = 65536, 16 }},
		{"numbers as text", `{"doca_program_flags": {"file": "x", "chunk": "256KiB", "depth": "16"}}`,
			func(s *copying.Settings) { s.Options.Chunk, s.Options.Depth = 256<<10, 16 }},
		{"switches", `{"doca_program_flags": {"file": "x", "overwrite": true, "quiet": false, "require-hw": true}}`,
			func(s *copying.Settings) { s.Options.Overwrite, s.Driver.RequireHW = true, true }},
		{"choices and durations", `{"doca_program_flags": {"file": "x", "driver": "soft", "role": "host",
			"wait": "1m", "timeout": "1h", "idle-timeout": "5s"}}`,
			func(s *copying.Settings) {
				s.Driver.Name, s.Role = device.DriverSoft, inventory.RoleHost
				s.Wait, s.Timeout, s.IdleTimeout = time.Minute, time.Hour, 5*time.Second
			}},
		{"patterns in the order of the file", `{"doca_program_flags": {"file": "x",
			"include": ["keep.o", "*.c"], "exclude-from": "ignore", "exclude": ["*.o", "tmp/"]}}`,
			func(s *copying.Settings) {
				s.Filters = []copying.FilterRule{{Kind: copying.FilterInclude, Text: "keep.o"},
					{Kind: copying.FilterInclude, Text: "*.c"},
					{Kind: copying.FilterExcludeFrom, Text: "ignore"}, {Kind: copying.FilterExclude, Text: "*.o"},
					{Kind: copying.FilterExclude, Text: "tmp/"}}
			}},
		{"no pattern", `{"doca_program_flags": {"file": "x", "exclude": []}}`, func(*copying.Settings) {}},
		{"escaped text", `{"doca_program_flags": {"file": "\u0078"}}`, func(*copying.Settings) {}},
		{"escaped key", `{"doca_program_flags": {"\u0066ile": "x"}}`, func(*copying.Settings) {}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			inNewDir(t, "params.json", tc.text)
			if got, want := mustLoad(t, nil, "-j", "params.json"), defaults(tc.want); !reflect.DeepEqual(got, want) {
				t.Errorf("%s:\n got %+v\nwant %+v", tc.text, got, want)
			}
		})
	}
}

func TestRefusedParameterFiles(t *testing.T) {
	const unreadable = "; name a readable parameter file"
	cases := []struct{ name, text, sentence string }{
		{"empty", "", `--json "params.json": the file is empty` + unreadable},
		{"blank", " \n\t", `--json "params.json": the file is empty` + unreadable},
		{"only a comment", "// nothing",
			`params.json:1: the file ends in the middle of a value at column 1; correct the JSON`},
		{"Latin-1", "{\"doca_program_flags\": {\"file\": \"\xe9\"}}",
			`--json "params.json": not UTF-8 text` + unreadable},
		{"too large", "{}" + strings.Repeat(" ", (1<<20)),
			`--json "params.json": larger than 1048576 bytes` + unreadable},
		{"too many brackets", strings.Repeat("[", 10_000+1),
			`--json "params.json": more than 10000 brackets` + unreadable},
		{"cut off", "{\n\"doca_program_flags\": {\n",
			"params.json:3: the file ends in the middle of a value at column 1; correct the JSON"},
		{"comma missing", "{\"doca_program_flags\": {\n\"file\": \"x\"\n\"wait\": \"1s\"}}",
			`params.json:3: invalid character '"' after object value (expecting ',' or '}') at column 1; correct ` +
				`the JSON`},
		{"comment left open", "{}\n/* to be continued",
			"params.json:2: the file ends in the middle of a value at column 1; correct the JSON"},
		{"two values", "{}\n{}",
			`params.json:2: invalid character '{' after top-level value at column 1; correct the JSON`},
		{"bare word", "{\"doca_program_flags\": {\n  \"quiet\": yes}}",
			"params.json:2: invalid literal: yes at column 12; correct the JSON"},
		{"line break in a string", "{\n\"a\nb\": 1}",
			`params.json:2: invalid literal: "a\nb" at column 1; correct the JSON`},
		{"not an object", "\n[]", "params.json:2: the file must hold one object with the groups " +
			"doca_general_flags, doca_program_flags, doca_dpdk_flags, serve or peers, not an array"},
		{"group mistyped", "{\n\"doca_progam_flags\": {}}",
			`params.json:2: unknown group "doca_progam_flags": did you mean "doca_program_flags"?`},
		{"group like no other", `{"settings": {}}`, `params.json:1: unknown group "settings": ` +
			"use doca_general_flags, doca_program_flags, doca_dpdk_flags, serve or peers"},
		{"key outside its group", `{"file": "x"}`,
			`params.json:1: unknown group "file": it belongs in doca_program_flags`},
		{"group twice", "{\"doca_dpdk_flags\": {},\n\"doca_dpdk_flags\": {}}",
			`params.json:2: duplicate key "doca_dpdk_flags" in the file: keep one of them`},
		{"group not an object", "{\n\"doca_program_flags\":\n\"file\"}",
			`params.json:3: doca_program_flags must be an object, not a string`},
		{"DPDK group not an object", `{"doca_dpdk_flags": []}`,
			"params.json:1: doca_dpdk_flags must be an object, not an array"},
		{"key mistyped", "{\n\"doca_program_flags\": {\n\n\"pci-adr\": \"b1:00.1\"}}",
			`params.json:4: unknown key "pci-adr" in doca_program_flags: did you mean "pci-addr"?`},
		{"key in capitals", `{"doca_program_flags": {"FILE": "x"}}`,
			`params.json:1: unknown key "FILE" in doca_program_flags: did you mean "file"?`},
		{"key like no other", `{"doca_general_flags": {"brilliant": true}}`,
			`params.json:1: unknown key "brilliant" in doca_general_flags: use log-level or sdk-log-level`},
		{"key with control characters", `{"doca_general_flags": {"\u001b[2J": 1}}`,
			`params.json:1: unknown key "\x1b[2J" in doca_general_flags: use log-level or sdk-log-level`},
		{"key of the other group", `{"doca_program_flags": {"log-level": 40}}`,
			`params.json:1: unknown key "log-level" in doca_program_flags: it belongs in doca_general_flags`},
		{"key of the command line", `{"doca_general_flags": {"json": "other.json"}}`,
			`params.json:1: unknown key "json" in doca_general_flags: it goes on the command line`},
		{"key twice", "{\"doca_program_flags\": {\"wait\": \"1s\",\n\"wait\": \"1s\"}}",
			`params.json:2: duplicate key "wait" in doca_program_flags: keep one of them`},
		{"key twice, once escaped", `{"doca_program_flags": {"file": "x", "\u0066ile": "y"}}`,
			`params.json:1: duplicate key "file" in doca_program_flags: keep one of them`},
		{"pattern not a string", "{\"doca_program_flags\": {\"exclude\": [\"a\",\n7]}}",
			`params.json:2: "exclude" in doca_program_flags must be an array of strings, not of a number`},
		{"patterns not an array", `{"doca_program_flags": {"include": 7}}`,
			`params.json:1: "include" in doca_program_flags must be a string or an array of strings, not a number`},
		{"pattern empty", "{\"doca_program_flags\": {\"exclude\": [\"a\",\n\"\"]}}",
			`params.json:2: exclude "": not a pattern; give one line as in .gitignore, such as *.tmp or build/`},
		{"two devices", "{\"doca_program_flags\": {\"pci-addr\": \"a\",\n\"dev-pci\": \"b\"}}",
			`params.json:1: pci-addr "a" and params.json:2: dev-pci "b" differ: both name the same thing, so give ` +
				`one of them`},
		{"number for text", "{\"doca_program_flags\": {\n\"file\": 7}}",
			`params.json:2: "file" in doca_program_flags must be a string, not a number`},
		{"number for a duration", `{"doca_program_flags": {"wait": 30}}`,
			`params.json:1: "wait" in doca_program_flags must be a string, not a number`},
		{"null for text", `{"doca_program_flags": {"file": null}}`,
			`params.json:1: "file" in doca_program_flags must be a string, not null`},
		{"array for text", `{"doca_program_flags": {"file": ["x"]}}`,
			`params.json:1: "file" in doca_program_flags must be a string, not an array`},
		{"object for text", `{"doca_program_flags": {"file": {}}}`,
			`params.json:1: "file" in doca_program_flags must be a string, not an object`},
		{"text for a switch", `{"doca_program_flags": {"quiet": "true"}}`,
			`params.json:1: "quiet" in doca_program_flags must be true or false, not a string`},
		{"number for a switch", `{"doca_program_flags": {"quiet": 1}}`,
			`params.json:1: "quiet" in doca_program_flags must be true or false, not a number`},
		{"switch for a number", `{"doca_program_flags": {"depth": true}}`,
			`params.json:1: "depth" in doca_program_flags must be a number or a string, not true or false`},
		{"fraction for a count", `{"doca_program_flags": {"depth": 1.5}}`, `params.json:1: depth "1.5": ` +
			"give a whole number from 0 to 2147483647"},
		{"negative size", `{"doca_program_flags": {"chunk": -1}}`, `params.json:1: chunk "-1": ` +
			"not a size; give whole bytes such as 1048576, 512MiB or 2G"},
		{"level out of steps", `{"doca_general_flags": {"log-level": 4e1}}`, `params.json:1: log-level "4e1": ` +
			"not a log level; give 10 to 70 in steps of ten, or DISABLE, CRITICAL, ERROR, WARNING, INFO, DEBUG or " +
			"TRACE"},
		{"duration of nothing", "{\"doca_program_flags\": {\n\"wait\": \"0\"}}",
			`params.json:2: wait "0": the duration must be longer than zero; give one such as 30s`},
		{"path with NUL", `{"doca_program_flags": {"file": "a\u0000b"}}`,
			`params.json:1: file "a\x00b": a path cannot hold a NUL byte; give the path of a file`},
		{"device empty", `{"doca_program_flags": {"pci-addr": ""}}`, `params.json:1: pci-addr "": ` +
			"not a device; give a PCI address such as b1:00.1, or an IB or net device name"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			inNewDir(t, "params.json", tc.text)
			mustRefuse(t, loadCopy(nil, "-j", "params.json"), tc.sentence)
		})
	}
}

// Values that a flag overrides are checked, too: they must not fail on the day the flag is left out.
func TestHiddenValueOfParameterFileIsChecked(t *testing.T) {
	inNewDir(t, "params.json", `{"doca_program_flags": {"wait": "0"}}`)
	mustRefuse(t, loadCopy(nil, "-j", "params.json", "-f", "x", "--wait", "1s"),
		`params.json:1: wait "0": the duration must be longer than zero; give one such as 30s`)
}

func TestUnreadableParameterFiles(t *testing.T) {
	t.Run("directory", func(t *testing.T) {
		t.Chdir(t.TempDir())
		mustRefuse(t, loadCopy(nil, "-j", "."),
			`--json ".": is a directory; name a readable parameter file`)
	})
	t.Run("pipe without a writer", func(t *testing.T) {
		t.Chdir(t.TempDir())
		if err := syscall.Mkfifo("pipe", 0o600); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, loadCopy(nil, "-j", "pipe"),
			`--json "pipe": the file is empty; name a readable parameter file`)
	})
	t.Run("endless", func(t *testing.T) {
		mustRefuse(t, loadCopy(nil, "-j", "/dev/zero"),
			`--json "/dev/zero": larger than 1048576 bytes; name a readable parameter file`)
	})
	t.Run("cause", func(t *testing.T) {
		t.Chdir(t.TempDir())
		if err := loadCopy(nil, "-j", "no.json").err; !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v does not answer to os.ErrNotExist", err)
		}
	})
}

func TestParameterFileFromPipe(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := writer.WriteString(`{"doca_program_flags": {"file": "x"}}`); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/dev/fd/%d", reader.Fd())
	if got := mustLoad(t, nil, "-j", path); !reflect.DeepEqual(got, defaults()) {
		t.Errorf("got %+v", got)
	}
}

func TestShippedConfigs(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(configs, "*"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("found %q, error %v", paths, err)
	}
	want := map[string][2]string{
		"host.json":   {"b1:00.1", ""},
		"dpu.json":    {"03:00.1", "b1:00.1"},
		"params.json": {"03:00.1", "b1:00.1"},
		"serve.json":  {"", ""}, // they are serve's
		"client.json": {"", ""}, // the peers have devices
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := mustLoad(t, nil, "-j", path, "-f", "x")
			if got := [2]string{s.Device, s.Representor}; got != want[filepath.Base(path)] {
				t.Errorf("device and representor %q, want %q", got, want[filepath.Base(path)])
			}
		})
	}
}

// FuzzParameterFile expects of any text either values that pass again, or one printable sentence with file and line.
func FuzzParameterFile(f *testing.F) {
	f.Add(readFuzzSeed(f, "host.json"))
	f.Add(readFuzzSeed(f, "dpu.json"))
	f.Add(`{"doca_program_flags": {"dev-pci": "a", "pci-addr": "b", "depth": 1e9, "quiet": [null]}}`)
	f.Add("{\"doca_dpdk_flags\": {}} // \u2028")
	f.Add(readFuzzSeed(f, "serve.json"))
	f.Add(readFuzzSeed(f, "client.json"))
	f.Add(`{"serve": {"share": ["a=/b,rw", 1], "rep-pci": "x"}, "peers": {"dpu": {"key": "a b", "device": 3}}}`)
	f.Add(`{"doca_program_flags": {"include": ["a", "b/"], "exclude": "*", "exclude-from": [7]}}`)
	path := filepath.Join(f.TempDir(), "params.json")
	f.Fuzz(func(t *testing.T, text string) {
		writeFile(t, path, text)
		checked, err := unvalidatedFile(path)
		if err != nil {
			if _, ok := errors.AsType[*exit.Error](err); !ok {
				t.Errorf("%v: not a usage error", err)
			}
			if !strings.HasPrefix(err.Error(), "FILE ") { // of the file as a whole
				checkSentence(t, strings.TrimPrefix(err.Error(), filepath.Dir(path)+"/"))
			}
			return
		}
		for _, name := range checked.Peers {
			if share.CheckName(name) != nil {
				t.Errorf("peer %q got through", name)
			}
		}
		for _, s := range []option.Settings{new(copying.Settings), new(serve.Settings)} {
			checkAgain(t, path, s)
		}
	})
}

// unvalidated is a Serve of which only the values are checked.
type unvalidated struct{ serve.Settings }

func (*unvalidated) Validate() error { return nil }

// unvalidatedFile checks a file without the settings of serve against each other.
func unvalidatedFile(path string) (option.CheckedFile, error) {
	all := every()
	for i, s := range all {
		if _, is := s.(*serve.Settings); is {
			all[i] = new(unvalidated)
		}
	}
	return all.CheckFile(path)
}

// checkAgain expects that each value of the file passes again.
func checkAgain(t *testing.T, path string, s option.Settings) {
	t.Helper()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	option.Declare(flags, s)
	if err := flags.Parse([]string{"-j", path}); err != nil {
		t.Fatal(err)
	}
	values, err := every().Origins(flags, func(string) (string, bool) { return "", false }, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range values {
		opt, known := option.ByName(s.Table(), value.Name)
		if !known || value.Text == "" {
			continue
		}
		if err := opt.Assign(value.Text); err != nil {
			t.Errorf("%s %q got through: %v", value.Name, value.Text, err)
		}
	}
}

func checkSentence(t *testing.T, sentence string) {
	t.Helper()
	var line int
	if _, err := fmt.Sscanf(sentence, "params.json:%d: ", &line); err != nil {
		t.Errorf("%q: does not start with file and line", sentence)
	}
	if strings.ContainsFunc(sentence, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%q: not one printable line", sentence)
	}
}

func readFuzzSeed(f *testing.F, name string) string {
	f.Helper()
	text, err := os.ReadFile(filepath.Join(configs, name))
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}
