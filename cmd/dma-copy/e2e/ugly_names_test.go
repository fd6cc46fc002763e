package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestUglyNamesAreEscaped expects the results of a copy on both sides to show names so that they neither control a
// terminal nor begin a line: names are those of this side and of the peer.
func TestUglyNamesAreEscaped(t *testing.T) {
	t.Parallel()
	requireSoftwareDevice(t)
	const ugly, shown = "a\x9b2J\nok \u009b2J", `a\x9b2J\nok \u009b2J`
	for _, tree := range []bool{false, true} {
		f := newFixture(t)
		names := map[string]string{"host": filepath.Join("host", "h"+ugly), "dpu": filepath.Join("dpu", "d"+ugly)}
		content := filepath.Join(f.dir, names["host"])
		if tree {
			must(t, os.Mkdir(content, 0o700))
			content = filepath.Join(content, ugly)
		}
		must(t, os.WriteFile(content, []byte("x"), 0o600))
		sides := map[string]*process{}
		for name, device := range serviceDevices {
			p, err := startProcess(processOptions{
				name: name, dir: f.dir, argv: append(strings.Fields("dma-copy "+device), "-f", names[name]),
				environment: f.environment,
			})
			must(t, err)
			t.Cleanup(p.kill)
			sides[name] = p
		}
		for name, p := range sides {
			if code := p.exitCode(); code != exitOK {
				t.Errorf("%s: exit code %d", name, code)
			}
			printed := p.stderr.String()
			for _, want := range []string{"host/h" + shown, "dpu/d" + shown} {
				if !strings.Contains(printed, want) {
					t.Errorf("%s: %q does not show %s", name, printed, want)
				}
			}
			isControl := func(r rune) bool { return r != '\n' && unicode.IsControl(r) }
			if !utf8.ValidString(printed) || strings.ContainsFunc(printed, isControl) {
				t.Errorf("%s prints %q", name, printed)
			}
		}
	}
}
