package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/lab/bench"
	"github.com/dma-copy/dma-copy/lab/contest"
)

func planOf(t *testing.T, line string) (contest.Plan, error) {
	t.Helper()
	return parsePlan(strings.Fields(line), io.Discard)
}

func TestPlans(t *testing.T) {
	p, err := planOf(t, "copy")
	if err != nil || len(p.Copies.Sizes) != 3 || !slices.Equal(p.Copies.Tools, contest.ToolNames) || p.Runs != 5 {
		t.Errorf("%+v, error %v", p.Copies, err)
	}
	p, err = planOf(t, "tree --trees deep,small --files 70 --tools none --durability full --dir there --runs 2")
	if err != nil || !slices.Equal(p.Trees.Shapes, []filetree.Shape{filetree.Deep, filetree.Small}) ||
		p.Trees.Files != 70 ||
		p.Trees.Tools != nil || p.Trees.Durability != "full" || p.Trees.Directory != "there" || p.Runs != 2 {
		t.Errorf("%+v, error %v", p.Trees, err)
	}
	p, err = planOf(t, "connected --sizes 1M --daemons host --clients 3 --directions dpu-to-host")
	if err != nil || !slices.Equal(p.Connected.Sizes, []int64{1 << 20}) || p.Connected.Clients != 3 ||
		!slices.Equal(p.Connected.Daemons, []contest.DaemonSide{contest.DaemonOnHost}) {
		t.Errorf("%+v, error %v", p.Connected, err)
	}
	p, err = planOf(t, "machines --digests crc32c,blake3")
	if err != nil || !slices.Equal(p.Machines.Paths, contest.NetworkPaths) || len(p.Machines.Digests) != 2 ||
		!slices.Equal(p.Machines.Directions, []bench.Direction{contest.Push, contest.Pull}) {
		t.Errorf("%+v, error %v", p.Machines, err)
	}
}

func TestPlansOfTheEngine(t *testing.T) {
	p, err := parseEngine([]string{"engine"}, io.Discard)
	if err != nil || p.Bytes != 1<<30 || len(p.Chunks) != 4 || !slices.Equal(p.Depths, []int{1, 4, 16, 64}) ||
		len(p.Directions) != 2 || p.Runs != 5 || p.Warmup != 1 {
		t.Errorf("%+v, error %v", p, err)
	}
	p, err = parseEngine(strings.Fields("engine --size 2M --chunks 4K,1MiB --depths 3 --directions dpu-to-host "+
		"--model bluefield3 --runs 2"), io.Discard)
	if err != nil || p.Bytes != 2<<20 || !slices.Equal(p.Chunks, []int64{4 << 10, 1 << 20}) ||
		!slices.Equal(p.Depths, []int{3}) || !slices.Equal(p.Directions, []bench.Direction{bench.DPUToHost}) ||
		p.Model != "bluefield3" || p.Runs != 2 {
		t.Errorf("%+v, error %v", p, err)
	}
	for _, line := range []string{
		"engine more", "engine --size 0", "engine --chunks 0", "engine --chunks 1M,x", "engine --chunks 1M,1024K",
		"engine --depths 0", "engine --depths 1,,2", "engine --directions up", "engine --runs 0", "engine --warmup -1",
	} {
		if _, err := parseEngine(strings.Fields(line), io.Discard); err == nil {
			t.Errorf("%s is accepted", line)
		}
	}
}

// A combination that fails is in the record, which show prints, and the others continue.
func TestEngine(t *testing.T) {
	measure := func(line string) (string, error) {
		var stdout bytes.Buffer
		err := run(t.Context(), strings.Fields(line), &stdout, io.Discard)
		if errors.Is(err, doca.ErrNoCgo) {
			t.Skip(err)
		}
		return stdout.String(), err
	}
	record, err := measure("engine --size 4MiB --chunks 64KiB,4MiB --depths 1 --directions host-to-dpu --runs 1")
	if !errors.Is(err, errSomeFailed) {
		t.Fatalf("error %v", err)
	}
	file := filepath.Join(t.TempDir(), "engine.json")
	if err := os.WriteFile(file, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := measure("show " + file)
	if err != nil || !strings.Contains(table, "\nhost-to-dpu   4 MiB   failed") ||
		!strings.Contains(table, "depth 1 failed: preparing: tasks of 4 MiB exceed the device's limit of 2 MiB\n") {
		t.Errorf("error %v:\n%s", err, table)
	}
	t.Setenv("DMA_COPY_SOFT_SIDE", "host")
	if _, err := measure("engine"); err == nil || !strings.Contains(err.Error(), "devices of both sides") {
		t.Errorf("error %v with the devices of one side", err)
	}
}

func TestRefusedPlans(t *testing.T) {
	for _, line := range []string{
		"race", "copy more", "copy --sizes x", "copy --sizes 1M,1024K", "copy --tools vi", "copy --runs 0",
		"copy --depths -1", "tree --trees wide", "connected --daemons both", "copy --directions up",
	} {
		if _, err := planOf(t, line); err == nil {
			t.Errorf("%s is accepted", line)
		}
	}
	if err := run(context.Background(), nil, io.Discard, io.Discard); err == nil {
		t.Error("a command line without a contest is accepted")
	}
}

// The pages of the repository are made from its records, and are as these say.
func TestPagesAreMadeFromTheRecords(t *testing.T) {
	docs := t.TempDir()
	before, err := os.ReadFile(filepath.Join("..", "docs", "internals", benchPage))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(docs, benchPage), before, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"page", "results", docs}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(docs, "*"))
	if err != nil || len(made) < 10 {
		t.Fatalf("made %q, error %v", made, err)
	}
	for _, file := range made {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("..", "docs", "internals", filepath.Base(file)))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s differs from the records (`make bench-page` writes it): %v", filepath.Base(file), err)
		}
	}
}

func TestReplaceSummary(t *testing.T) {
	const page = "a\n<!-- summary -->\nold\n<!-- end of summary -->\nb\n"
	if got, err := replaceSummary(page, "new\n"); err != nil || got != strings.Replace(page, "old", "new", 1) {
		t.Errorf("%q, error %v", got, err)
	}
	if _, err := replaceSummary("a\n", "new\n"); err == nil {
		t.Error("a page without a place for it is accepted")
	}
}

func TestSummary(t *testing.T) {
	records, err := readRecords("results")
	if err != nil {
		t.Fatal(err)
	}
	rows := summarize(records)
	table := summaryTable(rows)
	if len(rows) != len(summaryLines) || strings.Contains(table, " - |") {
		t.Errorf("a row without figures:\n%s", table)
	}
	bars := summaryBars(rows)
	if got, want := bars.Groups[0].Values[0], min(rows[0].ratios[0][0], rows[0].ratios[0][1]); got != want {
		t.Errorf("the bar is %v, want the slower direction %v", got, want)
	}
	if got := summaryTable(summarize(nil)); !strings.Contains(got, "| - | - |") {
		t.Errorf("without records:\n%s", got)
	}
}

// TestRecordsAreRead expects each field of the records to be known, since fields are only added.
func TestRecordsAreRead(t *testing.T) {
	paths, err := filepath.Glob("results/*.json")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d records, error %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&contest.Record{}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
