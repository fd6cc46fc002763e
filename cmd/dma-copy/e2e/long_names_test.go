package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// What only the run finds out is as short, and so are the names of files in it, whether a system takes them or not.
func TestLongNamesOfARunAreCut(t *testing.T) {
	needSoftwareDevice(t)
	argument := strings.Repeat("Z", 128<<10-64)                                         // as long as one argument may be
	path := strings.Repeat("Z", 250) + strings.Repeat("/"+strings.Repeat("Z", 250), 14) // as long as a path may be
	type run struct {
		name        string
		environment []string
		args        []string
	}
	var runs []run
	for _, name := range []string{
		argument, path, argument[:255], strings.Repeat("Z ", 60<<10), "missing/" + argument[:200] + "/file",
	} {
		runs = append(runs, []run{
			{"file", nil, []string{"-f", name}},
			{"profile", nil, []string{"-f", "x", "--cpuprofile", name + "/x"}},
			{"libraries", nil, []string{"-f", "x", "--driver", "doca", "--doca-libdir", name}},
			{"parameters", nil, []string{"-j", name}},
			{"verify", nil, []string{"verify", name, "x"}},
			{"verify manifest", nil, []string{"verify", name}},
			{"verify check", nil, []string{"verify", "--check", name, "x"}},
			{"verify write", nil, []string{"verify", "--write", name + "/x", "x"}},
			{"verify nothing", nil, []string{"verify", "--write", "sums", name}},
			{"bench show", nil, []string{"bench", "show", name}},
			{"bench plot", nil, []string{"bench", "engine", "--plot", name + "/x"}},
			{"site", []string{"DMA_COPY_CONFIG=" + name}, []string{"-f", "x"}},
			{"runtime directory", []string{"DMA_COPY_SOFT_DIR=/" + name}, []string{"-f", "x"}},
			{"limits", []string{"DMA_COPY_SOFT_LIMITS=" + name}, []string{"-f", "x"}},
			{"limit", []string{"DMA_COPY_SOFT_LIMITS=max_msg_size=" + name}, []string{"-f", "x"}},
			{"side", []string{"DMA_COPY_SOFT_SIDE=" + name}, []string{"-f", "x"}},
			{"faults", []string{"DMA_COPY_SOFT_FAULTS=" + name}, []string{"-f", "x"}},
		}...)
	}
	runs = append(runs, run{"device", nil, []string{"-p", argument[:64], "-f", "x"}},
		run{"representor", nil, []string{"-p", "03:00.1", "-r", argument[:64], "-f", "x"}},
		run{"model", nil, []string{"bench", "engine", "--model", argument}})
	for _, r := range runs {
		length := len(strings.Join(append(r.args, r.environment...), ""))
		t.Run(fmt.Sprintf("%s_of_%d", r.name, length), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.put("host", 1)
			must(t, os.WriteFile(s.folder+"/x", []byte("x"), 0o600))
			p, err := launch(launching{
				name: r.name, folder: s.folder, argv: append([]string{"dma-copy"}, r.args...),
				environment: slices.Concat(s.environment, []string{"DMA_COPY_WAIT=1ms", "DMA_COPY_DRIVER="}, r.environment),
			})
			must(t, err)
			<-p.ended
			if exitCodeOf(p.command.ProcessState) == exitOK {
				t.Fatal("accepted")
			}
			line := p.stderr.String()
			if n := utf8.RuneCountInString(line); n > 1500 || strings.Count(line, "Z") > 2*quote.Longest {
				t.Errorf("%d characters: %.600s", n, line)
			}
		})
	}
}
