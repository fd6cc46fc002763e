package contest

import (
	"fmt"

	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/lab/bench"
)

func (t *TreeRecord) heading() string {
	return fmt.Sprintf("Trees on %s, durability %s%s; a ratio of 2 is twice as fast; "+
		"a copy \"again\" finds nothing changed:", t.FileSystem, t.Durability, t.flushNote())
}

func (t *TreeRecord) shapes() (lines []string) {
	for _, s := range t.Shapes {
		lines = append(lines, fmt.Sprintf("%s: %s, %s, %s, %s",
			s.Shape, quantity.Count(s.Files, "file"), quantity.Count(s.Directories, "directory"),
			quantity.Count(s.Symlinks, "symlink"), bench.SizeText(s.Bytes)))
	}
	return lines
}

var treeHead = []string{
	"", "tree", "files/s", "p50", "p25", "p75", "to cp -r", "to rsync -a", "copy only", "copy to cp -r",
	"copy to rsync -a", "first byte", "CPU",
}

func (t *TreeRecord) table() *bench.Table {
	table := &bench.Table{Head: treeHead}
	for _, result := range t.Results {
		cells := []string{t.label(result), string(result.Shape), "failed"}
		if result.Error == "" {
			cells = append(cells[:2], result.cells()...)
		}
		table.Add(append(cells, make([]string, len(treeHead)-len(cells))...)...)
	}
	return table
}

// cells are those behind the label and the shape.
func (r *TreeResult) cells() []string {
	return []string{
		fmt.Sprintf("%.0f", r.FilesPerSecond),
		secondsText(r.Seconds.P50), secondsText(r.Seconds.P25), secondsText(r.Seconds.P75),
		ratioText(r.Ratio), ratioText(r.RsyncRatio),
		median(r.CopySeconds), ratioText(r.CopyRatio), ratioText(r.RsyncCopyRatio),
		median(r.FirstByte), secondsText(r.CPU),
	}
}

// toolLabels are the tools with the flags that make them copy trees.
var toolLabels = map[string]string{
	toolCp: "cp -r", toolRsync: "rsync -a", toolTar: "tar to tar", candidateRsyncDaemon: "rsync -a, daemon",
}

// label names a candidate, with the settings that differ within the record.
func (t *TreeRecord) label(r TreeResult) string {
	all := make([]CopyResult, len(t.Results))
	for i, result := range t.Results {
		all[i] = result.CopyResult
	}
	text := label(r.CopyResult, all)
	if known, is := toolLabels[text]; is {
		text = known
	}
	if r.Repeated {
		text += " again"
	}
	return text
}

func (t *TreeRecord) failures() (lines []string) {
	for _, r := range t.Results {
		if r.Error != "" {
			lines = append(lines, fmt.Sprintf("%s, %s failed: %s", t.label(r), r.Shape, bench.OneLine(r.Error)))
		}
	}
	return lines
}
