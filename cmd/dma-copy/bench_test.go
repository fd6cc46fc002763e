package main

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/bench"
)

// benchPlanOf returns the plan of a command line.
func benchPlanOf(t *testing.T, line string) (bench.Plan, error) {
	t.Helper()
	var s config.Bench
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	config.Declare(flags, &s)
	if err := flags.Parse(words(line)); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(flags, func(string) (string, bool) { return "", false }, &s); err != nil {
		return bench.Plan{}, err
	}
	return s.Plan(), nil
}

func TestBenchPlans(t *testing.T) {
	p, err := benchPlanOf(t, "")
	if err != nil || p.Bytes != 1<<30 || len(p.Chunks) != 4 || !slices.Equal(p.Depths, []int{1, 4, 16, 64}) ||
		len(p.Directions) != 2 || p.Runs != 5 || p.Warmup != 1 {
		t.Errorf("%+v, error %v", p, err)
	}
	p, err = benchPlanOf(t,
		"--size 2M --chunks 4K,1MiB --depths 3 --directions dpu-to-host --model bluefield3 --runs 2")
	if err != nil || p.Bytes != 2<<20 || !slices.Equal(p.Chunks, []int64{4 << 10, 1 << 20}) ||
		p.Model != "bluefield3" ||
		!slices.Equal(p.Depths, []int{3}) || !slices.Equal(p.Directions, []bench.Direction{bench.DPUToHost}) ||
		p.Runs != 2 {
		t.Errorf("%+v, error %v", p, err)
	}
}

func TestRefusedBenches(t *testing.T) {
	cases := []struct{ line, sentence string }{
		{"--size 0", `--size "0": nothing to measure; give a size such as 2MiB`},
		{"--chunks 0", `--chunks "0": "0": nothing to measure; give a size such as 2MiB`},
		{"--chunks 1M,x", `--chunks "1M,x": "x": not a size; give whole bytes such as 1048576, 512MiB or 2G`},
		{"--chunks 1M,1024K", `--chunks "1M,1024K": "1024K" is given twice; leave one out`},
		{"--depths 0", `--depths "0": "0": give a whole number from 1 to 2147483647`},
		{"--depths 1,,2", `--depths "1,,2": "": give a whole number from 1 to 2147483647`},
		{"--directions up", `--directions "up": "up": not one of the choices; give host-to-dpu or dpu-to-host`},
		{"--runs 0", `--runs "0": give a whole number from 1 to 1000`},
		{"--warmup -1", `--warmup "-1": give a whole number from 0 to 1000`},
		{"--model a=1,b", `--model "a=1,b": not a model; give a name such as bluefield3`},
	}
	for _, tc := range cases {
		if _, err := benchPlanOf(t, tc.line); err == nil || err.Error() != tc.sentence ||
			report.ExitCode(err) != exit.Usage {
			t.Errorf("%s: error\n %v\nwant\n %s", tc.line, err, tc.sentence)
		}
	}
}

// The command runs, but is not among those of the help.
func TestBenchIsNotListed(t *testing.T) {
	if slices.Contains(names(commands()), benchName) {
		t.Error("it is listed")
	}
	if got := invoke(nil, "bench", "--help"); got.err != nil || got.ran || got.stdout == "" {
		t.Errorf("error %v, ran a copy: %t, stdout %q", got.err, got.ran, got.stdout)
	}
}
