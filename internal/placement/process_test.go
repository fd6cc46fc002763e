package placement

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"testing"
)

// TestEveryThreadMoves moves this process to one CPU and back, and checks the mask of every thread, including busy,
// sleeping and later ones.
func TestEveryThreadMoves(t *testing.T) {
	here, err := ThisMachine()
	if err != nil {
		t.Fatal(err)
	}
	one, first := Set{}, 0
	for !here.Usable.IsSet(first) {
		first++
	}
	one.Set(first)
	stop := occupyThreads(t, 8)
	defer stop()
	for _, cpus := range []Set{one, here.Usable} {
		if err := runOn(cpus); err != nil {
			t.Fatal(err)
		}
		late := occupyThreads(t, 4)
		checkThreads(t, cpus)
		late()
	}
}

func TestNoCPUIsRefused(t *testing.T) {
	if err := runOn(Set{}); err == nil {
		t.Error("the process runs on no CPU")
	}
}

// occupyThreads starts goroutines that keep threads of their own until stop is called.
func occupyThreads(t *testing.T, count int) (stop func()) {
	t.Helper()
	var begun, ended sync.WaitGroup
	over := make(chan struct{})
	for range count {
		begun.Add(1)
		ended.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			begun.Done()
			<-over
		})
	}
	begun.Wait()
	return func() { close(over); ended.Wait() }
}

func checkThreads(t *testing.T, want Set) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tasks, "*", "status"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%d threads, error %v", len(files), err)
	}
	allowed := regexp.MustCompile(`(?m)^Cpus_allowed_list:\s*(.*)$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		if match := allowed.FindSubmatch(text); match == nil || string(match[1]) != want.String() {
			t.Errorf("%s says %q, want %s", file, match, want)
		}
	}
}
