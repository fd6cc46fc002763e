package verify

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/fileio"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// meter counts what a run has read. Safe for concurrent use.
type meter struct {
	began time.Time
	files atomic.Int64 // that are read
	bytes atomic.Int64

	filesTotal, bytesTotal atomic.Int64 // 0: not known
}

// meteredSource is a source whose bytes are counted, and whose errors are explained.
type meteredSource struct {
	source *fileio.Source
	meter  *meter
}

// Read implements io.Reader.
func (s meteredSource) Read(p []byte) (int, error) {
	n, err := s.source.File.Read(p)
	s.meter.bytes.Add(int64(n))
	if err != nil && err != io.EOF {
		err = s.source.Failed(err)
	}
	return n, err
}

// progressLine says how far a run is, as a JSON line.
type progressLine struct {
	lineHeader
	Files      int64   `json:"files"`
	FilesTotal int64   `json:"files_total,omitempty"`
	Bytes      int64   `json:"bytes"`
	BytesTotal int64   `json:"bytes_total,omitempty"`
	Rate       float64 `json:"bytes_per_second"`
	Elapsed    float64 `json:"elapsed_seconds"`
}

// progress returns how far the run is now.
func (m *meter) progress() progressLine {
	elapsed := max(time.Since(m.began), time.Millisecond).Seconds()
	bytes := m.bytes.Load()
	return progressLine{
		lineHeader: lineHeader{linesVersion, "progress"},
		Files:      m.files.Load(), FilesTotal: m.filesTotal.Load(), Bytes: bytes, BytesTotal: m.bytesTotal.Load(),
		Rate: float64(bytes) / elapsed, Elapsed: elapsed,
	}
}

// text returns the line for the user. The bytes of all files are known only if two files are compared.
func (p progressLine) text() string {
	rate := quantity.Bytes(uint64(p.Rate)) + "/s"
	bytes := quantity.Bytes(uint64(p.Bytes))
	switch {
	case p.BytesTotal > 0:
		done := float64(min(p.Bytes, p.BytesTotal)) / float64(p.BytesTotal)
		text := fmt.Sprintf("%d%%  %s/%s  %s", int(100*done), bytes, quantity.Bytes(uint64(p.BytesTotal)), rate)
		if p.Rate > 0 {
			text += "  ETA " + quantity.Remaining(max(p.BytesTotal-p.Bytes, 0), p.Rate)
		}
		return text
	case p.FilesTotal > 0:
		return fmt.Sprintf("%d%%  %d/%d files  %s  %s", 100*p.Files/p.FilesTotal, p.Files, p.FilesTotal, bytes, rate)
	default:
		return fmt.Sprintf("%s  %s  %s", quantity.Count(p.Files, "file"), bytes, rate)
	}
}

// printProgress prints how far the run is, as text on stderr or as a JSON line. It ignores errors: the results matter,
// not the progress.
func (v verifier) printProgress() {
	if v.settings.Output == option.OutputJSON {
		_ = writeLine(v.stdout, v.meter.progress())
		return
	}
	fmt.Fprintln(v.stderr, v.meter.progress().text())
}

// lockedWriter lets the results and the progress share an output.
type lockedWriter struct {
	mu *sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
