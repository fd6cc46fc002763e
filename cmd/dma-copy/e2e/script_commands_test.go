package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// processesKey finds the processes of a script by their names among its values.
type processesKey struct{}

// scriptCommands are what scripts can say beyond testscript's own commands.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"start":     plain(startCommand),
	"ends":      plain(endsCommand),
	"fails":     plain(failsCommand),
	"says":      plain(saysCommand),
	"runson":    plain(runsOnCommand),
	"signal":    plain(signalCommand),
	"waitfor":   plain(waitforCommand),
	"randfile":  plain(randfileCommand),
	"same":      plain(sameCommand),
	"mode":      plain(modeCommand),
	"truncate":  plain(truncateCommand),
	"xattr":     plain(xattrCommand),
	"hasxattr":  hasxattrCommand,
	"fifo":      plain(fifoCommand),
	"clean":     plain(cleanCommand),
	"smalldisk": plain(smalldiskCommand),
	"record":    plain(recordCommand),
	"drawing":   plain(drawingCommand),
	"emptydir":  plain(emptydirCommand),
}

// plain makes a command that has no negation.
func plain(command func(*testscript.TestScript, []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("the command has no negation")
		}
		command(ts, args)
	}
}

func wantArgs(ts *testscript.TestScript, enough bool, usage string) {
	if !enough {
		ts.Fatalf("usage: %s", usage)
	}
}

// takeFlag takes a leading flag off the arguments.
func takeFlag(args []string, flag string) (rest []string, given bool) {
	if len(args) > 0 && args[0] == flag {
		return args[1:], true
	}
	return args, false
}

// startCommand: start [-unprivileged] NAME PROGRAM ARG... runs a program beside the script, under a name.
func startCommand(ts *testscript.TestScript, args []string) {
	args, unprivileged := takeFlag(args, "-unprivileged")
	wantArgs(ts, len(args) >= 2, "start [-unprivileged] NAME PROGRAM ARG...")
	begin(ts, args[0], unprivileged, args[1:])
}

func begin(ts *testscript.TestScript, name string, unprivileged bool, argv []string) {
	processes := ts.Value(processesKey{}).(map[string]*process)
	if processes[name] != nil {
		ts.Fatalf("%s runs already", name)
	}
	p, err := launch(launching{
		name: name, folder: ts.MkAbs("."), environment: environmentOf(ts), unprivileged: unprivileged, argv: argv,
	})
	ts.Check(err)
	processes[name] = p
}

// environmentOf returns what a program can see of the script's environment: testscript tells single variables only.
func environmentOf(ts *testscript.TestScript) []string {
	set, err := variablesOfScripts()
	ts.Check(err)
	names := append([]string{
		"PATH", "HOME", "TMPDIR", "WORK", "GORACE", "GOCOVERDIR", "NO_COLOR",
		"DMA_COPY_DRIVER", "DMA_COPY_SOFT_DIR", "DMA_COPY_SOFT_QUIRKS",
	}, set...)
	var environment []string
	for _, name := range names {
		if value := ts.Getenv(name); value != "" {
			environment = append(environment, name+"="+value)
		}
	}
	return environment
}

// variablesOfScripts are those that any script sets for the programs that it starts.
var variablesOfScripts = sync.OnceValues(func() (names []string, err error) {
	scripts, err := filepath.Glob(filepath.Join(scriptFolder, "*.txtar"))
	setting := regexp.MustCompile(`(?m)^env (\w+)=`)
	for _, script := range scripts {
		text, readErr := os.ReadFile(script)
		err = errors.Join(err, readErr)
		for _, match := range setting.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
})

// endsCommand: ends [-warned] NAME CODE waits for a started program and checks its exit code. What it printed is
// then there for stdout and stderr.
func endsCommand(ts *testscript.TestScript, args []string) {
	args, warned := takeFlag(args, "-warned")
	wantArgs(ts, len(args) == 2, "ends [-warned] NAME CODE")
	end(ts, args[0], args[1], warned)
}

func end(ts *testscript.TestScript, name, code string, warned bool) {
	p := processOf(ts, name)
	number, err := strconv.Atoi(code)
	ts.Check(err)
	ts.Check(p.endsWith(number, warned))
	delete(ts.Value(processesKey{}).(map[string]*process), name)
	_, err = ts.Stdout().Write([]byte(p.stdout.String()))
	ts.Check(err)
	_, err = ts.Stderr().Write([]byte(p.stderr.String()))
	ts.Check(err)
}

func processOf(ts *testscript.TestScript, name string) *process {
	p := ts.Value(processesKey{}).(map[string]*process)[name]
	if p == nil {
		ts.Fatalf("nothing was started as %s", name)
	}
	return p
}

// failsCommand: fails [-unprivileged] CODE PROGRAM ARG... is start and ends in one.
func failsCommand(ts *testscript.TestScript, args []string) {
	args, unprivileged := takeFlag(args, "-unprivileged")
	wantArgs(ts, len(args) >= 2, "fails [-unprivileged] CODE PROGRAM ARG...")
	begin(ts, "it", unprivileged, args[1:])
	end(ts, "it", args[0], false)
}

// saysCommand: says NAME REGEXP waits until a started program has printed such a thing on stderr.
func saysCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "says NAME REGEXP")
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	ts.Check(processOf(ts, args[0]).says(pattern))
}

// runsOnCommand: runson NAME LIST checks that every thread of a started program may use these CPUs and no others.
func runsOnCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "runson NAME LIST")
	p := processOf(ts, args[0])
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.command.Process.Pid))
	ts.Check(err)
	if len(threads) == 0 {
		ts.Fatalf("%s has ended", args[0])
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if err == nil && !strings.Contains(string(status), "\nCpus_allowed_list:\t"+args[1]+"\n") { // it may have ended
			ts.Fatalf("%s does not say that it runs on %s:\n%s", thread, args[1], status)
		}
	}
}

// signalCommand: signal SIGNAL NAME sends INT, TERM, KILL, STOP, CONT or USR1.
func signalCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "signal SIGNAL NAME")
	number := unix.SignalNum("SIG" + args[0])
	if number == 0 {
		ts.Fatalf("no signal %s", args[0])
	}
	ts.Check(processOf(ts, args[1]).signal(number))
}

// waitforCommand: waitfor PATTERN... waits until each pattern names a file. There is nothing to wait on for a file of
// another process, hence the polling.
func waitforCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) > 0, "waitfor PATTERN...")
	deadline := time.Now().Add(hangGuard)
	for _, pattern := range args {
		for found := []string(nil); len(found) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				ts.Fatalf("%s never appeared", pattern)
			}
			var err error
			found, err = filepath.Glob(ts.MkAbs(pattern))
			ts.Check(err)
		}
	}
}

// randfileCommand: randfile FILE SIZE makes a file of noise. The bytes follow from name and size.
func randfileCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "randfile FILE SIZE")
	size, err := parseSize(args[1])
	ts.Check(err)
	ts.Check(writeNoise(ts.MkAbs(args[0]), args[0], size))
}

// parseSize reads a number of bytes, or of one of the larger units K, M and G.
func parseSize(text string) (int64, error) {
	shift := 0
	for i, unit := range []string{"K", "M", "G"} {
		if digits, is := strings.CutSuffix(text, unit); is {
			text, shift = digits, 10*(i+1)
		}
	}
	count, err := strconv.ParseInt(text, 10, 64)
	return count << shift, err
}

// sameCommand: same FILE FILE compares the contents, without printing them.
func sameCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "same FILE FILE")
	ts.Check(compareFiles(ts.MkAbs(args[0]), ts.MkAbs(args[1])))
}

// modeCommand: mode FILE PERMISSIONS checks a file's permissions.
func modeCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "mode FILE PERMISSIONS")
	info, err := os.Lstat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := strconv.FormatUint(uint64(info.Mode().Perm()), 8); got != args[1] {
		ts.Fatalf("%s has mode %s, want %s", args[0], got, args[1])
	}
}

// truncateCommand: truncate FILE SIZE cuts a file short, as another program would.
func truncateCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "truncate FILE SIZE")
	size, err := parseSize(args[1])
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}

// xattrCommand: xattr FILE NAME VALUE gives a file an extended attribute.
func xattrCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 3, "xattr FILE NAME VALUE")
	ts.Check(unix.Setxattr(ts.MkAbs(args[0]), args[1], []byte(args[2]), 0))
}

// hasxattrCommand: [!] hasxattr FILE NAME VALUE looks for one.
func hasxattrCommand(ts *testscript.TestScript, neg bool, args []string) {
	wantArgs(ts, len(args) == 3, "[!] hasxattr FILE NAME VALUE")
	value := make([]byte, 100)
	n, err := unix.Getxattr(ts.MkAbs(args[0]), args[1], value)
	if has := err == nil && string(value[:n]) == args[2]; has == neg {
		ts.Fatalf("%s has %s %q (%v)", args[0], args[1], value[:max(0, n)], err)
	}
}

// canXattr tells whether temporary files take extended attributes.
func canXattr() (bool, error) {
	file, err := os.CreateTemp("", "dma-copy-xattr")
	if err != nil {
		return false, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	return unix.Fsetxattr(int(file.Fd()), "user.dma-copy", []byte("x"), 0) == nil, nil
}

// fifoCommand: fifo FILE makes a named pipe.
func fifoCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 1, "fifo FILE")
	ts.Check(unix.Mkfifo(ts.MkAbs(args[0]), 0o644))
}

// cleanCommand: clean [DIR...] checks that no socket is left in the runtime directory and no temporary file in the
// folders, which are those of both sides if none is given.
func cleanCommand(ts *testscript.TestScript, args []string) {
	if len(args) == 0 {
		args = []string{"host", "dpu"}
	}
	folders := make([]string, len(args))
	for i, arg := range args {
		folders[i] = ts.MkAbs(arg)
	}
	left, err := leftovers(ts.Getenv("DMA_COPY_SOFT_DIR"), folders)
	ts.Check(err)
	if len(left) > 0 {
		ts.Fatalf("left behind: %s", strings.Join(left, ", "))
	}
}

// leftovers finds sockets in a runtime directory and temporary files in folders.
func leftovers(runtime string, folders []string) ([]string, error) {
	left, err := entries(runtime, func(e os.DirEntry) bool { return e.Type()&os.ModeSocket != 0 })
	for _, folder := range folders {
		temporary, entriesErr := entries(folder, func(e os.DirEntry) bool { return strings.Contains(e.Name(), ".dma-copy-") })
		if err == nil {
			err = entriesErr
		}
		left = append(left, temporary...)
	}
	return left, err
}

func entries(folder string, wanted func(os.DirEntry) bool) (names []string, err error) {
	all, err := os.ReadDir(folder)
	for _, entry := range slices.DeleteFunc(all, func(e os.DirEntry) bool { return !wanted(e) }) {
		names = append(names, filepath.Join(filepath.Base(folder), entry.Name()))
	}
	return names, err
}

// smalldiskCommand: smalldisk DIR SIZE mounts a file system that holds no more than SIZE.
func smalldiskCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "smalldisk DIR SIZE")
	folder := ts.MkAbs(args[0])
	ts.Check(unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=0755,size="+args[1]))
	ts.Defer(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
}

// canMount tells whether this process may mount, which takes more than being root in some containers.
func canMount() (bool, error) {
	folder, err := os.MkdirTemp("", "dma-copy-mount")
	if err != nil {
		return false, err
	}
	defer os.Remove(folder)
	err = unix.Mount("tmpfs", folder, "tmpfs", 0, "size=64k")
	if err == syscall.EPERM || err == syscall.EACCES {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, unix.Unmount(folder, 0)
}
