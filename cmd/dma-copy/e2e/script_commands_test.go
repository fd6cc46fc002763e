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

// processesKey is the key of a script's processes, a map by their names, among its values.
type processesKey struct{}

// recentKey is the key of a script's processes that were started last, also of those that have ended.
type recentKey struct{}

// scriptCommands are the commands of scripts beyond those of testscript.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"start":     plain(startCommand),
	"ends":      plain(endsCommand),
	"fails":     plain(failsCommand),
	"says":      plain(saysCommand),
	"prints":    plain(printsCommand),
	"asks":      plain(asksCommand),
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
}

// plain makes a command that cannot be negated with "!".
func plain(command func(*testscript.TestScript, []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("the command cannot be negated")
		}
		command(ts, args)
	}
}

// wantArgs fails the script unless the arguments are enough.
func wantArgs(ts *testscript.TestScript, enough bool, usage string) {
	if !enough {
		ts.Fatalf("usage: %s", usage)
	}
}

// takeFlag removes a leading flag from the arguments.
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
		ts.Fatalf("%s is running already", name)
	}
	p, err := startProcess(processOptions{
		name: name, dir: ts.MkAbs("."), environment: environmentOf(ts), unprivileged: unprivileged, argv: argv,
	})
	ts.Check(err)
	processes[name] = p
	ts.Value(recentKey{}).(*recentProcesses).add(p)
}

// environmentOf returns the variables of a script that its programs get. testscript does not list the variables, so
// they are looked up by name.
func environmentOf(ts *testscript.TestScript) []string {
	set, err := variablesOfScripts()
	ts.Check(err)
	names := append([]string{
		"PATH", "HOME", "TMPDIR", "WORK", "GORACE", "GOCOVERDIR", "NO_COLOR",
		"DMA_COPY_DRIVER", "DMA_COPY_SOFT_DIR", "DMA_COPY_SOFT_QUIRKS", "DMA_COPY_VERBOSE",
	}, set...)
	var environment []string
	for _, name := range names {
		if value := ts.Getenv(name); value != "" {
			environment = append(environment, name+"="+value)
		}
	}
	return environment
}

// variablesOfScripts returns the names of the variables that any script sets.
var variablesOfScripts = sync.OnceValues(func() (names []string, err error) {
	scripts, err := filepath.Glob(filepath.Join(scriptDir, "*.txtar"))
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

// endsCommand: ends [-warned] NAME CODE waits for a started program and checks its exit code and the form of its
// output, which the commands stdout and stderr can then match.
func endsCommand(ts *testscript.TestScript, args []string) {
	args, wantWarning := takeFlag(args, "-warned")
	wantArgs(ts, len(args) == 2, "ends [-warned] NAME CODE")
	end(ts, args[0], args[1], wantWarning)
}

func end(ts *testscript.TestScript, name, code string, wantWarning bool) {
	p := processOf(ts, name)
	number, err := strconv.Atoi(code)
	ts.Check(err)
	ts.Check(p.checkExit(number, wantWarning))
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

// failsCommand: fails [-unprivileged] CODE PROGRAM ARG... combines start and ends.
func failsCommand(ts *testscript.TestScript, args []string) {
	args, unprivileged := takeFlag(args, "-unprivileged")
	wantArgs(ts, len(args) >= 2, "fails [-unprivileged] CODE PROGRAM ARG...")
	begin(ts, "it", unprivileged, args[1:])
	end(ts, "it", args[0], false)
}

// saysCommand: says NAME REGEXP waits until the stderr of a started program matches.
func saysCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "says NAME REGEXP")
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	ts.Check(processOf(ts, args[0]).waitForStderr(pattern))
}

// printsCommand: prints NAME REGEXP waits until the stdout of a started program matches.
func printsCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "prints NAME REGEXP")
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	ts.Check(processOf(ts, args[0]).waitForStdout(pattern))
}

// asksCommand: asks [-stdout] NAME REGEXP sends SIGUSR1 to a started program until its stderr, or stdout, matches.
func asksCommand(ts *testscript.TestScript, args []string) {
	args, stdout := takeFlag(args, "-stdout")
	wantArgs(ts, len(args) == 2, "asks [-stdout] NAME REGEXP")
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	p := processOf(ts, args[0])
	stream := &p.stderr
	if stdout {
		stream = &p.stdout
	}
	ts.Check(p.askUntil(stream, pattern))
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
			ts.Fatalf("%s does not run on the CPUs %s:\n%s", thread, args[1], status)
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

// waitforCommand: waitfor PATTERN... waits until each pattern matches a file. A file of another process cannot be
// waited for, hence the polling.
func waitforCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) > 0, "waitfor PATTERN...")
	deadline := time.Now().Add(processTimeout)
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

// randfileCommand: randfile FILE SIZE makes a file of random bytes. The same name gives the same bytes.
func randfileCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "randfile FILE SIZE")
	size, err := parseSize(args[1])
	ts.Check(err)
	ts.Check(writeRandomFile(ts.MkAbs(args[0]), args[0], size))
}

// parseSize parses a number of bytes, or of KiB, MiB or GiB if K, M or G follows it.
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

// sameCommand: same FILE FILE compares the contents of two files, without printing them.
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

// truncateCommand: truncate FILE SIZE truncates a file.
func truncateCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "truncate FILE SIZE")
	size, err := parseSize(args[1])
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}

// xattrCommand: xattr FILE NAME VALUE sets an extended attribute of a file.
func xattrCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 3, "xattr FILE NAME VALUE")
	ts.Check(unix.Setxattr(ts.MkAbs(args[0]), args[1], []byte(args[2]), 0))
}

// hasxattrCommand: [!] hasxattr FILE NAME VALUE checks that a file has, or has not, an extended attribute.
func hasxattrCommand(ts *testscript.TestScript, neg bool, args []string) {
	wantArgs(ts, len(args) == 3, "[!] hasxattr FILE NAME VALUE")
	value := make([]byte, 100)
	n, err := unix.Getxattr(ts.MkAbs(args[0]), args[1], value)
	if has := err == nil && string(value[:n]) == args[2]; has == neg {
		ts.Fatalf("attribute %s of %s is %q (%v)", args[1], args[0], value[:max(0, n)], err)
	}
}

// canSetXattr reports whether temporary files can have extended attributes.
func canSetXattr() (bool, error) {
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
// other directories, by default those of both sides.
func cleanCommand(ts *testscript.TestScript, args []string) {
	if len(args) == 0 {
		args = []string{"host", "dpu"}
	}
	dirs := make([]string, len(args))
	for i, arg := range args {
		dirs[i] = ts.MkAbs(arg)
	}
	left, err := leftovers(ts.Getenv("DMA_COPY_SOFT_DIR"), dirs)
	ts.Check(err)
	if len(left) > 0 {
		ts.Fatalf("left behind: %s", strings.Join(left, ", "))
	}
}

// smalldiskCommand: smalldisk DIR SIZE mounts a file system of this size.
func smalldiskCommand(ts *testscript.TestScript, args []string) {
	wantArgs(ts, len(args) == 2, "smalldisk DIR SIZE")
	dir := ts.MkAbs(args[0])
	ts.Check(unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755,size="+args[1]))
	ts.Defer(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// canMount reports whether this process may mount file systems. In some containers root may not.
func canMount() (bool, error) {
	dir, err := os.MkdirTemp("", "dma-copy-mount")
	if err != nil {
		return false, err
	}
	defer os.Remove(dir)
	err = unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k")
	if err == syscall.EPERM || err == syscall.EACCES {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, unix.Unmount(dir, 0)
}
