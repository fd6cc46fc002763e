// Package docatest is the suite that every driver of package doca must pass, and helpers for the tests of other
// packages.
//
// The suite plays both sides of a copy in one process, so it needs a driver with host functions and functions of the
// DPU. It asserts what package doca documents, and nothing that is particular to one driver.
package docatest

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// topic is a part of the device layer. After it nothing that it opened may be left open.
type topic struct {
	name  string
	cases []testCase
}

type testCase struct {
	name string
	run  func(*bench)
}

var topics = []topic{
	{"devices", deviceCases},
	{"memory", memoryCases},
	{"descriptors", descriptorCases},
	{"engine", engineCases},
	{"source lists", gatherCases},
	{"engine failure", engineFailureCases},
	{"engine life", engineLifeCases},
	{"channel", channelCases},
	{"messages", messageCases},
	{"several clients", clientsCases},
	{"disconnect", disconnectCases},
	{"consumers and producers", fastPathCases},
	{"life of consumers and producers", fastPathLifeCases},
	{"closed", closedCases},
	{"idle", idleCases},
}

// Run runs the suite. open is called once for each topic; Run closes what it returns.
func Run(t *testing.T, open func(t *testing.T) *doca.Driver) { run(t, open, false) }

// RunPolled is Run with channels whose callers poll.
func RunPolled(t *testing.T, open func(t *testing.T) *doca.Driver) { run(t, open, true) }

func run(t *testing.T, open func(t *testing.T) *doca.Driver, polled bool) {
	for _, topic := range topics {
		t.Run(topic.name, func(t *testing.T) {
			driver := open(t)
			before := TakeInventory(t)
			for _, c := range topic.cases {
				t.Run(c.name, func(t *testing.T) {
					CheckHandles(t, driver)
					c.run(&bench{T: t, driver: driver, polled: polled})
				})
			}
			before.MustBeUnchanged(t)
			if err := driver.Close(); err != nil {
				t.Errorf("closing the driver: %v", err)
			}
			if handles := doca.OpenHandles(); len(handles) > 0 {
				t.Errorf("still open after the driver: %v", handles)
			}
		})
	}
}
