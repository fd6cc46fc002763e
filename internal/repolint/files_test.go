package repolint

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/dma-copy/dma-copy"

// A goFile is what the law of arrows needs to know about a source.
type goFile struct {
	path            string // from the module's root
	imports         []string
	test            bool
	exits           bool // calls os.Exit
	startsGoroutine bool
}

// A listedPackage is what `go list -json` says about a package.
type listedPackage struct {
	Dir            string
	GoFiles        []string
	CgoFiles       []string
	IgnoredGoFiles []string
	TestGoFiles    []string
	XTestGoFiles   []string
	Module         struct{ Dir string }
}

// moduleFiles reads every Go file of the module, those that build constraints exclude here among them.
func moduleFiles(t *testing.T) (files []goFile) {
	t.Helper()
	for _, p := range listPackages(t) {
		folder, err := filepath.Rel(p.Module.Dir, p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles) {
			content, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, readGoFile(t, path.Join(filepath.ToSlash(folder), name), string(content)))
		}
	}
	return files
}

// listPackages asks with cgo on, because without it `go list` leaves out packages that need it. Nothing is compiled.
func listPackages(t *testing.T) (packages []listedPackage) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-buildvcs=false",
		"-json=Dir,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Module", modulePath+"/...")
	list.Env = append(os.Environ(), "CGO_ENABLED=1")
	var complaints strings.Builder
	list.Stderr = &complaints
	output, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, complaints.String())
	}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("reading what go list says: %v", err)
		}
		packages = append(packages, p)
	}
}

func readGoFile(t *testing.T, name, content string) goFile {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), name, content, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	file := goFile{path: name, test: strings.HasSuffix(name, "_test.go")}
	osName := ""
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		file.imports = append(file.imports, imported)
		if imported == "os" {
			osName = nameOf(spec, "os")
		}
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			file.startsGoroutine = true
		case *ast.SelectorExpr:
			file.exits = file.exits || isMember(node, osName, "Exit")
		}
		return true
	})
	return file
}

func nameOf(spec *ast.ImportSpec, usual string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return usual
}

func isMember(selector *ast.SelectorExpr, packageName, member string) bool {
	qualifier, ok := selector.X.(*ast.Ident)
	return ok && qualifier.Name == packageName && selector.Sel.Name == member
}
