package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dma-copy/dma-copy/lab/bench"
	"github.com/dma-copy/dma-copy/lab/contest"
)

const (
	benchPage    = "BENCHMARKS.md"
	summaryBlock = "summary"
	summaryChart = "bench-summary.svg"
)

// writePages writes the tables of all records between their markers in the page, the summary, and the drawings.
func writePages(results, docs string) error {
	records, err := readRecords(results)
	if err != nil {
		return err
	}
	path := filepath.Join(docs, benchPage)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page := string(text)
	for name, record := range records {
		var block bytes.Buffer
		if err := record.Write(&block, bench.Markdown); err != nil {
			return err
		}
		drawn, err := writePlot(record, filepath.Join(docs, "bench-"+name+".svg"))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if drawn {
			fmt.Fprintf(&block, "\n![%s](bench-%s.svg)\n", name, name)
		}
		if page, err = replaceBlock(page, name, block.String()); err != nil {
			return err
		}
	}
	rows := summarize(records)
	if page, err = replaceBlock(page, summaryBlock, summaryTable(rows)); err != nil {
		return err
	}
	var chart bytes.Buffer
	if err := summaryBars(rows).Write(&chart); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(docs, summaryChart), chart.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(page), 0o644)
}

// readRecords returns the records of a directory by their names.
func readRecords(directory string) (map[string]*contest.Record, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("%s has no records", directory))
	}
	records := map[string]*contest.Record{}
	for _, file := range files {
		record, err := readRecord(file)
		if err != nil {
			return nil, err
		}
		records[strings.TrimSuffix(filepath.Base(file), ".json")] = record
	}
	return records, nil
}

// writePlot draws a record if there is something to draw.
func writePlot(record *contest.Record, path string) (drawn bool, err error) {
	var plot bytes.Buffer
	if err := record.Plot(&plot); errors.Is(err, contest.ErrNothingToPlot) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, os.WriteFile(path, plot.Bytes(), 0o644)
}

// replaceBlock replaces what is between the two marker lines of a block.
func replaceBlock(page, name, text string) (string, error) {
	start, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(page, start)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("%s has no place for %s, between %q and %q", benchPage, name, start, end)
	}
	return before + start + text + end + after, nil
}
