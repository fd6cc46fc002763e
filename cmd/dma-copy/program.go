package main

// newProgram returns the program with all its commands, in the order of the help.
func newProgram() *program {
	p := &program{copy: copyCommand(), version: printVersions}
	p.commands = []command{
		benchCommand(), bundleCommand(p), completionCommand(), configCommand(p), devicesCommand(), doctorCommand(),
		keysCommand(),
		localCommand(), lsCommand(), mkdirCommand(), pingCommand(), pullCommand(), pushCommand(), rmCommand(),
		serveCommand(), statusCommand(), syncCommand(), verifyCommand(), versionCommand(),
	}
	return p
}
