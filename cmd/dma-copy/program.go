package main

import "github.com/dma-copy/dma-copy/internal/cli/root"

// newProgram returns the program with all its commands, in the order of the help.
func newProgram() *root.Program {
	p := &root.Program{Copy: copyCommand(), Version: printVersions}
	p.Commands = []root.Command{
		benchCommand(), bundleCommand(p, examineDevice), completionCommand(), configCommand(p), devicesCommand(),
		doctorCommand(),
		keysCommand(),
		localCommand(), lsCommand(), mkdirCommand(), pingCommand(), pullCommand(), pushCommand(), rmCommand(),
		serveCommand(), statusCommand(), syncCommand(), verifyCommand(), versionCommand(),
	}
	return p
}
