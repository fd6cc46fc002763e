package repolint

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// installLines are the forms of the commands that install the program and remove it, one for each way.
var installLines = []struct{ install, remove string }{
	{`sudo apt install ./dma-copy_VERSION-1_amd64\.deb`, `sudo apt remove dma-copy`},
	{`sudo dnf install ./dma-copy-VERSION-1\.x86_64\.rpm`, `sudo dnf remove dma-copy`},
	{`tar xzf dma-copy-VERSION-linux-amd64\.tar\.gz`, `rm -r dma-copy-VERSION-linux-amd64`},
	{
		`go install ` + regexp.QuoteMeta(modulePath+"/"+programPackage) + `@latest`,
		`rm "\$\(go env GOPATH\)/bin/dma-copy"`,
	},
	{`make all && sudo make install`, `sudo make uninstall`},
}

// TestInstallLinesOfReadme checks the form of the commands that no test runs, because they change the machine or need a
// network. The names of the packages are those that the tests of the packages install.
func TestInstallLinesOfReadme(t *testing.T) {
	_, after, _ := strings.Cut(readFile(t, filepath.Join(repositoryRoot, "README.md")), "\n## Install\n")
	section, _, _ := strings.Cut(after, "\n## ")
	for _, way := range installLines {
		row := regexp.MustCompile("(?m)^\\| [^|]+ \\| `" + way.install + "` \\| `" + way.remove + "` \\|$")
		if !row.MatchString(section) {
			t.Errorf("README.md has no row with %s and %s", way.install, way.remove)
		}
	}
	if rows := strings.Count(section, "` | `"); rows != len(installLines) {
		t.Errorf("README.md has %d ways to install, want %d", rows, len(installLines))
	}
}
