package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const examples = "../../examples/fleet/kubernetes"

func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(examples, "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("found %q: %v", files, err)
	}
	if err := checkFiles(files); err != nil {
		t.Error(err)
	}
}

// TestMistakes makes one mistake at a time in the examples.
func TestMistakes(t *testing.T) {
	for _, tc := range []struct{ file, from, to, want string }{
		{"daemonset.yaml", "      initContainers:", "      initContainer:", `unknown field "initContainer"`},
		{"daemonset.yaml", "clusterIP: None", "clusterIP: [None]", "cannot unmarshal array"},
		{"daemonset.yaml", "port: 7483\n", "port: 7483\n      port: 1\n", `key "port" already set`},
		{"daemonset.yaml", "apps/v1", "apps/v2", `kind "apps/v2 DaemonSet" is not known`},
		{"daemonset.yaml", "      labels:\n        app: dma-copy", "      labels:\n        app: other",
			"does not match"},
		{"daemonset.yaml", "- name: images\n              mountPath", "- name: image\n              mountPath",
			`mounts volume "image", which is not there`},
		{"daemonset.yaml", "          hostPath:\n            path: /var/lib/images\n            type: Directory\n", "",
			`volume "images" has no source`},
		{"daemonset.yaml", "          image: registry.example.com/dma-copy:1.0\n", "", "no image"},
		{"job.yaml", "      restartPolicy: Never\n", "", `restartPolicy "": a Job has Never or OnFailure`},
		{"job.yaml", "  name: push-image\n", "", "it has no name"},
	} {
		text, err := os.ReadFile(filepath.Join(examples, tc.file))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), tc.from, tc.to, 1)
		if changed == string(text) {
			t.Errorf("%s has no %q", tc.file, tc.from)
			continue
		}
		if _, err := check([]byte(changed)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q instead of %q: %v, want %s", tc.to, tc.from, err, tc.want)
		}
	}
	if _, err := check(nil); err == nil {
		t.Error("an empty file is accepted")
	}
}
