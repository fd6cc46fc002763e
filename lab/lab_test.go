package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/internal/bench"
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
	before, err := os.ReadFile(filepath.Join("..", "docs", benchPage))
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
		want, err := os.ReadFile(filepath.Join("..", "docs", filepath.Base(file)))
		if err != nil || string(got) != string(want) {
			t.Errorf("docs/%s differs from the records (`make bench-page` writes it): %v", filepath.Base(file), err)
		}
	}
}

func TestBlocks(t *testing.T) {
	const page = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n"
	if got, err := replaceBlock(page, "x", "new\n"); err != nil || got != strings.Replace(page, "old", "new", 1) {
		t.Errorf("%q, error %v", got, err)
	}
	if _, err := replaceBlock(page, "y", "new\n"); err == nil {
		t.Error("a page without the block is accepted")
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
