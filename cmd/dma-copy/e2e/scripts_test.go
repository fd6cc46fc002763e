package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/doca"
)

const scriptFolder = "testdata/script"

// TestMain lets this binary be the reference's model when it is called by its name.
func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"refpeer": refpeerMain})
}

// leakChecked fails a run of tests that leaves goroutines behind.
type leakChecked struct{ tests *testing.M }

func (l leakChecked) Run() int {
	if code := l.tests.Run(); code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestScripts runs the program as two processes, as people do. docs/TESTING.md explains the commands of the scripts.
func TestScripts(t *testing.T) {
	t.Parallel()
	needSoftwareDevice(t)
	testscript.Run(t, testscript.Params{
		Dir:                 scriptFolder,
		Setup:               setUpScript,
		Cmds:                scriptCommands,
		Condition:           scriptCondition,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// TestScriptsSayTheirPromise keeps the scripts readable: what for comes first, and each looks for what is left behind.
func TestScriptsSayTheirPromise(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join(scriptFolder, "*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts, error %v", len(scripts), err)
	}
	cleans := regexp.MustCompile(`(?m)^clean\b`)
	for _, script := range scripts {
		text := readFile(t, script)
		if !strings.HasPrefix(text, "# ") {
			t.Errorf("%s does not begin with a comment that says what it promises", script)
		}
		if !cleans.MatchString(text) {
			t.Errorf("%s does not say clean", script)
		}
	}
}

// needSoftwareDevice skips where the program was built without any device, which is what CGO_ENABLED=0 means.
func needSoftwareDevice(t *testing.T) {
	t.Helper()
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: t.TempDir()})
	if errors.Is(err, doca.ErrNoCgo) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Close(); err != nil {
		t.Error(err)
	}
}

// setUpScript gives each script a machine of its own, a folder for each side, and the way to the files in configs/.
func setUpScript(env *testscript.Env) error {
	configs, configsErr := filepath.Abs("../../../configs")
	variables, err := furnish(env.WorkDir)
	cpu, cpuErr := usableCPU()
	env.Vars = append(env.Vars, append(variables, "CONFIGS="+configs, "CPU="+cpu, "NODE="+nodeOf(cpu))...)
	processes := map[string]*process{}
	env.Values[processesKey{}] = processes
	env.Defer(func() {
		for _, p := range processes {
			p.kill()
		}
	})
	return errors.Join(configsErr, err, cpuErr)
}

// usableCPU is the number of some CPU that the programs may use.
func usableCPU() (string, error) {
	m, err := placement.ThisMachine()
	first, _, _ := strings.Cut(m.Usable.String(), ",")
	first, _, _ = strings.Cut(first, "-")
	return first, err
}

// nodeOf is the number of a CPU's NUMA node, empty where the kernel has none; then [numa] is false.
func nodeOf(cpu string) string {
	const folder = "/sys/devices/system/cpu/cpu"
	links, _ := filepath.Glob(folder + cpu + "/node*") // fails for a bad pattern only
	return strings.TrimPrefix(strings.Join(links, ""), folder+cpu+"/node")
}

// furnish makes the folders of the two sides and the runtime directory in which they meet. It returns the variables
// that make the program use it.
func furnish(folder string) ([]string, error) {
	if err := installProgram(); err != nil {
		return nil, err
	}
	runtime := filepath.Join(folder, runtimeFolder)
	for _, made := range []string{runtime, filepath.Join(folder, "host"), filepath.Join(folder, "dpu")} {
		if err := os.Mkdir(made, 0o755); err != nil {
			return nil, err
		}
	}
	variables := []string{"DMA_COPY_SOFT_DIR=" + runtime, "DMA_COPY_DRIVER=soft"}
	if quirks, chosen := os.LookupEnv("DMA_COPY_SOFT_QUIRKS"); chosen {
		variables = append(variables, "DMA_COPY_SOFT_QUIRKS="+quirks) // the programs' device is to be the tests'
	}
	if coverage := flag.Lookup("test.gocoverdir").Value.String(); coverage != "" {
		variables = append(variables, "GOCOVERDIR="+coverage)
	}
	if os.Getenv("GORACE") == "" {
		variables = append(variables, "GORACE=atexit_sleep_ms=10") // a second for each process otherwise
	}
	return variables, os.Chmod(runtime, 0o700)
}

// scriptCondition answers [root], [mount], [xattr], [numa] and [doca].
func scriptCondition(condition string) (bool, error) {
	switch condition {
	case "root":
		return os.Geteuid() == 0, nil
	case "mount":
		return canMount()
	case "xattr":
		return canXattr()
	case "numa":
		cpu, err := usableCPU()
		return nodeOf(cpu) != "", err
	case "doca":
		driver, err := doca.Open(doca.Options{Choice: doca.ChooseDOCA})
		if err != nil {
			return false, nil
		}
		return true, driver.Close()
	}
	return false, fmt.Errorf("unknown condition %q", condition)
}
