//go:build ucx && cgo

package ucx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// importAndRead is the process "import": it reads from the window whose owner and key it is told, and gives up.
func importAndRead() error {
	var owner introduction
	if err := json.NewDecoder(os.Stdin).Decode(&owner); err != nil {
		return err
	}
	c, err := Open(processSettings(true))
	if err != nil {
		return err
	}
	w, err := c.NewWorker(1)
	if err != nil {
		return err
	}
	m, err := c.Alloc(windowLength, LocalWrite)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	e, err := w.Connect(owner.Worker, 1)
	if err != nil {
		return err
	}
	if key, err := e.ImportKey(owner.Key); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else if err := e.Get(m, 0, windowLength, owner.Window, key, 1); err == nil {
		var events [1]Event
		_, _ = w.Reap(ctx, events[:])
	}
	if err := errors.Join(w.Close(ctx), m.Close(), c.Close()); err != nil {
		return err
	}
	fmt.Println("ended")
	return nil
}
