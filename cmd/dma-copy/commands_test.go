package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/program"
	"github.com/dma-copy/dma-copy/internal/cli/root"
)

func TestRefusedCommands(t *testing.T) {
	cases := []struct{ name, line, sentence string }{
		{"mistyped", "devcies", `unknown command "devcies": did you mean "devices"?`},
		{"cut short", "doc", `unknown command "doc": did you mean "doctor"?`},
		{"in capitals", "VERSION", `unknown command "VERSION": did you mean "version"?`},
		{"after flags of a copy", "-p b1:00.1 verison", `unknown command "verison": did you mean "version"?`},
		{"argument", "devices b1:00.1", `unexpected argument "b1:00.1": dma-copy devices takes flags only`},
		{"flag of a copy", "devices --file x", `unknown flag "--file": "dma-copy devices --help" lists the flags`},
		{"mistyped flag", "doctor --pear", `unknown flag "--pear": did you mean --peer?`},
		{"flag of another command", "version --peer",
			`unknown flag "--peer": "dma-copy version --help" lists the flags`},
		{"letter of a flag of another command", "verify -p json a b",
			`unknown flag "-p": "dma-copy verify --help" lists the flags`},
		{"parameter file missing", "devices --json",
			"--json needs a value: it reads a parameter file, as in --json FILE or -j FILE; " +
				"for output as JSON write -o json"},
		{"parameter file missing, no output", "serve -j", "--json needs a value: write --json FILE or -j FILE"},
		{"value missing", "devices -o", "--output needs a value: write --output text|json or -o text|json"},
		{"form unknown", "devices -o xml", `--output "xml": not one of the choices; give text or json`},
		{"common flag refused alike", "doctor --driver hard",
			`--driver "hard": not one of the choices; give auto, doca, soft or ucx`},
		{"directory empty", "version --doca-libdir _", `--doca-libdir "": an empty name; give the path of a file`},
		{"help of a mistyped command", "help devcies", `no help topic "devcies": did you mean "devices"?`},
		{"help of nothing known", "help x",
			`no help topic "x": the commands are bench, bundle, completion, config, devices, doctor, keys, local, ` +
				`ls, mkdir, peers, ping, pull, push, rm, serve, status, sync, verify or version`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { checkRefusal(t, invoke(nil, words(tc.line)...), tc.sentence) })
	}
}

// The name of a command is a command only where it is not the value of a flag.
func TestValuesNamedLikeCommands(t *testing.T) {
	for _, line := range []string{"-f devices", "--file devices", "--file=devices", "-p b1:00.1 -f devices",
		"-f devices --quiet"} {
		if got := mustRun(t, nil, words(line)...); got.File != "devices" {
			t.Errorf("%s: file %q", line, got.File)
		}
	}
}

func TestHelpOfCommands(t *testing.T) {
	p := program.New()
	for _, c := range p.Commands {
		want := invoke(nil, c.Name, "--help")
		if want.err != nil || want.ran || want.stderr != "" ||
			!strings.HasPrefix(want.stdout, "Usage: dma-copy "+c.Name+" [Flags]") {
			t.Errorf("%s: error %v, ran %t, stderr %q, stdout %q", c.Name, want.err, want.ran, want.stderr, want.stdout)
		}
		if got := invoke(nil, "help", c.Name); got.stdout != want.stdout {
			t.Errorf("help %s differs from %s --help:\n%s", c.Name, c.Name, got.stdout)
		}
		for line := range strings.Lines(want.stdout) {
			if len(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("longer than %d columns: %s", 80, line)
			}
		}
		p.NewSubcommand(c, root.Streams{}, nil).Flags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden && !strings.Contains(want.stdout, "--"+flag.Name+" ") &&
				!strings.Contains(want.stdout, "--"+flag.Name+",") {
				t.Errorf("the help of %s does not name --%s", c.Name, flag.Name)
			}
		})
		if !strings.Contains(invoke(nil, "--help").stdout, "\n  "+c.Name+" ") {
			t.Errorf("the program's help does not list %s", c.Name)
		}
	}
	if invoke(nil, "help").stdout != invoke(nil, "--help").stdout {
		t.Error("help differs from --help")
	}
}

// Who reads the help alone learns how to name a daemon on another machine, and how to start one.
func TestHelpNamesOtherMachines(t *testing.T) {
	for command, text := range map[string]string{
		"push": "ucx://HOST[:PORT]/SHARE[/PATH]", "pull": "ucx://HOST[:PORT]/SHARE/PATH",
		"sync": "ucx://HOST[:PORT]/SHARE[/PATH]", "ls": "ucx://HOST[:PORT]/[SHARE[/PATH]]",
		"ping": "ucx://HOST[:PORT]", "serve": "dma-copy serve --listen :7483 --share",
	} {
		if help := invoke(nil, command, "--help").stdout; !strings.Contains(help, text) {
			t.Errorf("the help of %s does not have %s", command, text)
		}
	}
}

// One parameter file serves a copy and all commands; each ignores the keys of the others.
func TestParameterFileOfAllCommands(t *testing.T) {
	inNewDir(t, "all.json", `{"doca_program_flags": {"file": "x", "write": "m", "peer": true, "doca-libdir": "/d"}}`)
	if got := mustRun(t, nil, "-j", "all.json"); got.File != "x" || got.Driver.LibraryDir != "/d" {
		t.Errorf("settings of a copy %+v", got)
	}
	writeFile(t, "bad.json", `{"doca_program_flags": {"file": "x", "output": "xml"}}`)
	checkRefusal(t, invoke(nil, "-j", "bad.json"),
		`bad.json:1: output "xml": not one of the choices; give text or json`)
	checkRefusal(t, invoke(nil, "version", "-j", "bad.json"),
		`bad.json:1: output "xml": not one of the choices; give text or json`)
}

// Settings that only a copy reads do not keep a command from running.
func TestVariablesOfACopyDoNotConcernCommands(t *testing.T) {
	got := invoke(map[string]string{"DMA_COPY_WAIT": "never", "DMA_COPY_DRIVER": "hard"}, "version")
	checkRefusal(t, got, `DMA_COPY_DRIVER "hard": not one of the choices; give auto, doca, soft or ucx`)
}

func TestLibraryDirOfVersionFlag(t *testing.T) {
	flags := flagsOfACopy()
	environment := func(name string) (string, bool) { return "/by-variable", name == "DMA_COPY_DOCA_LIBDIR" }
	if got := option.TextOf("doca-libdir", flags, environment); got != "/by-variable" {
		t.Errorf("directory %q", got)
	}
	if err := flags.Parse([]string{"--doca-libdir", "/by-flag"}); err != nil {
		t.Fatal(err)
	}
	if got := option.TextOf("doca-libdir", flags, environment); got != "/by-flag" {
		t.Errorf("directory %q", got)
	}
}

// Flags of a command may be in front of it, with their values.
func TestFlagsInFrontOfACommand(t *testing.T) {
	for _, line := range []string{
		"--log-level 70 version --driver soft", "-l 70 -- version --driver=soft", "--driver soft version",
	} {
		got := invoke(nil, strings.Fields(line)...)
		if got.err != nil || got.ran || !strings.Contains(got.stdout, "\ndriver: ") {
			t.Errorf("%s: %v, copied %t, printed %q", line, got.err, got.ran, got.stdout)
		}
	}
}
