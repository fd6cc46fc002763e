package contest

import (
	"fmt"

	"github.com/dma-copy/dma-copy/lab/bench"
)

func (m *MachinesRecord) write(s *bench.Report) {
	files := CopyRecord{CopySetup: m.CopySetup, Results: m.copies()}
	trees := TreeRecord{CopySetup: m.CopySetup, Shapes: m.Shapes, Results: m.Trees}
	s.Paragraph(fmt.Sprintf("Copies over network connections within this machine, on %s, durability %s; "+
		"a ratio of 2 is twice as fast as that tool:", m.FileSystem, m.Durability))
	s.Table(m.table())
	s.List(append(files.missing(), files.failures()...))
	s.Paragraph(trees.heading())
	s.List(trees.shapes())
	s.Table(trees.table())
	s.List(trees.failures())
}

var networkHead = []string{
	"", "network", "size", "GiB/s", "to cp", "to rsync daemon", "to iperf3", "to socat openssl", "of limit",
	"p50", "min", "max", "copy only", "CPU s/GiB",
}

func (m *MachinesRecord) table() *bench.Table {
	t := &bench.Table{Head: networkHead}
	for _, r := range m.Results {
		cells := []string{label(r.CopyResult, m.copies()), r.network(), bench.SizeText(r.Bytes), "failed"}
		if r.Error == "" {
			cells = append(cells[:3], r.cells()...)
		}
		t.Add(append(cells, make([]string, len(networkHead)-len(cells))...)...)
	}
	return t
}

// cells are those behind the label, the network and the size.
func (r *NetworkResult) cells() []string {
	return []string{
		bench.RateText(r.Rate), ratioText(r.Ratio), ratioText(r.Ratios[candidateRsyncDaemon]),
		ratioText(r.Ratios[toolIperf]),
		ratioText(r.Ratios[candidateSocatTLS]), r.ofLimit(),
		secondsText(r.Seconds.P50), secondsText(r.Seconds.Min), secondsText(r.Seconds.Max), median(r.CopySeconds),
		fmt.Sprintf("%.2f", r.CPUPerGiB),
	}
}

// ofLimit is the share of the limit, which encrypts nothing.
func (r *NetworkResult) ofLimit() string {
	if r.Network != networkTCP || r.Encrypted || r.NoFiles {
		return ""
	}
	return ratioText(r.LimitRatio)
}

// network describes how the bytes moved.
func (r *NetworkResult) network() string {
	text := r.Network
	if r.Encrypted {
		text += ", encrypted"
	}
	if r.NoFiles {
		text += ", no files"
	}
	return text
}

func (m *MachinesRecord) copies() []CopyResult {
	all := make([]CopyResult, len(m.Results))
	for i, r := range m.Results {
		all[i] = r.CopyResult
	}
	return all
}
