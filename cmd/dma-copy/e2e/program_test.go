package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

const (
	modulePath = "github.com/dma-copy/dma-copy"
	moduleRoot = "../../.."

	// programVariable holds the absolute path of a dma-copy to test instead of one built from the sources.
	programVariable = "DMA_COPY_TEST_PROGRAM"
)

// TestMain runs the tests, or a model of a peer if this binary is called as refpeer or nativepeer.
func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"refpeer": refpeerMain, "nativepeer": nativepeerMain})
}

// leakChecked fails a test run that leaves goroutines behind.
type leakChecked struct{ tests *testing.M }

func (l leakChecked) Run() int {
	if signal.Ignored(syscall.SIGHUP) { // as under nohup; the programs would inherit that
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	if code := l.tests.Run(); code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// installProgram puts dma-copy beside refpeer, where PATH finds it, before the first test that needs it. testscript
// removes the directory after the tests.
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

// copyProgram copies a program while no other goroutine starts a process, which would inherit the descriptor that
// writes it: a program that is open for writing cannot be executed ("text file busy").
func copyProgram(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("the dma-copy to test: %w", err)
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(to, content, 0o755)
}

// buildProgram builds dma-copy as the tests were built: with or without cgo, the race detector and coverage. The
// repository's state is not stamped into it, so that a commit alone does not change it.
func buildProgram(path string) error {
	args := []string{"build", "-buildvcs=false", "-ldflags=-w", "-o", path} // -w: no debug information, linked sooner
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

// dependOnSources reads the directories from which dma-copy is built. The Go command records what a test reads, so it
// runs the tests again, instead of reporting cached results, when a source has changed that they do not import.
func dependOnSources() error {
	var errs []error
	readDir := func(_ string, _ fs.DirEntry, err error) error { return err }
	for _, dir := range []string{"cmd", "internal"} {
		errs = append(errs, filepath.WalkDir(filepath.Join(moduleRoot, dir), readDir))
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		_, err := os.Stat(filepath.Join(moduleRoot, file))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
