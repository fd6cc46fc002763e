package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A box is a package of the picture in docs/internals/architecture.svg, with the packages below it that have no box.
type box struct {
	member  string
	group   string // the class of its colour
	row     int
	column  float64
	columns int // how many it is wide
	about   string
}

// picture has the boxes. A package is imported by those of earlier rows only. One that does not exist yet may already
// have its place.
var picture = []box{
	{"cmd/dma-copy", "program", 0, 1.5, 1, "commands, signals, logging"},
	{"internal/cli", "program", 1, 1.5, 4, ""}, // about: the names of its packages
	{"internal/daemon", "program", 2, 2, 3, ""},
	{"client", "program", 2, 0, 1, "the same for other programs"},
	{"internal/operations", "service", 3, 1.5, 1, "push, pull and sync with a daemon"},
	{"internal/connect", "service", 4, 1.5, 1, "connects to a daemon"},
	{"internal/report", "program", 5, 1.75, 1, "results, progress, errors in words"},
	{"internal/sshstart", "service", 8, 0, 1, "starts the far side with ssh"},
	{"internal/release", "program", 13, 2, 1, "version of the program"},
	{"internal/phrase", "program", 15, 3, 1, "words for counts and lists"},
	{"internal/background", "program", 15, 2, 1, "signals, ticks beside the work"},
	{"internal/service", "service", 5, 0.5, 1, "daemon and its clients"},
	{"internal/probe", "program", 5, 3, 1, "what copies assume of a device"},
	{"internal/network", "service", 6, 0, 1, "between machines"},
	{"internal/dmaxfer", "transfer", 6, 1.5, 1, "meets the peer, runs a copy"},
	{"internal/ping", "transfer", 6, 3, 1, "round trips"},
	{"internal/fileio", "program", 7, 3, 1, "files that commands read and write"},
	{"internal/inventory", "program", 8, 3, 1, "devices of the machine"},
	{"internal/placement", "program", 9, 3, 1, "process and lanes on CPUs"},
	{"internal/secure", "service", 7, 0, 1, "TLS on a control channel"},
	{"internal/dmaxfer/window", "transfer", 8, 1, 1, "memory of a transfer"},
	{"internal/dmaxfer/target", "transfer", 8, 2, 1, "what a receiver writes to"},
	{"internal/dmaxfer/native", "transfer", 7, 1, 1, "protocol of two dma-copy"},
	{"internal/dmaxfer/reference", "transfer", 7, 2, 1, "protocol of doca_dma_copy"},
	{"internal/identity", "service", 9, 0, 1, "keys, and what each may do"},
	{"internal/dmaxfer/job", "transfer", 9, 2, 1, "local file, progress, errors"},
	{"internal/share", "service", 10, 0, 1, "directories of a daemon"},
	{"internal/dmaxfer/pump", "transfer", 10, 2, 1, "chunks, file to window"},
	{"internal/comch", "device", 10, 3, 1, "control channel"},
	{"internal/dmaxfer/tree", "transfer", 11, 1, 1, "entries of a source tree"},
	{"internal/dmaxfer/inode", "transfer", 11, 2, 1, "attributes of a file"},
	{"internal/tcpport", "service", 11, 0, 1, "owner of a TCP socket"},
	{"internal/doca", "device", 11, 3, 1, "devices, memory, engines"},
	{"internal/ucx", "device", 12, 0, 1, "binding of UCX, in C"},
	{"internal/dmaxfer/disk", "transfer", 12, 1.5, 1, "files and their commit"},
	{"internal/doca/internal/cabi", "device", 12, 3, 1, "calls into C, loader"},
	{"internal/quantity", "service", 13, 0, 1, "sizes and durations as text"},
	{"internal/dmaxfer/digest", "transfer", 13, 1, 1, "digests of files"},
	{"softdoca/device", "device", 13, 3, 1, "software device, in C"},
	{"internal/quote", "service", 14, 0, 1, "text in messages"},
	{"internal/lines", "service", 15, 0, 1, "lists with a line each"},
	{"internal/exit", "program", 15, 1, 1, "exit codes of errors"},
	{"internal/negotiate", "transfer", 14, 1.5, 1, "messages and their order"},
	{"softdoca/abi", "device", 14, 3, 1, "DOCA's types and functions"},
}

// everywhere has the packages that all others may import.
var everywhere = []string{"internal/exit", "internal/quote"}

// pictureOf returns the boxes, and for each the boxes that it imports directly, by their indexes. Imports that follow
// from others are left out, as are those of everywhere.
func pictureOf(graph map[string][]string) (boxes []box, arrows [][]int, err error) {
	for _, b := range picture {
		if exists(b.member, graph) {
			boxes = append(boxes, b)
		}
	}
	imports, err := importsOfBoxes(boxes, graph)
	if err != nil {
		return nil, nil, err
	}
	for i := range boxes {
		if boxes[i].about == "" {
			boxes[i].about = strings.Join(childrenOf(boxes[i].member, graph), ", ")
		}
		arrows = append(arrows, direct(imports, i))
		for _, to := range arrows[i] {
			if boxes[to].row <= boxes[i].row {
				err = errors.Join(err, fmt.Errorf("the box of %s must be below that of %s",
					boxes[to].member, boxes[i].member))
			}
		}
	}
	return boxes, arrows, err
}

// exists reports whether there is a package or one below it.
func exists(member string, graph map[string][]string) bool {
	for importer, imported := range graph {
		if slices.ContainsFunc(append(imported, importer), func(name string) bool { return within(name, member) }) {
			return true
		}
	}
	return false
}

// importsOfBoxes returns for each box those that it imports. All packages must have a box.
func importsOfBoxes(boxes []box, graph map[string][]string) (imports []map[int]bool, err error) {
	for range boxes {
		imports = append(imports, map[int]bool{})
	}
	for folder, imported := range graph {
		from := boxOf(boxes, folder)
		if from < 0 {
			err = errors.Join(err, fmt.Errorf("%s has no box: add one in tools/imports", folder))
			continue
		}
		for _, name := range imported {
			to := boxOf(boxes, name)
			if to >= 0 && to != from && !slices.Contains(everywhere, boxes[to].member) {
				imports[from][to] = true
			}
		}
	}
	return imports, err
}

// childrenOf returns the names of the packages directly below a folder.
func childrenOf(folder string, graph map[string][]string) (names []string) {
	for importer, imported := range graph {
		for _, name := range append(imported, importer) {
			if child, below := strings.CutPrefix(name, folder+"/"); below && !strings.Contains(child, "/") {
				names = append(names, child)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// boxOf returns the index of the innermost box that has a package, or -1.
func boxOf(boxes []box, folder string) int {
	found := -1
	for i, b := range boxes {
		if within(folder, b.member) && (found < 0 || len(b.member) > len(boxes[found].member)) {
			found = i
		}
	}
	return found
}

// direct returns the imports of a box that do not follow from its other imports.
func direct(imports []map[int]bool, from int) (kept []int) {
	for to := range imports[from] {
		follows := false
		for via := range imports[from] {
			follows = follows || via != to && reaches(imports, via, to, map[int]bool{})
		}
		if !follows {
			kept = append(kept, to)
		}
	}
	slices.Sort(kept)
	return kept
}

// reaches reports whether a box imports another one, itself or by others. Boxes may import each other in a circle,
// which pictureOf reports.
func reaches(imports []map[int]bool, from, to int, seen map[int]bool) bool {
	seen[from] = true
	for next := range imports[from] {
		if next == to || !seen[next] && reaches(imports, next, to, seen) {
			return true
		}
	}
	return false
}

func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }
