// Command pages writes the pages that are made from what the program knows of itself. It is for the build.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dma-copy/dma-copy/internal/cli/program"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "pages: %v\n", err)
		os.Exit(1)
	}
}

// run writes the pages that the first argument names into the directory that is the second.
func run(args []string) error {
	if len(args) == 2 {
		switch args[0] {
		case "manual":
			return writeManual(program.New(), args[1])
		case "reference":
			return writeReference(program.New(), args[1])
		}
	}
	return fmt.Errorf("usage: pages manual|reference DIR")
}

// write writes pages by their file's path below a directory.
func write(directory string, pages map[string]string) error {
	for name, text := range pages {
		path := filepath.Join(directory, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
