package inventory

import (
	"cmp"
	"fmt"
	"io"
	"runtime"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// notFound stands for the version of DOCA's libraries where there are none.
const notFound = "not found"

func programLines(program, docaRuntime string) string {
	return fmt.Sprintf("dma-copy %s (%s %s/%s)\nDOCA runtime: %s\n",
		program, runtime.Version(), runtime.GOOS, runtime.GOARCH, docaRuntime)
}

// Versions is the output of version, described by docs/version.schema.json. Fields are only ever added. Having no
// driver is an answer, not an error.
type Versions struct {
	Version int         `json:"v"`
	Program string      `json:"version"`
	Go      string      `json:"go"`
	System  string      `json:"os"`
	Machine string      `json:"arch"`
	DOCA    string      `json:"doca_runtime,omitempty"` // left out where none is found, as is what follows of it
	Files   string      `json:"doca_libraries,omitempty"`
	Caution string      `json:"doca_caution,omitempty"` // of a release that is newer than this program
	UCX     *UCXVersion `json:"ucx,omitempty"`          // with --driver ucx
	Driver  *DriverUsed `json:"driver,omitempty"`       // with any other; --version has neither
}

// UCXVersion is the release of UCX, or why there is none.
type UCXVersion struct {
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// DriverUsed is the driver that a copy would use and why, or why there is none.
type DriverUsed struct {
	Name     string `json:"name,omitempty"`
	Hardware bool   `json:"hardware"`
	Version  string `json:"version,omitempty"`
	Reason   string `json:"reason"`
}

// versionsVersion changes only if a field of versions is removed or changes its meaning.
const versionsVersion = 1

// VersionsOf returns the version of the program, and that of the DOCA libraries in a directory, or anywhere if it is
// empty.
func VersionsOf(libraryDir string) Versions {
	about := Versions{
		Version: versionsVersion, Program: root.Version(), Go: runtime.Version(), System: runtime.GOOS,
		Machine: runtime.GOARCH,
	}
	if found, err := doca.FindInstallation(libraryDir); err == nil {
		about.DOCA, about.Caution = quote.Printable(found.Version), quote.Printable(found.Caution)
		about.Files = quote.Printable(Libraries(found.Directory, found.Files))
	}
	return about
}

// FindUCX returns the release of UCX, or why there is none.
func FindUCX() *UCXVersion {
	found, err := TakeNetwork()
	if err != nil {
		return &UCXVersion{Reason: quote.Printable(err.Error())}
	}
	return &UCXVersion{Version: found.UCX}
}

// FindDriver returns the driver that a copy would use, or why there is none.
func FindDriver(options doca.Options) *DriverUsed {
	var used DriverUsed
	err := Look(options, func(driver *doca.Driver) error {
		used = DriverUsed{string(driver.Name()), driver.Hardware(), driver.Version(), driver.Reason()}
		return nil
	})
	if err != nil {
		used = DriverUsed{Reason: err.Error()}
	}
	used.Reason = quote.Printable(used.Reason)
	return &used
}

// Print prints the versions as text or JSON.
func (v Versions) Print(w io.Writer, form option.OutputForm) error {
	if form == option.OutputJSON {
		return output.WriteJSON(w, "version", v)
	}
	if _, err := io.WriteString(w, v.text()); err != nil {
		return fmt.Errorf("print the version: %w", err)
	}
	return nil
}

// text returns the versions as lines of text.
func (v Versions) text() string {
	text := programLines(v.Program, cmp.Or(v.DOCA, notFound))
	if v.Files != "" {
		text += fmt.Sprintf("libraries: %s\n", v.Files)
	}
	if v.Caution != "" {
		text += fmt.Sprintf("warning: %s\n", v.Caution)
	}
	if v.UCX != nil {
		text += fmt.Sprintf("UCX runtime: %s\n", cmp.Or(v.UCX.Version, "none"))
		if v.UCX.Reason != "" {
			text += fmt.Sprintf("reason: %s\n", v.UCX.Reason)
		}
	}
	if v.Driver != nil {
		title := "none"
		if v.Driver.Name != "" {
			title = DriverTitle(v.Driver.Name, v.Driver.Hardware, v.Driver.Version)
		}
		text += fmt.Sprintf("driver: %s\nreason: %s\n", title, v.Driver.Reason)
	}
	return text
}
