package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// childTask names what this program does instead of the tests when it is started by them. A process that restricts
// itself can test nothing else afterwards.
const childTask = "SANDBOX_TEST_CHILD"

func TestMain(m *testing.M) {
	task := os.Getenv(childTask)
	if task == "" {
		os.Exit(m.Run())
	}
	if err := childTasks[task](os.Args[len(os.Args)-1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// runChild runs a task in a process of its own and fails the test with its error. directory is the task's argument.
func runChild(t *testing.T, task, directory string) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), executable, directory)
	child.Env = append(os.Environ(), childTask+"="+task)
	if output, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}
