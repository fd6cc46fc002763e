//go:build ucx && cgo

package ucx

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processVariable makes the test program do one of processes instead of its tests.
const processVariable = "UCX_TEST_PROCESS"

// processes are what tests have done by a process of its own. What one prints is its result.
var processes = map[string]func() error{
	"owner":           ownWindow,
	"sender":          sendForever,
	"connect":         connectAndSend,
	"import":          importAndRead,
	"memory":          measureWorkers,
	"signals":         compareSignals,
	"closing":         closeWhileConnecting,
	"nil dereference": func() error { return useUCX(dereferenceNil) },
}

func TestMain(m *testing.M) {
	process := processes[os.Getenv(processVariable)]
	if process == nil {
		os.Exit(m.Run())
	}
	if err := process(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func processCommand(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), processVariable+"="+name)
	command.Stderr = os.Stderr
	return command
}

func inProcess(t *testing.T, name string) []byte {
	t.Helper()
	out, err := processCommand(t, name).Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return out
}

// useUCX does something while a worker exists.
func useUCX(what func() error) error {
	c, err := Open(Settings{})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	w, err := c.NewWorker(1)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close(context.Background()) }()
	return what()
}

// compareSignals prints the signals whose handler is another one once UCX is used.
func compareSignals() error {
	before := handlers()
	return useUCX(func() error {
		for signal, handler := range handlers() {
			if handler != before[signal] {
				fmt.Println("signal", signal)
			}
		}
		return nil
	})
}

// handlers returns the addresses of all signal handlers.
func handlers() (list [65]uintptr) {
	for signal := 1; signal < len(list); signal++ {
		var action struct{ handler, flags, restorer, mask uintptr }
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(signal), 0, uintptr(unsafe.Pointer(&action)), 8, 0, 0)
		list[signal] = action.handler
	}
	return list
}

func dereferenceNil() (err error) {
	defer func() { fmt.Println(recover()) }()
	var nothing *int
	*nothing = 1
	return nil
}
