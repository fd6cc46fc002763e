//go:build cgo

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/doca"
)

func init() { childTasks["device"] = deviceWorks }

func TestDeviceWorksRestricted(t *testing.T) {
	needLandlock(t, abiRefer)
	runChild(t, "device", sandboxed(t))
}

// deviceWorks makes the connections of a daemon on the DPU, to a client, after the restriction.
func deviceWorks(directory string) (err error) {
	softDir := filepath.Join(directory, "run")
	driver, err := doca.Open(doca.Options{Choice: doca.ChooseSoft, SoftDir: softDir})
	if err != nil {
		return err
	}
	defer driver.Close()
	host, dpu, err := bothSides(driver)
	if err != nil {
		return err
	}
	defer host.Close()
	defer dpu.Close()
	rep, err := dpu.OpenRepresentor(host.Info().PCIAddress)
	if err != nil {
		return err
	}
	defer rep.Close()
	if _, err := Restrict(Policy{}.WithDevice(softDir)); err != nil {
		return err
	}
	for range 2 {
		if err := exchange(host, dpu, rep); err != nil {
			return err
		}
	}
	return copyRemote(host, dpu)
}

func bothSides(driver *doca.Driver) (host, dpu *doca.Device, err error) {
	infos, err := driver.Devices()
	if err != nil {
		return nil, nil, err
	}
	for _, info := range infos {
		if host == nil && info.IsHost() {
			host, err = driver.OpenDevice(info.PCIAddress)
		} else if dpu == nil && info.IsDPU() {
			dpu, err = driver.OpenDevice(info.PCIAddress)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return host, dpu, nil
}

func exchange(host, dpu *doca.Device, rep *doca.Representor) error {
	const name, wait = "sandbox test", time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	listener, err := comch.Listen(dpu, rep, name)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer listener.Close()
	client, err := comch.NewDialer(host, name, comch.Within(wait)).Dial(ctx)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	defer client.Close()
	server, err := listener.Accept(ctx, comch.Within(wait))
	if err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	defer server.Close()
	if err := client.Send(ctx, []byte("text")); err != nil {
		return err
	}
	message, err := server.Recv(ctx)
	if err != nil || string(message) != "text" {
		return fmt.Errorf("received %q: %w", message, err)
	}
	return nil
}

// copyRemote reads memory of the host with an engine of the DPU.
func copyRemote(host, dpu *doca.Device) error {
	const length = 1 << 16
	source, err := host.Alloc(length, doca.RemoteRead)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := dpu.Alloc(length, doca.LocalWrite)
	if err != nil {
		return err
	}
	defer target.Close()
	descriptor, err := source.Export()
	if err != nil {
		return err
	}
	remote, err := dpu.Import(descriptor, source.Address(), source.Len())
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer remote.Close()
	engine, err := dpu.NewEngine(1)
	if err != nil {
		return err
	}
	defer engine.Close()
	copy(source.Bytes(), "text")
	if _, err := engine.Submit([]doca.Copy{{Source: remote, Target: target, Length: length}}); err != nil {
		return err
	}
	completed := make([]doca.Completion, 1)
	if _, err := engine.Reap(context.Background(), completed); err != nil || completed[0].Err != nil {
		return errors.Join(err, completed[0].Err)
	}
	if !bytes.HasPrefix(target.Bytes(), []byte("text")) {
		return errors.New("the copy has other bytes than its source")
	}
	return nil
}
