package config

import (
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/option"
)

// Every returns the settings of all commands, those of a copy first.
func Every() option.Commands {
	return option.Commands{
		&copying.Settings{}, &Bench{}, &Bundle{}, &Config{}, &Devices{}, &Doctor{}, &List{}, &Local{}, &MakeDir{},
		&Ping{},
		&Remove{}, &Serve{}, &Status{}, &Transfer{Kind: Push}, &Transfer{Kind: Sync}, &Verify{}, &Version{}, &Keys{},
	}
}
