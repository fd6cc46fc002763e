package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/report/reporttest"
)

// DOCA's guides put two dashes in front of a program's flags. What follows is still parsed as flags.
func TestTwoDashesAmongTheFlagsOfACopy(t *testing.T) {
	for _, line := range []string{
		"-- -p b1:00.1 -f x", "-p b1:00.1 -- -f x", "-p b1:00.1 -f x --", "-- -- -p b1:00.1 -f x",
		"--pci-addr b1:00.1 -- --file=x",
	} {
		got, want := mustRun(t, nil, words(line)...), mustRun(t, nil, "-p", "b1:00.1", "-f", "x")
		if !reflect.DeepEqual(got, want) || got.Device != "b1:00.1" || got.File != "x" {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

// Two dashes as the value of a flag are no separator.
func TestTwoDashesAsAValue(t *testing.T) {
	for _, line := range []string{"-f --", "--file --", "--file=--", "-f=--", "-- -f --", "-f -- --"} {
		if got := mustRun(t, nil, words(line)...); got.File != "--" {
			t.Errorf("%s: file %q", line, got.File)
		}
	}
}

// Separators are removed in front of the name of a command. Behind it they end its flags, as usual.
func TestTwoDashesAndCommands(t *testing.T) {
	want := invoke(nil, "devices", "--help").stdout
	if got := invoke(nil, "--", "devices", "--help"); got.err != nil || got.stdout != want {
		t.Errorf("error %v, printed %s", got.err, got.stdout)
	}
	const refused = `unexpected argument "-p": dma-copy devices takes flags only`
	checkRefusal(t, invoke(nil, "devices", "--", "-p"), refused)
	checkRefusal(t, invoke(nil, "--", "devices", "--", "-p"), refused)
}

// With -o json a refused command line is an event, too, wherever on the command line -o json is.
func TestRefusalsAreEvents(t *testing.T) {
	inNewDir(t, "bad.json", `{"doca_program_flags": {"output": "json", "wiat": "1s"}}`)
	writeFile(t, "form.json", `{"doca_program_flags": {"output": "json"}}`)
	variables := map[string]string{"DMA_COPY_OUTPUT": "json"}
	cases := []struct {
		name, line string
		variables  map[string]string
	}{
		{"unknown flag", "-o json --bad -f x", nil},
		{"behind the unknown flag", "--bad -f x --output=json", nil},
		{"behind an unknown letter", "-Z -ojson", nil},
		{"behind what is no flag", "---x -o json", nil},
		{"behind two dashes", "-- --bad -o json", nil},
		{"no file", "-o json", nil},
		{"argument", "-o json -f x y", nil},
		{"behind the argument", "-f x y -o json", nil},
		{"mistyped command", "helo -o json", nil},
		{"value missing", "-o json -f", nil},
		{"bad value", "--depth many -f x -o json", nil},
		{"two devices", "-p a -d b -f x -o json", nil},
		{"flags that contradict each other", "-f x --role host -r b1:00.1 -o json", nil},
		{"no parameter file", "-o json -j no.json", nil},
		{"bad parameter file", "-j bad.json", nil},
		{"by the parameter file", "-j form.json --bad", nil},
		{"by the variable", "--bad", variables},
		{"by the variable, no file", "", variables},
		{"local, unknown flag", "local -o json --bad a b", nil},
		{"local, behind the unknown flag", "local --wait 3s a b -ojson", nil},
		{"local, bad value", "local --depth many a b -o json", nil},
		{"local, bad parameter file", "local -j bad.json a b", nil},
		{"local, arguments", "local -o json a", nil},
		{"local, by the variable", "local a --dry-run", variables},
		{"ping, unknown flag", "ping -o json --bad", nil},
		{"ping, behind the unknown flag", "ping --bad -ojson", nil},
		{"ping, bad value", "ping --count 0 -o json", nil},
		{"ping, bad parameter file", "ping -j bad.json", nil},
		{"ping, argument", "ping -o json x y", nil},
		{"ping, behind the argument", "ping x y -o json", nil},
		{"push, unknown flag", "push a :in --bad -o json", nil},
		{"push, arguments", "push -o json a", nil},
		{"pull, bad value", "pull :in/a --depth many b -o json", nil},
		{"sync, settings that contradict each other", "sync -o json --max-delete 3 a :in", nil},
		{"sync, bad parameter file", "sync -j bad.json a :in", nil},
		{"ls, unknown flag", "ls --bad : -o json", nil},
		{"ls, unknown peer", "ls -o json dpu:", nil},
		{"ls, by the variable", "ls", variables},
		{"ping, by the variable", "ping --count 0", variables},
		{"bad variable", "-f x", map[string]string{"DMA_COPY_OUTPUT": "json", "DMA_COPY_DEPTH": "many"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := invoke(tc.variables, words(tc.line)...)
			if got.err == nil || got.ran || got.stderr != "" {
				t.Fatalf("error %v, ran %t, stderr %q", got.err, got.ran, got.stderr)
			}
			event, err := decodeErrorEvent(got.stdout)
			if err != nil {
				t.Fatalf("printed %q: %v", got.stdout, err)
			}
			if event.Code != exit.Usage || event.Message != got.err.Error() {
				t.Errorf("printed %s for %v", got.stdout, got.err)
			}
		})
	}
}

// With text output, and for commands without events, a refusal is no event. It must not get into a stream's data
// either.
func TestRefusalsWithoutEvents(t *testing.T) {
	for _, line := range []string{
		"--bad -o text", "--bad -o xml", "-o json -o text --bad", "devices -o json --bad", "devices -o json x",
		"-f -ojson --bad",
	} {
		if got := invoke(nil, words(line)...); got.err == nil || got.stdout != "" || got.stderr != "" {
			t.Errorf("%s: error %v, printed %q and %q", line, got.err, got.stdout, got.stderr)
		}
	}
	got := invoke(nil, "-f", "-", "-o", "json", "--bad")
	if _, err := decodeErrorEvent(got.stderr); err != nil || got.stdout != "" {
		t.Errorf("printed %q and %q: %v", got.stdout, got.stderr, err)
	}
}

// checkEvent validates an event and returns its type.
var checkEvent = reporttest.EventChecker("../../docs/events.schema.json")

// errorEvent has the fields of an event of the type error that the tests read.
type errorEvent struct {
	Type    string
	Code    int
	Message string
}

// decodeErrorEvent decodes what was printed, which must be one event of the type error and match the schema.
func decodeErrorEvent(printed string) (errorEvent, error) {
	var event errorEvent
	if _, err := checkEvent(printed); err != nil {
		return event, err
	}
	if err := json.Unmarshal([]byte(printed), &event); err != nil {
		return event, err
	}
	if event.Type != "error" {
		return event, fmt.Errorf("an event of the type %q", event.Type)
	}
	return event, nil
}
