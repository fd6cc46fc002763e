package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	isc = `Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is
hereby granted, provided that the above copyright notice and this permission notice appear in all copies.
THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.
`
	gpl = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU General
Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any
later version. You should have received a copy of the GNU General Public License along with this program. If not, see
<https://www.gnu.org/licenses/>.
`
)

// program creates a module whose program imports a module with the given licence files, and changes to it.
func program(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/program\n\ngo 1.26\n\n"+
		"require example.com/linked v1.2.3\n\nreplace example.com/linked => ./linked\n")
	write("main.go", "package main\n\nimport _ \"example.com/linked/inner\"\n\nfunc main() {}\n")
	write("allow.txt", "# allowed\nBSD-3-Clause\nISC # a comment\n")
	write("linked/go.mod", "module example.com/linked\n\ngo 1.26\n")
	write("linked/inner/inner.go", "package inner\n")
	for name, text := range files {
		write("linked/"+name, text)
	}
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOPROXY", "off")
	t.Chdir(dir)
}

func TestLicences(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  string // part of the error; none if empty
	}{
		{"allowed", map[string]string{"LICENSE": isc}, ""},
		{"allowed, beside a notice", map[string]string{"COPYING.txt": isc, "NOTICE": "Written by many.\n"}, ""},
		{"not allowed", map[string]string{"LICENSE": gpl}, "module example.com/linked: LICENSE: licence GPL-3.0"},
		{"one of two not allowed", map[string]string{"LICENSE": isc, "COPYING": gpl}, "COPYING: licence GPL-3.0"},
		{"of a package", map[string]string{"LICENSE": isc, "inner/LICENSE": gpl}, "inner/LICENSE: licence GPL-3.0"},
		{"of a package that is not linked", map[string]string{"LICENSE": isc, "other/LICENSE": gpl}, ""},
		{"unknown", map[string]string{"LICENSE": "Do not use this.\n"}, "module example.com/linked: LICENSE: 0 %"},
		{"none", nil, "module example.com/linked: no licence file found"},
		{"a notice only", map[string]string{"NOTICE": isc}, "module example.com/linked: no licence file found"},
		{"a choice", map[string]string{"LICENSE": "// SPDX-License-Identifier: GPL-2.0-only OR ISC\n"}, ""},
		{
			"stated, not allowed", map[string]string{"LICENSE": "// SPDX-License-Identifier: GPL-2.0-only\n" + isc},
			"licence GPL-2.0-only is not allowed",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			program(t, test.files)
			err := run(options{allow: "allow.txt", arch: "amd64,arm64", program: "."})
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestNoticesHaveTheTexts(t *testing.T) {
	program(t, map[string]string{"LICENSE": isc, "NOTICE": "Written by many.\n"})
	if err := run(options{allow: "allow.txt", arch: "amd64", notices: "notices", program: "."}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("notices")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nexample.com/linked v1.2.3: ISC\n", "\nexample.com/linked v1.2.3, LICENSE\n", strings.TrimSpace(isc),
		"Written by many.", "The Go standard library and runtime 1.", "The Go Authors",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}

func TestSBOMNamesProgramAndModules(t *testing.T) {
	program(t, map[string]string{"LICENSE": isc})
	opts := options{allow: "allow.txt", arch: "amd64", sbom: "sbom.json", version: "1.0.0", program: "."}
	if err := run(opts); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("sbom.json")
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat  string
		Metadata   struct{ Component struct{ Version string } }
		Components []struct{ PURL string }
	}
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != "CycloneDX" || bom.Metadata.Component.Version != "1.0.0" {
		t.Errorf("format %q, version %q", bom.BOMFormat, bom.Metadata.Component.Version)
	}
	if !slices.ContainsFunc(bom.Components, func(component struct{ PURL string }) bool {
		return component.PURL == "pkg:golang/example.com/linked@v1.2.3"
	}) {
		t.Errorf("components %v", bom.Components)
	}
	if err := run(opts); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile("sbom.json"); err != nil || string(again) != string(text) {
		t.Errorf("the second one differs, or %v", err)
	}
}
