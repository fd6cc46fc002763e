package main

import (
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/program"
)

// every returns the settings of all commands, those of a copy first.
func every() option.Commands { return program.New().Settings() }
