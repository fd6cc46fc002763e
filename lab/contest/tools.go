package contest

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/e2e/filetree"
	"github.com/dma-copy/dma-copy/lab/bench"
)

// The tools to compare with.
const (
	toolCp    = "cp"
	toolRsync = "rsync"
	toolDD    = "dd"
	toolSocat = "socat"
	toolTar   = "tar"
	toolLimit = "limit" // limitProgram
)

// ToolNames are the tools to compare with.
var ToolNames = []string{toolCp, toolRsync, toolDD, toolSocat, toolTar, toolLimit, toolIperf, toolUCX}

// The tools for each measurement. Ratios are to the first one, those of trees also to the second.
var (
	fileTools = []string{toolCp, toolRsync, toolDD, toolSocat, toolLimit}
	treeTools = []string{toolCp, toolRsync, toolTar}

	connectedTools = []string{toolCp, toolRsync, toolLimit} // files, and trees but for the limit
)

// Tool is another program that copies files.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"` // as the tool prints it; absent if it is not installed
}

func (t Tool) installed() bool { return t.Version != "" }

// socatBlock makes socat read and write blocks of 1 MiB.
const socatBlock = "1048576"

// fileStages returns the command lines that copy the source, a file, to the target.
func (w *workspace) fileStages(tool string) [][]child {
	switch tool {
	case toolRsync:
		return single(toolRsync, w.source(), w.target())
	case toolDD:
		return single(toolDD, "if="+w.source(), "of="+w.target(), "bs=1M", "status=none")
	case toolSocat:
		return [][]child{{
			socatChild("ABSTRACT-LISTEN:"+w.socket(), "CREATE:"+w.target()),
			socatChild("OPEN:"+w.source()+",rdonly", "ABSTRACT-CONNECT:"+w.socket()+",retry=10000,interval=0.001"),
		}}
	case toolLimit:
		return w.limitStages()
	default:
		return single(toolCp, "--reflink=never", w.source(), w.target())
	}
}

// treeStages returns the command lines that copy the source, a tree, to a target.
func (w *workspace) treeStages(tool, target string) [][]child {
	switch tool {
	case toolRsync:
		return single(toolRsync, "-a", w.source()+"/", target+"/")
	case toolTar:
		const pipe = `mkdir "$2" && tar -C "$1" -cf - . | tar -C "$2" -xpf -`
		return single("sh", "-c", pipe, "sh", w.source(), target)
	default:
		return single(toolCp, "-r", "--reflink=never", w.source(), target)
	}
}

// treePreserved returns what of a tree a tool preserves with the flags of treeStages.
func treePreserved(tool string) filetree.Comparison {
	switch tool {
	case toolRsync:
		return filetree.Comparison{Modes: true, Times: time.Nanosecond}
	case toolTar:
		return filetree.Comparison{Modes: true, Times: time.Second}
	default:
		return filetree.Comparison{}
	}
}

// single returns the stages of one process.
func single(argv ...string) [][]child { return [][]child{{{argv: argv}}} }

func socatChild(from, to string) child {
	return child{argv: []string{"socat", "-u", "-b", socatBlock, from, to}}
}

// syncFile returns the command lines that make the copy of a file by a tool as durable as one by this program.
func (w *workspace) syncFile(durability string) [][]child {
	switch durability {
	case "file":
		return single("sync", w.target())
	case "full":
		return single("sync", w.target(), w.targetDir())
	default:
		return nil
	}
}

// syncTree is syncFile for a tree. It flushes the whole file system, which costs less than each file by itself.
func syncTree(target, durability string) [][]child {
	if durability == "none" {
		return nil
	}
	return single("sync", "-f", target)
}

// versionLine matches the first line with a version number.
var versionLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^.*\d+\.\d+.*$`) })

// findTools asks those of the named tools that are usable for their versions.
func findTools(ctx context.Context, names, usable []string) []Tool {
	var tools []Tool
	for _, name := range usable {
		if slices.Contains(names, name) {
			tools = append(tools, Tool{Name: name, Version: versionOf(ctx, name)})
		}
	}
	return tools
}

func versionOf(ctx context.Context, name string) string {
	command := []string{name, "--version"}
	switch name {
	case toolSocat:
		command[1] = "-V"
	case toolUCX:
		command = []string{"ucx_info", "-v"} // of the same package
	case toolLimit:
		if command[0] = findLimit(); command[0] == "" {
			return ""
		}
	}
	output, err := exec.CommandContext(ctx, command[0], command[1]).Output()
	if errors.Is(err, exec.ErrNotFound) {
		return ""
	}
	if line := versionLine().Find(output); line != nil {
		return strings.TrimSpace(string(line))
	}
	return unknown
}

// toolCopy is the candidate for a tool.
type toolCopy struct {
	task
	stages [][]child
}

func (c *toolCopy) Run(ctx context.Context) (bench.Run, error) {
	run, _, err := runStages(ctx, c.stages)
	return run, err
}

func (c *toolCopy) commands() [][]string { return commandsOf(c.stages) }

func commandsOf(stages [][]child) (commands [][]string) {
	for _, stage := range stages {
		for _, j := range stage {
			commands = append(commands, j.argv)
		}
	}
	return commands
}
