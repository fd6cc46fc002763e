package contest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// limitProgram copies a file as fast as two processes with a window between them can, or with TCP connections: without
// negotiation, a journal or a rename. `make limit` builds it from lab/limit/limit.c.
const limitProgram = "dma-copy-limit"

// findLimit returns the path of limitProgram, beside this executable or in PATH, or an empty string if there is none.
func findLimit() string {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), limitProgram)); err == nil {
			return path
		}
	}
	path, err := exec.LookPath(limitProgram)
	if err != nil {
		return ""
	}
	return path
}

// limitStages returns the command line of the limit that copies the source to the target.
func (w *workspace) limitStages(flags ...string) [][]child {
	return [][]child{{{
		path: findLimit(), argv: slices.Concat([]string{limitProgram}, flags, []string{w.source(), w.target()}),
	}}}
}

// setLimitRatios sets the ratios to the limit if that is among the results and has not failed.
func setLimitRatios(results []CopyResult) {
	for _, limit := range results {
		if limit.Contender != toolLimit {
			continue
		}
		for i := range results {
			r := &results[i]
			r.LimitRatio, r.LimitCopyRatio = r.ratiosTo(limit)
		}
	}
}
