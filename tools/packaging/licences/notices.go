package main

import (
	"bytes"
	"fmt"
	"strings"
)

// notices returns the texts of the licences and notices of all modules.
func notices(modules []*module) []byte {
	var out bytes.Buffer
	out.WriteString("dma-copy contains these modules, under the licences that follow.\n\n")
	for _, module := range modules {
		fmt.Fprintf(&out, "%s: %s\n", module, strings.Join(module.licences, ", "))
	}
	for _, module := range modules {
		for _, file := range module.files {
			heading := fmt.Sprintf("%s, %s", module, file.name)
			fmt.Fprintf(&out, "\n%s\n%s\n\n", heading, strings.Repeat("=", len(heading)))
			out.Write(bytes.TrimSpace(file.text))
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// String returns the name and version of a module for readers.
func (m *module) String() string {
	if m.path == "std" {
		return "The Go standard library and runtime " + m.version
	}
	return m.path + " " + m.version
}
