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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const repositoryRoot = "../.."

// A sourceFile is what the import rules need to know about a Go file, or a C file of a Go package.
type sourceFile struct {
	path            string // from the module's root
	imports         []string
	uses            []string // members of imported packages, with the import path: os.Exit; of C, some functions
	test            bool
	startsGoroutine bool
}

// folder returns the folder of the file from the module's root, which is its package's path in the module.
func (f sourceFile) folder() string { return path.Dir(f.path) }

// importedFolders returns the folders of this module that the file imports.
func (f sourceFile) importedFolders() []string { return foldersOf(f.imports) }

// foldersOf returns the folders of the import paths that belong to this module.
func foldersOf(imports []string) (folders []string) {
	for _, imported := range imports {
		if folder, ours := strings.CutPrefix(imported, modulePath+"/"); ours {
			folders = append(folders, folder)
		}
	}
	return folders
}

// A listedPackage is what `go list -json` prints about a package.
type listedPackage struct {
	ImportPath     string
	Dir            string
	GoFiles        []string
	CgoFiles       []string
	CFiles         []string
	HFiles         []string
	IgnoredGoFiles []string
	TestGoFiles    []string
	XTestGoFiles   []string
}

// moduleFiles reads every Go file of the module, including those that build constraints exclude here, and the C files
// of its packages.
func moduleFiles(t *testing.T) (files []sourceFile) {
	t.Helper()
	for _, p := range listPackages(t) {
		folder := strings.TrimPrefix(p.ImportPath, modulePath+"/")
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles) {
			content := readFile(t, filepath.Join(p.Dir, name))
			files = append(files, parseGoFile(t, path.Join(folder, name), content))
		}
		for _, name := range slices.Concat(p.CFiles, p.HFiles) {
			files = append(files, parseCFile(path.Join(folder, name), readFile(t, filepath.Join(p.Dir, name))))
		}
	}
	return files
}

// listPackages runs `go list` with cgo on, because without it packages that need it are left out. Nothing is compiled.
func listPackages(t *testing.T) (packages []listedPackage) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-buildvcs=false",
		"-json=ImportPath,Dir,GoFiles,CgoFiles,CFiles,HFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles",
		modulePath+"/...")
	list.Env = append(os.Environ(), "CGO_ENABLED=1")
	var stderr strings.Builder
	list.Stderr = &stderr
	output, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("output of go list: %v", err)
		}
		packages = append(packages, p)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func parseGoFile(t *testing.T, name, content string) sourceFile {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), name, content, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	file := sourceFile{path: name, test: strings.HasSuffix(name, "_test.go")}
	importedAs := map[string]string{} // import path by the name that the file uses
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		file.imports = append(file.imports, imported)
		importedAs[nameInFile(spec, imported)] = imported
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			file.startsGoroutine = true
		case *ast.CallExpr:
			return !readsGOMAXPROCS(node, importedAs)
		case *ast.SelectorExpr:
			if used, ok := memberUsed(node, importedAs); ok {
				file.uses = append(file.uses, used)
			}
		}
		return true
	})
	return file
}

// readsGOMAXPROCS reports whether a call is runtime.GOMAXPROCS(0), which changes nothing.
func readsGOMAXPROCS(call *ast.CallExpr, importedAs map[string]string) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) != 1 {
		return false
	}
	function, _ := memberUsed(selector, importedAs)
	value, isLiteral := call.Args[0].(*ast.BasicLit)
	return function == "runtime.GOMAXPROCS" && isLiteral && value.Value == "0"
}

var processStateCall = regexp.MustCompile(`\b(sched_setaffinity|pthread_setaffinity_np|set_mempolicy)\s*\(`)

func parseCFile(name, content string) sourceFile {
	file := sourceFile{path: name}
	for _, match := range processStateCall.FindAllStringSubmatch(content, -1) {
		file.uses = append(file.uses, "C."+match[1])
	}
	return file
}

func nameInFile(spec *ast.ImportSpec, imported string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(imported)
}

// memberUsed returns the import path and name of a package's member, if the selector is one.
func memberUsed(selector *ast.SelectorExpr, importedAs map[string]string) (member string, ok bool) {
	qualifier, ok := selector.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	imported, ok := importedAs[qualifier.Name]
	return imported + "." + selector.Sel.Name, ok
}
