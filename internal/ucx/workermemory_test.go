//go:build ucx && cgo

package ucx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A worker has no more memory than counts for it in the limit of a daemon. What the process has of all workers is
// compared, because UCX has some memory once.
func TestWorkerMemory(t *testing.T) {
	for name, tls := range transports {
		t.Run(name, func(t *testing.T) {
			each := WorkerMemory
			if name == "rdma" {
				each = WorkerMemoryRDMA
			}
			command := processCommand(t, "memory")
			command.Env = append(command.Env, transportsVariable+"="+strings.Join(tls, ","))
			out, err := command.Output()
			if err != nil {
				t.Fatal(err)
			}
			var grown int
			if _, err := fmt.Sscan(string(out), &grown); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d workers have %d bytes, each %d", measuredWorkers, grown, grown/measuredWorkers)
			if grown > measuredWorkers*each || grown < measuredWorkers*each/20 {
				t.Errorf("%d bytes for a worker are counted, and it has %d", each, grown/measuredWorkers)
			}
		})
	}
}

const measuredWorkers = 8

// measureWorkers is the process "memory": it sends between workers, and prints by how many bytes they have made it
// grow.
func measureWorkers() error {
	c, err := Open(processSettings(false))
	if err != nil {
		return err
	}
	from, err := c.Alloc(windowLength, LocalRead)
	if err != nil {
		return err
	}
	to, err := c.Alloc(measuredWorkers*windowLength, LocalWrite)
	if err != nil {
		return err
	}
	clear(to.Bytes())
	before, err := resident()
	if err != nil {
		return err
	}
	workers, err := sendFromEach(c, from, to)
	if err != nil {
		return err
	}
	after, err := resident()
	if err != nil {
		return err
	}
	fmt.Println(after - before)
	ended, cancel := context.WithCancel(context.Background())
	cancel() // over RDMA an endpoint waits for minutes for its peer's worker if that is closed
	for _, w := range workers {
		err = errors.Join(err, w.Close(ended))
	}
	return errors.Join(err, from.Close(), to.Close(), c.Close())
}

// sendFromEach returns workers, the first of which has a message of each other one.
func sendFromEach(c *Context, from, to *Memory) (workers []*Worker, err error) {
	for i := range measuredWorkers {
		w, err := c.NewWorker(1)
		if err != nil {
			return nil, err
		}
		if workers = append(workers, w); i == 0 {
			err = w.Receive(Slots{Memory: to, Size: windowLength, Step: 1, Count: measuredWorkers, Token: token})
		} else {
			err = sendTo(workers[0], w, from, uint32(i))
		}
		if err != nil {
			return nil, err
		}
	}
	return workers, nil
}

func sendTo(receiver, sender *Worker, from *Memory, slot uint32) error {
	address, err := receiver.Address()
	if err != nil {
		return err
	}
	e, err := sender.Connect(address, 1)
	if err == nil {
		err = e.Send(token, slot, from, 0, windowLength, 1)
	}
	for arrived := false; err == nil && (sender.Inflight() > 0 || !arrived); {
		var events [4]Event
		for _, e := range events[:sender.Poll(events[:])] {
			err = errors.Join(err, e.Err)
		}
		arrived = receiver.Poll(events[:1]) > 0 || arrived
	}
	return err
}

// resident returns the memory of this process in bytes, without files.
func resident() (bytes int, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "RssAnon" && name != "RssShmem" {
			continue
		}
		kilobytes, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		if err != nil {
			return 0, err
		}
		bytes += kilobytes << 10
	}
	return bytes, nil
}
