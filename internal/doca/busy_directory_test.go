package doca_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// TestExportWaitsForTheRuntimeDirectory holds the lock of the software device's runtime directory for longer than it
// ever takes, as another process does that a busy machine does not run for a while.
func TestExportWaitsForTheRuntimeDirectory(t *testing.T) {
	dir := t.TempDir()
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: dir})
	if errors.Is(err, doca.ErrNoCgo) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	device, err := driver.OpenDevice("b1:00.1")
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	region, err := device.Alloc(4096, doca.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	defer region.Close()
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	exported := make(chan error)
	go func() {
		_, err := region.Export()
		exported <- err
	}()
	time.Sleep(1500 * time.Millisecond)
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_UN); err != nil {
		t.Error(err)
	}
	if err := <-exported; err != nil {
		t.Error(err)
	}
}
