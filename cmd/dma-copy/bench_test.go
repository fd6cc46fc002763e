package main

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/bench"
	"github.com/dma-copy/dma-copy/internal/filetree"
)

// benchPlanOf returns the plan of a command line.
func benchPlanOf(t *testing.T, line string) (bench.Plan, error) {
	t.Helper()
	args := words(line)
	var s config.Bench
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	config.Declare(flags, &s)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(flags, func(string) (string, bool) { return "", false }, &s)
	if err != nil {
		return bench.Plan{}, err
	}
	return benchPlan(s, flags.Args())
}

func TestBenchPlans(t *testing.T) {
	both, err := benchPlanOf(t, "")
	if err != nil || both.Copies == nil || both.Engine == nil || both.Runs != 5 || both.Warmup != 1 {
		t.Fatalf("%+v, error %v", both, err)
	}
	if c := both.Copies; c.Durability != "none" || !slices.Equal(c.Tools, bench.ToolNames) || both.Trees != nil ||
		!slices.Equal(c.Digests, []string{"crc32c"}) || !slices.Equal(c.Paths, []string{"auto"}) ||
		len(c.Directions) != 2 {
		t.Errorf("copies %+v", c)
	}
	copies, err := benchPlanOf(t,
		"copy --sizes 1K,2G --chunks 0,64KiB --paths dma,fast --tools none --durability full "+
			"--directions dpu-to-host --dir there")
	if err != nil || copies.Engine != nil {
		t.Fatalf("%+v, error %v", copies, err)
	}
	if c := copies.Copies; !slices.Equal(c.Sizes, []int64{1 << 10, 2 << 30}) ||
		!slices.Equal(c.Chunks, []int64{0, 64 << 10}) ||
		len(c.Tools) != 0 || !slices.Equal(c.Paths, []string{"dma", "fast"}) || c.Durability != "full" ||
		!slices.Equal(c.Directions, []bench.Direction{bench.DPUToHost}) || c.Directory != "there" {
		t.Errorf("copies %+v", c)
	}
	trees, err := benchPlanOf(t, "tree --trees deep,small --files 70 --tools rsync,tar --digests none --dir there")
	if err != nil || trees.Copies != nil || trees.Engine != nil {
		t.Fatalf("%+v, error %v", trees, err)
	}
	if p := trees.Trees; !slices.Equal(p.Shapes, []filetree.Shape{filetree.Deep, filetree.Small}) || p.Files != 70 ||
		!slices.Equal(p.Tools, []string{"rsync", "tar"}) || !slices.Equal(p.Digests, []string{"none"}) ||
		len(p.Chunks) != 1 || len(p.Directions) != 2 || p.Directory != "there" {
		t.Errorf("trees %+v", p)
	}
	connected, err := benchPlanOf(t, "connected --sizes 1M --files 50 --daemons host --clients 3")
	if err != nil || connected.Copies != nil || connected.Trees != nil || connected.Engine != nil {
		t.Fatalf("%+v, error %v", connected, err)
	}
	if p := connected.Connected; !slices.Equal(p.Sizes, []int64{1 << 20}) || p.Files != 50 || p.Clients != 3 ||
		!slices.Equal(p.Daemons, []bench.DaemonSide{bench.DaemonOnHost}) || len(p.Directions) != 2 ||
		p.Placement == nil {
		t.Errorf("connected %+v", p)
	}
	if p, err := benchPlanOf(t, "connected"); err != nil || p.Connected.Clients != 16 ||
		len(p.Connected.Daemons) != 2 ||
		len(p.Connected.Sizes) != 3 {
		t.Errorf("%+v, error %v", p.Connected, err)
	}
	all, err := benchPlanOf(t, "tree")
	if err != nil || !slices.Equal(all.Trees.Shapes, filetree.Shapes) || all.Trees.Files != 0 {
		t.Errorf("%+v, error %v", all.Trees, err)
	}
	engine, err := benchPlanOf(t, "engine --sizes 2M,1M --depths 3 --model bluefield3")
	if err != nil || engine.Copies != nil || engine.Engine.Bytes != 2<<20 ||
		!slices.Equal(engine.Engine.Depths, []int{3}) || engine.Model != "bluefield3" {
		t.Errorf("%+v, error %v", engine.Engine, err)
	}
}

func TestRefusedBenches(t *testing.T) {
	cases := []struct{ line, sentence string }{
		{"--sizes 0", `--sizes "0": "0" is nothing to measure; give a size such as 2MiB`},
		{"--sizes 1M,x", `--sizes "1M,x": "x" is not a size; give whole bytes such as 1048576, 512MiB or 4G`},
		{"--sizes 1M,1024K", `--sizes "1M,1024K": "1024K" is given twice; leave one out`},
		{"--depths 1,,2", `--depths "1,,2": "" is not a count; give a whole number such as 16, or 0 for the ` +
			`device's choice`},
		{"--directions up", `--directions "up": "up" is not one of the choices; give host-to-dpu or dpu-to-host`},
		{
			"--tools vi",
			`--tools "vi": "vi" is not one of the choices; ` +
				`give cp, rsync, dd, socat, tar, limit, iperf3 or ucx_perftest`,
		},
		{"tree --trees wide", `--trees "wide": "wide" is not one of the choices; give small, source, deep or huge-dir`},
		{"tree --files x", `--files "x": not a number of files; give 1 to 1000000, or 0 for that of each tree`},
		{"tree --files 1000001",
			`--files "1000001": not a number of files; give 1 to 1000000, or 0 for that of each tree`},
		{"connected --clients 64",
			`--clients "64": not a number of clients; give 1 to 63, or 0 to leave them out`},
		{"connected --daemons both", `--daemons "both": "both" is not one of the choices; give dpu or host`},
		{"--runs 0", `--runs "0": not a number of rounds; give 1 to 1000`},
		{"--warmup -1", `--warmup "-1": not a number of rounds; give 0 to 1000`},
		{"--model a=1,b", `--model "a=1,b": not a model; give a name such as bluefield3`},
		{"engine --chunks 0", "--chunks 0 is for copies only: give the engine's task sizes, or name bench copy"},
		{"copy engine",
			`unexpected argument "engine": ` +
				`dma-copy bench takes copy, tree, connected, machines, engine, show RECORD or nothing`},
	}
	for _, tc := range cases {
		if _, err := benchPlanOf(t, tc.line); err == nil || err.Error() != tc.sentence ||
			report.ExitCode(err) != exit.Usage {
			t.Errorf("%s: error\n %v\nwant\n %s", tc.line, err, tc.sentence)
		}
	}
}
