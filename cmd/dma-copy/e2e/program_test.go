package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
)

const (
	modulePath = "github.com/dma-copy/dma-copy"
	moduleRoot = "../../.."

	// programVariable names a dma-copy to test, in place of one that is built from the sources.
	programVariable = "DMA_COPY_TEST_PROGRAM"
)

// installProgram puts dma-copy beside refpeer, where PATH finds it, before the first test that needs it. The folder is
// removed after the tests.
var installProgram = sync.OnceValue(func() error {
	refpeer, err := exec.LookPath("refpeer")
	if err != nil {
		return err
	}
	program := filepath.Join(filepath.Dir(refpeer), "dma-copy")
	if prebuilt := os.Getenv(programVariable); prebuilt != "" {
		return copyProgram(prebuilt, program)
	}
	return errors.Join(dependOnSources(), buildProgram(program))
})

func copyProgram(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("%s: %w", programVariable, err)
	}
	return os.WriteFile(to, content, 0o755)
}

// buildProgram builds dma-copy as the tests were built: with cgo, the race detector and coverage, or without. It has no
// stamp of the repository, so that it stays the same from commit to commit.
func buildProgram(path string) error {
	args := []string{"build", "-buildvcs=false", "-o", path}
	environment := os.Environ()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			switch setting.Key {
			case "-race", "-asan", "-msan", "-tags":
				args = append(args, setting.Key+"="+setting.Value)
			case "CGO_ENABLED":
				environment = append(environment, "CGO_ENABLED="+setting.Value)
			}
		}
	}
	if mode := testing.CoverMode(); mode != "" {
		args = append(args, "-cover", "-covermode="+mode, "-coverpkg="+modulePath+"/...")
	}
	build := exec.Command("go", append(args, modulePath+"/cmd/dma-copy")...)
	build.Env = environment
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, output)
	}
	return nil
}

// dependOnSources reads the folders from which dma-copy is built. The Go command notes what a test reads, and so runs
// the tests again after a change of the program that they do not import.
func dependOnSources() error {
	var errs []error
	for _, folder := range []string{"cmd", "internal"} {
		errs = append(errs, filepath.WalkDir(filepath.Join(moduleRoot, folder), func(_ string, _ fs.DirEntry, err error) error {
			return err
		}))
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		_, err := os.Stat(filepath.Join(moduleRoot, file))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
