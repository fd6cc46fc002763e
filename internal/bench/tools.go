package bench

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"sync"
)

// ToolNames are the tools to compare with. Ratios are to the first one.
var ToolNames = []string{toolCp, "rsync", "dd", "socat"}

const toolCp = "cp"

// Tool is another program that copies files.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"` // as the tool prints it; absent if it is not installed
}

func (t Tool) installed() bool { return t.Version != "" }

// socatBlock makes socat read and write blocks of 1 MiB.
const socatBlock = "1048576"

// copyStages returns the command lines that copy the source to the target.
func (w *workspace) copyStages(tool string) [][]child {
	switch tool {
	case "rsync":
		return [][]child{{{argv: []string{"rsync", w.source(), w.target()}}}}
	case "dd":
		return [][]child{{{argv: []string{"dd", "if=" + w.source(), "of=" + w.target(), "bs=1M", "status=none"}}}}
	case "socat":
		return [][]child{{
			socatChild("ABSTRACT-LISTEN:"+w.socket(), "CREATE:"+w.target()),
			socatChild("OPEN:"+w.source()+",rdonly", "ABSTRACT-CONNECT:"+w.socket()+",retry=10000,interval=0.001"),
		}}
	default:
		return [][]child{{{argv: []string{toolCp, "--reflink=never", w.source(), w.target()}}}}
	}
}

func socatChild(from, to string) child {
	return child{argv: []string{"socat", "-u", "-b", socatBlock, from, to}}
}

// syncStages returns the command lines that make the copy of a tool as durable as one of this program.
func (w *workspace) syncStages(durability string) [][]child {
	switch durability {
	case "file":
		return [][]child{{{argv: []string{"sync", w.target()}}}}
	case "full":
		return [][]child{{{argv: []string{"sync", w.target(), w.targetDir()}}}}
	default:
		return nil
	}
}

// versionLine matches the first line with a version number.
var versionLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^.*\d+\.\d+.*$`) })

// findTools asks each tool for its version.
func findTools(ctx context.Context, names []string) []Tool {
	var tools []Tool
	for _, name := range names {
		tools = append(tools, Tool{Name: name, Version: versionOf(ctx, name)})
	}
	return tools
}

func versionOf(ctx context.Context, name string) string {
	versionFlag := "--version"
	if name == "socat" {
		versionFlag = "-V"
	}
	output, err := exec.CommandContext(ctx, name, versionFlag).Output()
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
	workspace     *workspace
	size          int64
	stages        [][]child
	memoryTouched *bool // whether memory was touched before all runs of the group
}

func (w *workspace) newToolCopy(tool string, size int64, durability string, memoryTouched *bool) *toolCopy {
	stages := append(w.copyStages(tool), w.syncStages(durability)...)
	return &toolCopy{workspace: w, size: size, stages: stages, memoryTouched: memoryTouched}
}

func (c *toolCopy) prepare(context.Context) error {
	return c.workspace.prepareRun(c.size, c.memoryTouched)
}

func (c *toolCopy) run(ctx context.Context) (Run, error) {
	run, _, err := runStages(ctx, c.stages)
	return run, err
}

func (c *toolCopy) check(ctx context.Context, thoroughly bool) error {
	return c.workspace.checkRun(ctx, c.size, thoroughly)
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
