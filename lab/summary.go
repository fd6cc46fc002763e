package main

import (
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/lab/bench"
	"github.com/dma-copy/dma-copy/lab/contest"
	"github.com/dma-copy/dma-copy/lab/plot"
)

// fileSystems are the columns of the summary, with the ends of the names of their records.
var fileSystems = []struct{ name, record string }{{"ext4", "disk"}, {"tmpfs", "memory"}}

// A summaryRow has the ratios of one kind of copy on each file system: two for the two directions, or one.
type summaryRow struct {
	text   string
	ratios [2][]float64
}

// A summaryLine says which ratios of which results are a row.
type summaryLine struct {
	text   string
	record string // the beginning of its name
	ratios func(*contest.Record) []float64
}

const mebibyte = 1 << 20

var summaryLines = []summaryLine{
	{"2 MiB, a process started on each side", "", pairs(2 * mebibyte)},
	{"64 MiB, a process started on each side", "", pairs(64 * mebibyte)},
	{"1 GiB, a process started on each side", "", pairs(1024 * mebibyte)},
	{"2 MiB, connected to a daemon", "connected-", connected(2*mebibyte, "crc32c")},
	{"64 MiB, connected to a daemon", "connected-", connected(64*mebibyte, "crc32c")},
	{"1 GiB, connected to a daemon", "connected-", connected(1024*mebibyte, "crc32c")},
	{"1 GiB, connected, `blake3`", "connected-", connected(1024*mebibyte, "blake3")},
	{"1 GiB, `rsync`", "connected-", func(r *contest.Record) []float64 {
		return ratiosOf(r.Connected.Results, func(c contest.CopyResult) bool {
			return c.Contender == "rsync" && c.Bytes == 1024*mebibyte
		}, toCp)
	}},
	{"10,000 small files, connected, to `cp -r`", "connected-", smallFiles(false, treeToCp)},
	{"the same, to `rsync -a`", "connected-", smallFiles(false, treeToRsync)},
	{"the same again, nothing changed, to `rsync -a`", "connected-", smallFiles(true, treeToRsync)},
	{"1 GiB over TCP without encryption, to `iperf3`", "machines-", overNetwork("tcp", "iperf3")},
	{"1 GiB over TLS, to `socat` with OpenSSL", "machines-", overNetwork("tls", "socat openssl")},
	{"1 GiB, share of the limit, connected", "connected-", func(r *contest.Record) []float64 {
		return ratiosOf(r.Connected.Results, isConnected(1024*mebibyte, "crc32c"),
			func(c contest.CopyResult) float64 { return c.LimitRatio })
	}},
}

func toCp(c contest.CopyResult) float64        { return c.Ratio }
func treeToCp(t contest.TreeResult) float64    { return t.Ratio }
func treeToRsync(t contest.TreeResult) float64 { return t.RsyncRatio }

// pairs are the copies of a file of that size by two processes. Of several settings the fastest counts.
func pairs(size int64) func(*contest.Record) []float64 {
	return func(r *contest.Record) (ratios []float64) {
		for _, direction := range []bench.Direction{bench.HostToDPU, bench.DPUToHost} {
			best := 0.0
			for _, c := range r.Copies.Results {
				if c.Bytes == size && c.Direction == direction {
					best = max(best, c.Ratio)
				}
			}
			ratios = append(ratios, best)
		}
		return ratios
	}
}

func isConnected(size int64, digest string) func(contest.CopyResult) bool {
	return func(c contest.CopyResult) bool {
		return c.Bytes == size && c.Daemon == contest.DaemonOnDPU && c.Digest == digest
	}
}

func connected(size int64, digest string) func(*contest.Record) []float64 {
	return func(r *contest.Record) []float64 {
		return ratiosOf(r.Connected.Results, isConnected(size, digest), toCp)
	}
}

func smallFiles(repeated bool, ratio func(contest.TreeResult) float64) func(*contest.Record) []float64 {
	return func(r *contest.Record) []float64 {
		return ratiosOf(r.Connected.Trees, func(t contest.TreeResult) bool {
			return t.Shape == filetree.Small && t.Repeated == repeated && t.Daemon == contest.DaemonOnDPU &&
				t.Digest == "crc32c"
		}, ratio)
	}
}

func overNetwork(path, tool string) func(*contest.Record) []float64 {
	return func(r *contest.Record) []float64 {
		return ratiosOf(r.Machines.Results, func(n contest.NetworkResult) bool {
			return n.Bytes == 1024*mebibyte && n.Path == path && n.Digest == "crc32c"
		}, func(n contest.NetworkResult) float64 { return n.Ratios[tool] })
	}
}

// ratiosOf returns the ratios of those results that match.
func ratiosOf[R any](results []R, matches func(R) bool, ratio func(R) float64) (ratios []float64) {
	for _, result := range results {
		if matches(result) {
			ratios = append(ratios, ratio(result))
		}
	}
	return ratios
}

// summarize returns the rows of those records that there are.
func summarize(records map[string]*contest.Record) (rows []summaryRow) {
	for _, line := range summaryLines {
		row := summaryRow{text: line.text}
		for i, system := range fileSystems {
			if record := records[line.record+system.record]; record != nil {
				row.ratios[i] = line.ratios(record)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func summaryTable(rows []summaryRow) string {
	var text strings.Builder
	text.WriteString("| Copy |")
	for _, system := range fileSystems {
		text.WriteString(" " + system.name + " |")
	}
	text.WriteString("\n|---" + strings.Repeat("|---:", len(fileSystems)) + "|\n")
	for _, row := range rows {
		fmt.Fprintf(&text, "| %s |", row.text)
		for _, ratios := range row.ratios {
			var cells []string
			for _, ratio := range ratios {
				cells = append(cells, fmt.Sprintf("%.2f", ratio))
			}
			if cells == nil {
				cells = []string{"-"}
			}
			fmt.Fprintf(&text, " %s |", strings.Join(cells, ", "))
		}
		text.WriteString("\n")
	}
	return text.String()
}

// summaryBars draws the rows, the slower direction of each.
func summaryBars(rows []summaryRow) plot.Bars {
	bars := plot.Bars{Title: "Times as fast as cp, or as the tool that is named; the slower direction", Mark: 1}
	for _, system := range fileSystems {
		bars.Series = append(bars.Series, system.name)
	}
	for _, row := range rows {
		group := plot.Group{Name: strings.ReplaceAll(row.text, "`", "")}
		for _, ratios := range row.ratios {
			least := 0.0
			for i, ratio := range ratios {
				if i == 0 || ratio < least {
					least = ratio
				}
			}
			group.Values = append(group.Values, least)
		}
		bars.Groups = append(bars.Groups, group)
	}
	return bars
}
