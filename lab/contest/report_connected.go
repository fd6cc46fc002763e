package contest

import (
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/lab/bench"
)

func (c *ConnectedRecord) write(s *bench.Report) {
	files := CopyRecord{CopySetup: c.CopySetup, Results: c.Results}
	trees := TreeRecord{CopySetup: c.CopySetup, Shapes: c.Shapes, Results: c.Trees}
	s.Paragraph("Copies by a command that stays connected to a daemon, one after another:")
	s.Paragraph(files.heading())
	s.Table(files.table())
	s.List(append(files.missing(), files.failures()...))
	s.Paragraph(trees.heading())
	s.List(trees.shapes())
	s.Table(trees.table())
	s.List(trees.failures())
	if len(c.Clients) > 0 {
		s.Paragraph("Clients of one daemon at once; a ratio of 1 is the rate of one client, a share of 1 is fair:")
		s.Table(c.clientTable())
		s.List(c.clientFailures())
	}
}

var clientHead = []string{"", "copies", "GiB/s", "ratio", "slowest share", "p50", "min", "max", "CPU s/GiB"}

func (c *ConnectedRecord) clientTable() *bench.Table {
	t := &bench.Table{Head: clientHead}
	for _, r := range c.Clients {
		copies := fmt.Sprintf("%d of %s", r.Copies, bench.SizeText(r.Bytes))
		if r.Error != "" {
			t.Add(c.clientLabel(r), copies, "failed", "", "", "", "", "", "")
			continue
		}
		t.Add(c.clientLabel(r), copies, bench.RateText(r.Rate), ratioText(r.Ratio), fmt.Sprintf("%.2f", r.Slowest),
			secondsText(r.Seconds.P50), secondsText(r.Seconds.Min), secondsText(r.Seconds.Max),
			fmt.Sprintf("%.2f", r.CPUPerGiB))
	}
	return t
}

// clientLabel names a candidate, with the settings that differ within the record.
func (c *ConnectedRecord) clientLabel(r ClientsResult) string {
	all := make([]CopyResult, len(c.Clients))
	for i, other := range c.Clients {
		all[i] = other.settings()
	}
	count := fmt.Sprintf("%d clients ", r.Clients)
	if r.Clients == 1 {
		count = "1 client "
	}
	return count + strings.TrimPrefix(label(r.settings(), all), programName+" ")
}

func (r *ClientsResult) settings() CopyResult {
	return CopyResult{
		Contender: programName, Daemon: r.Daemon, Direction: r.Direction, Chunk: r.Chunk, Depth: r.Depth,
		Digest: r.Digest, Path: r.Path, Error: r.Error,
	}
}

func (c *ConnectedRecord) clientFailures() (lines []string) {
	for _, r := range c.Clients {
		if r.Error != "" {
			lines = append(lines, fmt.Sprintf("%s failed: %s", c.clientLabel(r), bench.OneLine(r.Error)))
		}
	}
	return lines
}
