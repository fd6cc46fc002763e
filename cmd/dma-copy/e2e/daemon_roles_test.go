package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDaemonOfSeveralFunctions serves two host functions with one daemon, whose commands copy at the same time. A
// daemon for one of them is refused with the process id of the first, in the same runtime directory and in another
// one, by the device.
func TestDaemonOfSeveralFunctions(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	f.createLocal(100_000, "a", "b")
	d := f.serve("-r b1:00.0 ")
	pushes := []side{f.pushFrom("b1:00.0", "a"), f.pushFrom("b1:00.1", "b")}
	for _, s := range pushes {
		s.expectExit(exitOK)
	}
	f.expectPushed("a", "b")

	const second = "dma-copy serve -p 03:00.1 -r b1:00.0 --share files=dpu/share --keys dpu.keys --runtime-dir dpu/"
	refused := f.start("second", second+"run")
	refused.expectExit(exitDevice)
	refused.expectStderr(fmt.Sprintf("is running for 0000:03:00.1 0000:b1:00.0: process %d:", d.command.Process.Pid))
	refused = f.start("second", second+"other")
	refused.expectExit(exitDevice)
	refused.expectStderr("another daemon already serves representor b1:00.0")
	f.expectCommand("ls :files")
	d.stop()
}

// pushFrom starts a push over one of the host's functions.
func (f *daemonFixture) pushFrom(function, name string) side {
	f.t.Helper()
	return f.start("push", fmt.Sprintf("dma-copy push -p %s --keys host.keys host/%s :files/", function, name))
}

// TestCopiesBesideADaemon makes one-shot copies, and one with a peer of the reference protocol, over the function for
// which a daemon copies at the same time.
func TestCopiesBesideADaemon(t *testing.T) {
	t.Parallel()
	forEachServingSide(t, func(f *daemonFixture) {
		f.createLocal(pacedSize, "served")
		d := f.serve("")
		served := d.push(f.commands(), "served")
		f.createFile("host", 3_000_000)
		f.expectTransfer("")
		f.expectSameFiles()
		must(f.t, os.Remove(f.path("dpu")))
		host, dpu := f.start("host", refpeerHost), f.start("dpu", dpuCommand)
		host.expectExit(exitOK)
		dpu.expectExit(exitOK)
		f.expectSameFiles()
		served.expectExitIn(exitOK)
		f.expectPushed("served")
		d.stop()
	})
}

// TestCommandsOnTheDPUWaitForOthers starts more commands on the DPU than the daemon on the host can serve at once: the
// others are served afterwards. One whose --wait is shorter ends with 7.
func TestCommandsOnTheDPUWaitForOthers(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "host")
	first := []string{"1", "2", "3", "4"}
	f.createLocal(2*pacedSize, first...)
	f.createLocal(1000, "a", "b")
	d := f.serve("--idle-timeout 5m") // longer than the commands are stopped
	var served []side
	for _, name := range first {
		served = append(served, f.command("push "+pacedFlags+"dpu/"+name+" :files/"))
	}
	d.waitForStatus("full", func(s daemonStatus) bool { return s.Running == len(first) })
	for _, s := range served {
		s.stop() // so that the daemon still serves them when the hasty one gives up
	}
	waiting := []side{f.command("push -l INFO dpu/a :files/"), f.command("push -l INFO dpu/b :files/")}
	answered, busy := false, "the daemon served other commands until the end of --wait"
	for wait := time.Second; wait < time.Minute; wait *= 2 { // until there was an answer in time
		hasty := f.command(fmt.Sprintf("ls --wait %s :", wait))
		hasty.expectExit(exitPeer)
		if answered = strings.Contains(hasty.stderr.String(), busy); answered {
			break
		}
	}
	if !answered {
		t.Errorf("no command says that %s", busy)
	}
	for _, s := range served {
		must(t, s.signal(syscall.SIGCONT))
	}
	for _, s := range append(waiting, served...) {
		s.expectExitIn(exitOK)
	}
	f.expectPushed("1", "2", "3", "4", "a", "b")
	d.stop()
}

// TestDMAOfADaemonFails fails the first DMA task of a daemon on the DPU, after its handshake and the messages of the
// request. The copy ends with the daemon's code, leaves nothing, and can be repeated.
func TestDMAOfADaemonFails(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	f.environment = append(f.environment, "DMA_COPY_SOFT_FAULTS=fail_memcpy=1:DRIVER")
	f.createLocal(pacedSize, "a")
	d := f.serve("")
	failed := f.command("push host/a :files/")
	failed.expectExit(exitDevice)
	failed.expectStderr("doca_dma_task_memcpy: DOCA_ERROR_DRIVER")
	f.expectCommand("push host/a :files/")
	f.expectPushed("a")
	d.stop()
}
