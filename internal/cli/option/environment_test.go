package option

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each variable that is known without an option is in a document.
func TestKnownVariablesAreDocumented(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	var all strings.Builder
	for _, pattern := range []string{
		"README.md", "docs/*.md", "docs/*/*.md", "softdoca/docs/*.md", "softdoca/device/*.c",
	} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	for _, name := range otherVariables() {
		if !strings.Contains(all.String(), name) {
			t.Errorf("%s is in no document", name)
		}
	}
}
