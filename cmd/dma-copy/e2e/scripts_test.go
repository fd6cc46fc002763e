package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dma-copy/dma-copy/internal/doca"
)

const scriptDir = "testdata/script"

// TestScripts runs the program as two processes, as people do. docs/internals/testing.md explains their commands.
func TestScripts(t *testing.T) {
	t.Parallel()
	requireSoftwareDevice(t)
	testscript.Run(t, testscript.Params{
		Dir:                 scriptDir,
		Setup:               setUpScript,
		Cmds:                scriptCommands,
		Condition:           scriptCondition,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// TestScriptsStateTheirPurpose expects each script to begin with a comment that says what it tests, and to check what
// is left behind.
func TestScriptsStateTheirPurpose(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join(scriptDir, "*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts, error %v", len(scripts), err)
	}
	clean := regexp.MustCompile(`(?m)^clean\b`)
	for _, script := range scripts {
		text := readFile(t, script)
		if !strings.HasPrefix(text, "# ") {
			t.Errorf("%s does not begin with a comment that says what it tests", script)
		}
		if !clean.MatchString(text) {
			t.Errorf("%s does not contain the command clean", script)
		}
	}
}

// requireSoftwareDevice skips the test where there is no software device, as with CGO_ENABLED=0.
func requireSoftwareDevice(t *testing.T) {
	t.Helper()
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: t.TempDir()})
	if errors.Is(err, doca.ErrNoCgo) {
		t.Skip(err)
	}
	must(t, err)
	if err := driver.Close(); err != nil {
		t.Error(err)
	}
}

// setUpScript gives each script software devices and a TCP port of its own, a directory for each side, and the path of
// configs/.
func setUpScript(env *testscript.Env) error {
	configs, configsErr := filepath.Abs(filepath.Join(moduleRoot, "configs"))
	variables, err := prepareDirs(env.WorkDir)
	cpu, cpuErr := usableCPU()
	port, portErr := freePort()
	env.Vars = append(env.Vars, append(variables,
		"CONFIGS="+configs, "CPU="+cpu, "NODE="+nodeOf(cpu), "PORT="+strconv.Itoa(port),
		"DMA_COPY_VERBOSE=true")...)
	processes, recent := map[string]*process{}, &recentProcesses{}
	env.Values[processesKey{}], env.Values[recentKey{}] = processes, recent
	env.Defer(func() {
		if test, is := env.T().(failing); is {
			recent.reportIfFailed(test)
		}
		for _, p := range processes {
			p.kill()
		}
	})
	return errors.Join(configsErr, err, cpuErr, portErr)
}

// usableCPU returns the number of a CPU that the programs may use.
func usableCPU() (string, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", err
	}
	match := regexp.MustCompile(`(?m)^Cpus_allowed_list:\s+(\d+)`).FindSubmatch(status)
	if match == nil {
		return "", errors.New("/proc/self/status names no CPU")
	}
	return string(match[1]), nil
}

// nodeOf returns the number of a CPU's NUMA node, empty where the kernel has none; then the condition [numa] is false.
func nodeOf(cpu string) string {
	const dir = "/sys/devices/system/cpu/cpu"
	links, _ := filepath.Glob(dir + cpu + "/node*") // fails for a bad pattern only
	return strings.TrimPrefix(strings.Join(links, ""), dir+cpu+"/node")
}

// prepareDirs makes the directories of the two sides and the runtime directory, and puts the program into PATH. It
// returns the environment variables that make the program use the runtime directory.
func prepareDirs(dir string) ([]string, error) {
	if err := installProgram(); err != nil {
		return nil, err
	}
	runtime := filepath.Join(dir, runtimeDir)
	for _, made := range []string{runtime, filepath.Join(dir, "host"), filepath.Join(dir, "dpu")} {
		if err := os.Mkdir(made, 0o755); err != nil {
			return nil, err
		}
	}
	variables := []string{"DMA_COPY_SOFT_DIR=" + runtime, "DMA_COPY_DRIVER=soft"}
	if quirks, set := os.LookupEnv("DMA_COPY_SOFT_QUIRKS"); set {
		variables = append(variables, "DMA_COPY_SOFT_QUIRKS="+quirks) // the programs use the same device as the tests
	}
	if coverage := flag.Lookup("test.gocoverdir").Value.String(); coverage != "" {
		variables = append(variables, "GOCOVERDIR="+coverage)
	}
	if os.Getenv("GORACE") == "" {
		variables = append(variables, "GORACE=atexit_sleep_ms=10") // by default each process sleeps for a second
	}
	return variables, os.Chmod(runtime, 0o700)
}

// scriptCondition evaluates [root], [mount], [landlock], [xattr], [numa], [ucx] and [doca].
func scriptCondition(condition string) (bool, error) {
	switch condition {
	case "root":
		return os.Geteuid() == 0, nil
	case "mount":
		return canMount()
	case "landlock":
		version, err := landlock.LandlockGetABIVersion()
		return err == nil && version >= 2, nil // the first version is not used
	case "xattr":
		return canSetXattr()
	case "numa":
		cpu, err := usableCPU()
		return nodeOf(cpu) != "", err
	case "ucx":
		return hasUCX()
	case "doca":
		driver, err := doca.Open(doca.Options{Choice: doca.ChooseDOCA})
		if err != nil {
			return false, nil
		}
		return true, driver.Close()
	}
	return false, fmt.Errorf("unknown condition %q", condition)
}
