package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dma-copy/dma-copy/lab/bench"
	"github.com/dma-copy/dma-copy/lab/contest"
)

// show prints the tables of a record.
func show(args []string, stdout io.Writer) error {
	form := bench.Text
	if len(args) > 0 && args[0] == "-markdown" {
		form, args = bench.Markdown, args[1:]
	}
	if len(args) != 1 {
		return errors.New("show takes the file of a record")
	}
	record, err := readRecord(args[0])
	if err != nil {
		return err
	}
	return record.Write(stdout, form)
}

func readRecord(path string) (*contest.Record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	record, err := contest.ParseRecord(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return record, nil
}
