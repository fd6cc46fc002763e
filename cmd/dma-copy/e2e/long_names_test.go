package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// longestQuote is how many characters of a name an error shows.
const longestQuote = 80

// longRun is a run that is given a name which is too long.
type longRun struct {
	name        string
	environment []string
	args        []string
}

// longRunsWith returns a run for each place in which a name of a file can be given.
func longRunsWith(name string) []longRun {
	copyX := []string{"-f", "x"}
	return []longRun{
		{"file", nil, []string{"-f", name}},
		{"profile", nil, []string{"-f", "x", "--cpuprofile", name + "/x"}},
		{"libraries", nil, []string{"-f", "x", "--driver", "doca", "--doca-libdir", name}},
		{"parameters", nil, []string{"-j", name}},
		{"verify", nil, []string{"verify", name, "x"}},
		{"verify manifest", nil, []string{"verify", name}},
		{"verify check", nil, []string{"verify", "--check", name, "x"}},
		{"verify write", nil, []string{"verify", "--write", name + "/x", "x"}},
		{"verify nothing", nil, []string{"verify", "--write", "sums", name}},
		{"site", []string{"DMA_COPY_CONFIG=" + name}, copyX},
		{"runtime directory", []string{"DMA_COPY_SOFT_DIR=/" + name}, copyX},
		{"limits", []string{"DMA_COPY_SOFT_LIMITS=" + name}, copyX},
		{"limit", []string{"DMA_COPY_SOFT_LIMITS=max_msg_size=" + name}, copyX},
		{"side", []string{"DMA_COPY_SOFT_SIDE=" + name}, copyX},
		{"faults", []string{"DMA_COPY_SOFT_FAULTS=" + name}, copyX},
	}
}

// TestLongNamesAreCut expects errors that only a run finds to show at most part of a long name, whether the system
// accepts such a name or not.
func TestLongNamesAreCut(t *testing.T) {
	t.Parallel()
	requireSoftwareDevice(t)
	const maxArgument, maxPath = 128<<10 - 64, 4096 // bytes, nearly
	argument := strings.Repeat("Z", maxArgument)
	path := strings.Repeat(strings.Repeat("Z", 250)+"/", maxPath/251-1) + strings.Repeat("Z", 250)
	runs := []longRun{
		{"device", nil, []string{"-p", argument[:64], "-f", "x"}},
		{"representor", nil, []string{"-p", "03:00.1", "-r", argument[:64], "-f", "x"}},
	}
	for _, name := range []string{
		argument, path, argument[:255], strings.Repeat("Z ", 60<<10), "missing/" + argument[:200] + "/file",
	} {
		runs = append(runs, longRunsWith(name)...)
	}
	for _, r := range runs {
		length := len(strings.Join(append(r.args, r.environment...), ""))
		t.Run(fmt.Sprintf("%s_of_%d", r.name, length), func(t *testing.T) {
			t.Parallel()
			r.test(newFixture(t))
		})
	}
}

func (r longRun) test(f *fixture) {
	f.createFile("host", 1)
	must(f.t, os.WriteFile(f.dir+"/x", []byte("x"), 0o600))
	p, err := startProcess(processOptions{
		name: r.name, dir: f.dir, argv: append([]string{"dma-copy"}, r.args...),
		environment: slices.Concat(f.environment, []string{"DMA_COPY_WAIT=1ms", "DMA_COPY_DRIVER="}, r.environment),
	})
	must(f.t, err)
	if p.exitCode() == exitOK {
		f.t.Fatal("accepted")
	}
	printed := p.stderr.String()
	if n := utf8.RuneCountInString(printed); n > 1500 || strings.Count(printed, "Z") > 2*longestQuote {
		f.t.Errorf("%d characters: %.600s", n, printed)
	}
}
