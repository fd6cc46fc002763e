package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// openFile returns a file that is open for reading, with the given content.
func openFile(t *testing.T, text string) *osFile {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := OS.OpenDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	file, err := dir.Open("file", true)
	if err != nil {
		t.Fatal(err)
	}
	if file.Name() != filepath.Join(folder, "file") {
		t.Errorf("the file is called %s", file.Name())
	}
	return file.(*osFile)
}

func isOpen(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

func TestDescriptorStaysOpenForACallThatHangs(t *testing.T) {
	for _, hasHandle := range []bool{false, true} {
		f := openFile(t, "text")
		if hasHandle {
			f.OS()
		}
		if !f.begin() {
			t.Fatal("an open file is closed")
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if !isOpen(f.fd) {
			t.Error("the descriptor is closed while a call uses it")
		}
		f.end()
		if isOpen(f.fd) {
			t.Error("the descriptor is open after the call")
		}
	}
}

func TestClosedFileFails(t *testing.T) {
	f := openFile(t, "text")
	if err := f.Close(); err != nil || isOpen(f.fd) {
		t.Fatalf("after Close (%v) the descriptor is open: %t", err, isOpen(f.fd))
	}
	if err := f.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the second Close: %v", err)
	}
	_, infoErr := f.Info()
	_, readErr := f.ReadAt(make([]byte, 1), 0)
	for _, err := range []error{infoErr, readErr} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	_, streamErr := f.Read(make([]byte, 1))
	_, holdErr := f.Hold()
	for _, err := range []error{streamErr, holdErr, f.SetMode(0o600)} {
		if err == nil {
			t.Error("a method works after Close")
		}
	}
}

func TestFileIsReadByBothWays(t *testing.T) {
	f := openFile(t, "some text")
	defer f.Close()
	buffer := make([]byte, 5)
	if _, err := f.ReadAt(buffer, 4); err != nil || string(buffer) != " text" {
		t.Errorf("ReadAt: %q %v", buffer, err)
	}
	if n, err := f.Read(buffer); err != nil || string(buffer[:n]) != "some " {
		t.Errorf("Read: %q %v", buffer, err)
	}
	if _, err := f.ReadAt(buffer, 4); err != nil || string(buffer) != " text" {
		t.Errorf("ReadAt after Read: %q %v", buffer, err)
	}
	if file := f.OS(); file == nil || file.Name() != f.Name() || int(file.Fd()) != f.fd {
		t.Errorf("the file of the system is %v", file)
	}
}
