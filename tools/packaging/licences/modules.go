package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is one that is linked into the program.
type module struct {
	path, version string
	files         []licenceFile // of the module and of its linked packages; sorted by name
	licences      []string      // SPDX identifiers, set by check
}

// licenceFile is one with a licence or a notice.
type licenceFile struct {
	name string // relative to the module
	text []byte
}

// listed is what `go list -json` prints of a package.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// licenceName matches the files that licences and notices are usually in.
var licenceName = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|copyright|notice|patents)([-_.].*)?$`)

// linkedModules returns the modules whose packages are linked into a program on any of the architectures, and Go
// itself, sorted by path.
func linkedModules(program string, architectures []string) ([]*module, error) {
	std, err := standardLibrary()
	if err != nil {
		return nil, err
	}
	modules := map[string]*module{std.path: std}
	for _, architecture := range architectures {
		packages, err := listPackages(program, architecture)
		if err != nil {
			return nil, err
		}
		for _, pkg := range packages {
			if err := add(modules, pkg); err != nil {
				return nil, err
			}
		}
	}
	byPath := func(a, b *module) int { return strings.Compare(a.path, b.path) }
	return slices.SortedFunc(maps.Values(modules), byPath), nil
}

// listPackages returns all packages of a program on an architecture, with cgo, as the packages are built.
func listPackages(program, architecture string) ([]listed, error) {
	command := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", program)
	command.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+architecture, "CGO_ENABLED=1")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s for %s: %w", program, architecture, err)
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var pkg listed
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, pkg)
	}
}

// add adds the module of a package with the licence files between the package and the root of its module.
func add(modules map[string]*module, pkg listed) error {
	if pkg.Standard || pkg.Module == nil || pkg.Module.Main {
		return nil
	}
	path, root := pkg.Module.Path, pkg.Module.Dir
	if modules[path] == nil {
		modules[path] = &module{path: path, version: pkg.Module.Version}
	}
	for dir := pkg.Dir; ; dir = filepath.Dir(dir) {
		if err := modules[path].addFiles(root, dir); err != nil {
			return err
		}
		if dir == root || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// standardLibrary returns Go itself, whose packages have one licence.
func standardLibrary() (*module, error) {
	output, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go's licence: %w", err)
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
	std := &module{path: "std", version: strings.TrimPrefix(version, "go")}
	return std, std.addFiles(root, root)
}

// addFiles adds the licence files in a directory of the module which it does not have yet.
func (m *module) addFiles(root, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("module %s: %w", m.path, err)
	}
	for _, entry := range entries {
		isSource := strings.HasSuffix(entry.Name(), ".go")
		if isSource || !entry.Type().IsRegular() || !licenceName.MatchString(entry.Name()) {
			continue
		}
		name, err := filepath.Rel(root, filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		at, found := slices.BinarySearchFunc(m.files, name, func(file licenceFile, name string) int {
			return strings.Compare(file.name, name)
		})
		if found {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		m.files = slices.Insert(m.files, at, licenceFile{name, text})
	}
	return nil
}
