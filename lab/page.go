package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dma-copy/dma-copy/lab/contest"
)

const (
	benchPage    = "benchmarks.md"
	summaryChart = "bench-summary.svg"
)

// writePages writes the summary between its markers in the page, and the drawings of all records.
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
	for name, record := range records {
		if err := writePlot(record, filepath.Join(docs, "bench-"+name+".svg")); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	rows := summarize(records)
	page, err := replaceSummary(string(text), summaryTable(rows))
	if err != nil {
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
func writePlot(record *contest.Record, path string) error {
	var plot bytes.Buffer
	if err := record.Plot(&plot); errors.Is(err, contest.ErrNothingToPlot) {
		return nil
	} else if err != nil {
		return err
	}
	return os.WriteFile(path, plot.Bytes(), 0o644)
}

// replaceSummary replaces what is between the two marker lines of the summary.
func replaceSummary(page, text string) (string, error) {
	const start, end = "<!-- summary -->\n", "<!-- end of summary -->\n"
	before, rest, found := strings.Cut(page, start)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("%s has no place for the summary, between %q and %q", benchPage, start, end)
	}
	return before + start + text + end + after, nil
}
