// Command imports draws docs/internals/architecture.svg: the packages that the program is built of, and their imports,
// as `go list` reports them. It runs in the root of the repository.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"
)

const (
	modulePath  = "github.com/dma-copy/dma-copy"
	pictureFile = "docs/internals/architecture.svg"
)

func main() {
	log.SetFlags(0)
	graph, err := importGraph()
	if err != nil {
		log.Fatal("imports: ", err)
	}
	boxes, arrows, err := pictureOf(graph)
	if err != nil {
		log.Fatal("imports: ", err)
	}
	if err := os.WriteFile(pictureFile, []byte(drawPicture(boxes, arrows)), 0o644); err != nil {
		log.Fatal("imports: ", err)
	}
}

// importGraph returns the imports within the module of each package that the program is built of, by their folders. It
// lists with cgo on, because without it packages that need it are left out. Nothing is compiled.
func importGraph() (map[string][]string, error) {
	list := exec.Command(
		"go", "list", "-buildvcs=false", "-deps", "-json=ImportPath,Imports", "./cmd/dma-copy", "./client",
	)
	list.Env = append(os.Environ(), "CGO_ENABLED=1")
	list.Stderr = os.Stderr
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	graph := map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return graph, nil
		} else if err != nil {
			return nil, fmt.Errorf("output of go list: %w", err)
		}
		if folder, ours := strings.CutPrefix(p.ImportPath, modulePath+"/"); ours {
			graph[folder] = nil
			for _, imported := range p.Imports {
				if to, ours := strings.CutPrefix(imported, modulePath+"/"); ours {
					graph[folder] = append(graph[folder], to)
				}
			}
		}
	}
}
