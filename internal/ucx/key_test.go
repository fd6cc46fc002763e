//go:build ucx && cgo

package ucx

import (
	"encoding/json"
	"fmt"
	"os"
)

// importAndRead is the process "import": it reads from the window whose owner and key it is told, and gives up.
func importAndRead() error {
	var owner introduction
	if err := json.NewDecoder(os.Stdin).Decode(&owner); err != nil {
		return err
	}
	own, err := openObjects(true, 1, LocalWrite)
	if err != nil {
		return err
	}
	e, err := own.worker.Connect(owner.Worker, 1)
	if err != nil {
		return err
	}
	if key, err := e.ImportKey(owner.Key); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		_ = e.Get(own.memory, 0, windowLength, owner.Window, key, 1) // it may fail
	}
	if err := own.giveUp(); err != nil {
		return err
	}
	fmt.Println("ended")
	return nil
}
