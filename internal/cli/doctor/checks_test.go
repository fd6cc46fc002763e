package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/probe"
)

// checkCase is the expected verdict and exit code of one finding, and parts of its line.
type checkCase struct {
	name    string
	found   finding
	verdict verdict
	code    int
	parts   []string
}

func runCheckCases(t *testing.T, cases []checkCase) {
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if tc.found.Verdict != tc.verdict || tc.found.Code != tc.code {
				t.Errorf("verdict %s, code %d, want %s, %d", tc.found.Verdict, tc.found.Code, tc.verdict, tc.code)
			}
			line := tc.found.String()
			for _, part := range append(tc.parts, fmt.Sprintf("%-4s  ", tc.verdict)) {
				if !strings.Contains(line, part) {
					t.Errorf("%q lacks %q", line, part)
				}
			}
			if tc.verdict != verdictOK && !strings.Contains(line, "  -- ") && tc.found.Fix != "" {
				t.Errorf("%q has no fix", line)
			}
		})
	}
}

var (
	notInstalled = &doca.LoadError{Reason: "DOCA's libraries were not found"}
	installation = doca.Installation{Directory: "/opt/d", Version: "3.0.0058",
		Files: []string{"/opt/d/libdoca_common.so.3.0.0058", "/opt/d/libdoca_dma.so.3.0.0058"}}
	hardware = inventory.Driver{Name: "doca", Hardware: true, Version: "3.0.0058", Reason: "it was requested"}
	software = inventory.Driver{Name: "soft", Version: "soft 1",
		Reason: "the software device is used because DOCA's libraries were not found"}
)

// withDriver returns the settings of --driver.
func withDriver(name string) Settings { return Settings{Driver: device.Driver{Name: name}} }

// withHardware returns the settings of --driver with --require-hw.
func withHardware(name string) Settings {
	return Settings{Driver: device.Driver{Name: name, RequireHW: true}}
}

func TestCheckInstall(t *testing.T) {
	absent := doca.Installation{}
	runCheckCases(t, []checkCase{
		{"installed", checkInstall(installation, nil, withDriver(device.DriverAuto)),
			verdictOK, 0,
			[]string{"DOCA 3.0.0058", "/opt/d: libdoca_common.so.3.0.0058, libdoca_dma.so.3.0.0058"}},
		{"absent, not wanted", checkInstall(absent, notInstalled, withDriver(device.DriverSoft)), verdictOK, 0,
			[]string{"not needed"}},
		{"absent, auto", checkInstall(absent, notInstalled, withDriver(device.DriverAuto)), verdictWarn, 0,
			[]string{"were not found  -- install DOCA's", "--doca-libdir"}},
		{"absent, asked for", checkInstall(absent, notInstalled, withDriver(device.DriverDOCA)), verdictFail, 6,
			[]string{"-- install"}},
		{"absent, hardware required", checkInstall(absent, notInstalled, withHardware(device.DriverAuto)),
			verdictFail, 13, nil},
		{"absent, hardware required of soft", checkInstall(absent, notInstalled, withHardware(device.DriverSoft)),
			verdictFail, 13, nil},
	})
}

func TestCheckDriver(t *testing.T) {
	refused := fmt.Errorf("%w, but %s", doca.ErrHardwareRequired, software.Reason)
	kit := inventory.Driver{Name: device.DriverDOCA, Version: "3.0.0999", Reason: "DOCA's libraries find a device"}
	runCheckCases(t, []checkCase{
		{"hardware", checkDriver(hardware, nil, nil, Settings{}), verdictOK, 0,
			[]string{"doca 3.0.0058 (DMA engine), because it was requested"}},
		{"soft, asked for", checkDriver(software, nil, notInstalled, withDriver(device.DriverSoft)), verdictOK, 0,
			[]string{"soft 1"}},
		{"soft, fallen back to", checkDriver(software, nil, notInstalled, withDriver(device.DriverAuto)), verdictWarn,
			0,
			[]string{"because DOCA cannot be loaded (see above)  -- fix that"}},
		{"the kit", checkDriver(kit, nil, nil, withDriver(device.DriverAuto)), verdictWarn, 0,
			[]string{"3.0.0999 (software device, no hardware): the libraries are the development kit's  -- to use a"}},
		{"the kit, asked for", checkDriver(kit, nil, nil, withDriver(device.DriverDOCA)), verdictWarn, 0,
			[]string{"the libraries are the development kit's"}},
		{"hardware required", checkDriver(inventory.Driver{}, refused, notInstalled, Settings{}), verdictFail, 13,
			[]string{"DOCA cannot be loaded (see above)  -- leave out --require-hw"}},
		{"not loaded", checkDriver(inventory.Driver{}, notInstalled, notInstalled, Settings{}), verdictFail, 6,
			[]string{"driver: DOCA cannot be loaded (see above)  -- install"}},
		{"soft refused", checkDriver(inventory.Driver{}, &doca.SoftError{Reason: "limit x is not known"}, nil,
			Settings{}), verdictFail, 3,
			[]string{"limit x is not known"}},
		{"no cgo", checkDriver(inventory.Driver{}, doca.ErrNoCgo, nil, Settings{}), verdictFail, 6,
			[]string{"without cgo"}},
	})
}

func hostDevice() *inventory.Device {
	return &inventory.Device{PCIAddress: "0000:b1:00.1", RDMAName: "mlx5_1", NetName: "enp1", HostSide: true,
		DMA: inventory.DMA{CopySupported: true}, Memory: inventory.Memory{ExportSupported: true}}
}

func dpuDevice(functions ...string) *inventory.Device {
	d := &inventory.Device{PCIAddress: "0000:03:00.0", RDMAName: "mlx5_2", DPUSide: true,
		DMA: inventory.DMA{CopySupported: true}, Memory: inventory.Memory{ImportSupported: true}}
	for _, function := range functions {
		d.Representors = append(d.Representors, inventory.Representor{HostFunction: function})
	}
	return d
}

func TestCheckDevices(t *testing.T) {
	both := []*inventory.Device{hostDevice(), dpuDevice()}
	runCheckCases(t, []checkCase{
		{"none", checkDevices(nil, Settings{}), verdictFail, 6, []string{"none found", "lspci"}},
		{"two", checkDevices(both, Settings{}), verdictOK, 0,
			[]string{"0000:b1:00.1 (host side), 0000:03:00.0 (DPU side)"}},
		{"an SF", checkDevices(withSF().Devices, Settings{}), verdictOK, 0,
			[]string{"0000:b1:00.1 (host side), 0000:03:00.0 (DPU side), mlx5_5 (host side)"}},
		{"named by address", checkDevices(both, Settings{Device: "B1:00.1"}), verdictOK, 0, nil},
		{"named by RDMA device", checkDevices(both, Settings{Device: "mlx5_2"}), verdictOK, 0, nil},
		{"named and absent", checkDevices(both, Settings{Device: "b1:00.0"}), verdictFail, 6,
			[]string{"b1:00.0 not found"}},
	})
}

// changedDevice returns a list of the device with a change.
func changedDevice(base *inventory.Device, change func(*inventory.Device)) []*inventory.Device {
	change(base)
	return []*inventory.Device{base}
}

func withFastPath(d *inventory.Device) *inventory.Device {
	d.FastPath = inventory.FastPath{Consumers: inventory.Port{Supported: true},
		Producers: inventory.Port{Supported: true}, MaxImmediateBytes: 32}
	return d
}

func TestCheckEachDevice(t *testing.T) {
	cases := []struct {
		name    string
		devices []*inventory.Device
		lines   []string
	}{
		{"all well", []*inventory.Device{hostDevice(), dpuDevice()}, nil},
		{"no channel", changedDevice(hostDevice(), func(d *inventory.Device) { d.HostSide = false }),
			[]string{"has no control channel"}},
		{"no DMA", changedDevice(dpuDevice(), func(d *inventory.Device) { d.DMA.CopySupported = false }),
			[]string{"does not support DMA copies"}},
		{"no import", changedDevice(dpuDevice(), func(d *inventory.Device) { d.Memory.ImportSupported = false }),
			[]string{"0000:03:00.0 cannot import memory from the host and does not support Comch producers"}},
		{"no import, but the fast path", changedDevice(withFastPath(dpuDevice()), func(d *inventory.Device) {
			d.Memory.ImportSupported = false
		}), []string{"0000:03:00.0 cannot import memory from the host: copies use Comch producers and consumers"}},
		{"no DMA, but the fast path", changedDevice(withFastPath(dpuDevice()), func(d *inventory.Device) {
			d.DMA.CopySupported = false
		}), []string{"0000:03:00.0 does not support DMA copies: copies use Comch producers and consumers instead"}},
		{"no DMA on an SF of the host, which needs none", changedDevice(withFastPath(hostDevice()),
			func(d *inventory.Device) {
				d.RDMAName, d.FunctionType, d.DMA.CopySupported = "mlx5_5", "SF", false
			}), nil},
		{"no export from an SF, but the fast path", changedDevice(withFastPath(hostDevice()),
			func(d *inventory.Device) {
				d.RDMAName, d.FunctionType, d.Memory.ExportSupported = "mlx5_5", "SF", false
			}), []string{"mlx5_5 cannot export memory to the DPU: copies use Comch producers and consumers"}},
		{"fast path for small messages only", changedDevice(withFastPath(dpuDevice()), func(d *inventory.Device) {
			d.Memory.ImportSupported, d.FastPath.Producers.MaxMessageBytes = false, 4095
		}), []string{"cannot import memory from the host and sends and receives less than 4 KiB"}},
		{"no export", changedDevice(hostDevice(), func(d *inventory.Device) { d.Memory.ExportSupported = false }),
			[]string{"cannot export"}},
		{"not opened", changedDevice(hostDevice(), func(d *inventory.Device) { d.Error = "no access" }),
			[]string{"0000:b1:00.1: no access"}},
	}
	for _, tc := range cases {
		findings := checkEachDevice(tc.devices)
		if len(findings) != len(tc.lines) {
			t.Errorf("%s: %+v", tc.name, findings)
			continue
		}
		for i, line := range tc.lines {
			if findings[i].Verdict != verdictWarn || !strings.Contains(findings[i].What, line) ||
				findings[i].Fix == "" {
				t.Errorf("%s: %+v, want a warning with %q and a fix", tc.name, findings[i], line)
			}
		}
	}
}

func TestCheckRepresentors(t *testing.T) {
	host, dpu := []*inventory.Device{hostDevice()}, []*inventory.Device{dpuDevice("0000:b1:00.0", "0000:b1:00.1")}
	all := append(dpu, hostDevice())
	runCheckCases(t, []checkCase{
		{"host", checkRepresentors(host, Settings{}), verdictOK, 0, []string{"none needed"}},
		{"host among both", checkRepresentors(all, Settings{Device: "b1:00.1"}), verdictOK, 0,
			[]string{"none needed"}},
		{"asked for on a host", checkRepresentors(host, Settings{Representor: "b1:00.0"}), verdictFail, 6,
			[]string{"leave out -r"}},
		{"DPU", checkRepresentors(dpu, Settings{}), verdictOK, 0, []string{"0000:b1:00.0, 0000:b1:00.1"}},
		{"there", checkRepresentors(all, Settings{Representor: "B1:00.1"}), verdictOK, 0, nil},
		{"not there", checkRepresentors(dpu, Settings{Representor: "b2:00.0"}), verdictFail, 6,
			[]string{"none for host function b2:00.0  -- choose one of: 0000:b1:00.0, 0000:b1:00.1"}},
		{"SF", checkRepresentors(withSF().Devices, Settings{Representor: "en3f0c1pf0sf4"}), verdictOK, 0,
			[]string{"0000:b1:00.1, en3f0c1pf0sf4"}},
		{"SF by VUID", checkRepresentors(withSF().Devices, Settings{Representor: "CSF32768"}), verdictOK, 0, nil},
		{"no address", checkRepresentors(dpu, Settings{Representor: "mlx5_0"}), verdictFail, 6, nil},
		{"DPU without", checkRepresentors([]*inventory.Device{dpuDevice()}, Settings{}), verdictFail, 6,
			[]string{"group mlnx", "NIC mode"}},
	})
}

// machineWithMemlock returns a machine with this limit on locked memory, and whether it binds the process.
func machineWithMemlock(limit uint64, err error, any bool) machine {
	return machine{memlock: func() (uint64, error) { return limit, err }, mayLockAny: func() bool { return any }}
}

func TestCheckMemlock(t *testing.T) {
	const need, reason = 32 << 20, "whole file"
	runCheckCases(t, []checkCase{
		{"capable", checkMemlock(machineWithMemlock(0, nil, true), need, reason), verdictOK, 0,
			[]string{"CAP_IPC_LOCK"}},
		{"no limit", checkMemlock(machineWithMemlock(unix.RLIM_INFINITY, nil, false), need, reason), verdictOK, 0, nil},
		{"a byte too few", checkMemlock(machineWithMemlock(32<<20-1, nil, false), need, reason), verdictFail, 6,
			[]string{"32 MiB", "ulimit -l unlimited"}},
		{"just enough", checkMemlock(machineWithMemlock(32<<20, nil, false), need, reason), verdictWarn, 0,
			[]string{"whole file"}},
		{"unknown", checkMemlock(machineWithMemlock(0, syscall.EPERM, false), need, reason), verdictWarn, 0,
			[]string{"unknown"}},
	})
}

// machineWithVerbs returns a machine with these device files, of which some are refused.
func machineWithVerbs(refused map[string]error, files ...string) machine {
	return machine{verbs: func() []string { return files },
		accessible: func(path string) error { return refused[path] }}
}

func TestCheckVerbs(t *testing.T) {
	first, second := "/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"
	refuseFirst := map[string]error{first: syscall.EACCES}
	runCheckCases(t, []checkCase{
		{"none", checkVerbs(machineWithVerbs(nil)), verdictFail, 6, []string{"modprobe mlx5_ib"}},
		{"all", checkVerbs(machineWithVerbs(nil, first, second)), verdictOK, 0, []string{"all 2"}},
		{"some", checkVerbs(machineWithVerbs(refuseFirst, first, second)), verdictWarn, 0,
			[]string{"uverbs0 (permission denied)"}},
		{"no one", checkVerbs(machineWithVerbs(refuseFirst, first)), verdictFail, 6,
			[]string{"none can be opened"}},
	})
}

// softDirOf returns an existing runtime directory. User 6 is not trusted.
func softDirOf(owner int, mode fs.FileMode) doca.SoftDir {
	return doca.SoftDir{Path: "/run/d", Exists: true, Owner: owner, Trusted: owner != 6, Mode: mode}
}

func TestCheckSoftDir(t *testing.T) {
	runCheckCases(t, []checkCase{
		{"unreadable", checkSoftDir(doca.SoftDir{Path: "/run/d"},
			&fs.PathError{Op: "open", Path: "/run/d", Err: syscall.EACCES}, 5),
			verdictFail, 6, []string{"runtime directory /run/d: permission denied", "DMA_COPY_SOFT_DIR"}},
		{"absent", checkSoftDir(doca.SoftDir{Path: "/run/d"}, nil, 5), verdictOK, 0, []string{"does not exist yet"}},
		{"ours", checkSoftDir(softDirOf(5, fs.ModeDir|0o700), nil, 5), verdictOK, 0, []string{"mode 0700"}},
		{"a file", checkSoftDir(softDirOf(5, 0o600), nil, 5), verdictFail, 6, []string{"not a directory"}},
		{"another user's", checkSoftDir(softDirOf(6, fs.ModeDir|0o700), nil, 5), verdictFail, 6,
			[]string{"belongs to user 6, not to 5", "DMA_COPY_SOFT_USERS"}},
		{"a trusted user's", checkSoftDir(softDirOf(7, fs.ModeDir|0o700), nil, 5), verdictOK, 0,
			[]string{"mode 0700, user 7"}},
		{"of the group", checkSoftDir(softDirOf(5, fs.ModeDir|0o720), nil, 5), verdictFail, 6,
			[]string{"mode 0720", "chmod 700 /run/d"}},
		{"of all", checkSoftDir(softDirOf(5, fs.ModeDir|0o702), nil, 5), verdictFail, 6, []string{"mode 0702"}},
		{"readable", checkSoftDir(softDirOf(5, fs.ModeDir|0o755), nil, 5), verdictOK, 0, nil},
	})
}

// machineWithLeftovers returns a machine with these temporary files.
func machineWithLeftovers(err error, names ...string) machine {
	return machine{leftovers: func() ([]string, error) { return names, err }}
}

func TestCheckLeftovers(t *testing.T) {
	runCheckCases(t, []checkCase{
		{"none", checkLeftovers(machineWithLeftovers(nil)), verdictOK, 0, nil},
		{"one", checkLeftovers(machineWithLeftovers(nil, ".x.dma-copy-A")), verdictWarn, 0,
			[]string{": .x.dma-copy-A  -- delete"}},
		{"with control characters", checkLeftovers(machineWithLeftovers(nil, ".\x1b[2J.dma-copy-A\n")), verdictWarn, 0,
			[]string{`.\x1b[2J.dma-copy-A; `}},
		{"unreadable", checkLeftovers(machineWithLeftovers(syscall.EACCES)), verdictWarn, 0,
			[]string{"permission denied"}},
	})
}

// checkOldPartial checks a partial file that was written two hours ago.
func checkOldPartial(left disk.Leftover) finding {
	now := time.Unix(1_000_000, 0)
	left.Modified = disk.Timestamp{Sec: now.Unix() - 7200}
	m := machine{
		now:      func() time.Time { return now },
		partials: func() ([]disk.Leftover, error) { return []disk.Leftover{left}, nil },
	}
	return checkPartials(m)[0]
}

func TestCheckPartials(t *testing.T) {
	const part, journal = ".x.dma-copy-part", ".x.dma-copy-journal"
	resumable := disk.Leftover{Name: part, Journal: journal, Size: 4096, Prefix: 2048, Total: 8192}
	running := resumable
	running.InUse = true
	marker := disk.Leftover{Name: part, Size: 14, Tree: true}
	lockedMarker := marker
	lockedMarker.InUse = true
	runCheckCases(t, []checkCase{
		{"resumable", checkOldPartial(resumable), verdictWarn, 0, []string{part, "2.0 KiB of 8.0 KiB verified",
			"2 hours ago  -- run the same command", part + " and " + journal}},
		{"running", checkOldPartial(running), verdictOK, 0, []string{part, "in use"}},
		{"useless", checkOldPartial(disk.Leftover{Name: part, Size: 4096}), verdictWarn, 0,
			[]string{"4.0 KiB, none", "-- delete " + part + ";"}},
		{"of a tree", checkOldPartial(marker), verdictWarn, 0,
			[]string{part + " in the current directory: the copy of a directory is not complete, interrupted 2 hours",
				"-- run the same command to copy the rest, or delete " + part + " to leave"}},
		{"of a running tree", checkOldPartial(lockedMarker), verdictOK, 0,
			[]string{"the copy of a directory is not complete, in use by a running copy"}},
		{"with control characters", checkOldPartial(disk.Leftover{Name: ".\x1b[2J.dma-copy-part"}), verdictWarn, 0,
			[]string{`.\x1b[2J.dma-copy-part`}},
	})
	unreadable := machine{partials: func() ([]disk.Leftover, error) { return nil, syscall.EACCES }}
	if found := checkPartials(unreadable); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}

const servingSocket = "comch.0000:b1:00.1.0000:03:00.0.dma%20copy%20server"

func withSockets(sockets ...doca.SoftSocket) machine {
	return machine{softDir: func() (doca.SoftDir, error) { return doca.SoftDir{Path: "/run/d", Sockets: sockets}, nil }}
}

func softInventory() inventory.Inventory {
	return inventory.Inventory{Driver: software, Devices: []*inventory.Device{hostDevice(), dpuDevice("0000:b1:00.1")}}
}

// withSF returns an inventory in which an SF has the PCI address of the PF.
func withSF() inventory.Inventory {
	found := softInventory()
	sf := hostDevice()
	sf.RDMAName, sf.FunctionType = "mlx5_5", "SF"
	dpu := found.Devices[1]
	dpu.Representors = append(dpu.Representors, inventory.Representor{
		HostFunction: sf.PCIAddress, FunctionType: "SF", NetName: "en3f0c1pf0sf4", VUID: "CSF32768",
	})
	found.Devices = append(found.Devices, sf)
	return found
}

func TestCheckPeer(t *testing.T) {
	broken := machine{softDir: func() (doca.SoftDir, error) { return doca.SoftDir{}, syscall.EACCES }}
	soft := softInventory()
	oneDevice := inventory.Inventory{Driver: software, Devices: []*inventory.Device{hostDevice()}}
	host, dpu := Settings{Device: "b1:00.1"}, Settings{Device: "03:00.0", Representor: "b1:00.1"}
	cases := []checkCase{
		{"hardware", checkPeer(withSockets(), inventory.Inventory{Driver: hardware}, host), verdictWarn, 0,
			[]string{"not checked on hardware"}},
		{"no server", checkPeer(withSockets(), soft, host), verdictFail, 7,
			[]string{"no DPU serves host function 0000:b1:00.1 in /run/d"}},
		{"a dead DPU", checkPeer(withSockets(doca.SoftSocket{File: servingSocket, Stale: true}), soft, host),
			verdictFail, 7,
			nil},
		{"unknown device", checkPeer(withSockets(), soft, Settings{Device: "mlx5_9"}), verdictFail, 6,
			[]string{"device mlx5_9 not found"}},
		{"several devices", checkPeer(withSockets(), soft, Settings{}), verdictFail, 6,
			[]string{"several devices fit (0000:b1:00.1, 0000:03:00.0)  -- name one with -p"}},
		{"only one fits", checkPeer(withSockets(), oneDevice, Settings{}), verdictFail, 7, nil},
		{"directory unreadable", checkPeer(broken, soft, host), verdictFail, 6, nil},
		{"DPU, representor missing", checkPeer(withSockets(), soft, Settings{Device: "03:00.0"}), verdictFail, 6,
			[]string{"with -r"}},
		{"DPU, bad representor", checkPeer(withSockets(), soft, Settings{Device: "03:00.0", Representor: "x"}),
			verdictFail, 6,
			[]string{"0000:03:00.0 does not represent host function x  -- choose one of: 0000:b1:00.1"}},
		{"SF, no server", checkPeer(withSockets(doca.SoftSocket{File: servingSocket}), withSF(),
			Settings{Device: "mlx5_5"}), verdictFail, 7,
			[]string{"no DPU serves host function mlx5_5 in /run/d", "-r REPRESENTOR -f FILE"}},
		{"DPU, free", checkPeer(withSockets(), soft, dpu), verdictOK, 0, []string{"free to serve"}},
	}
	runCheckCases(t, cases)
}

func TestExitCodeOfFirstFailure(t *testing.T) {
	var out strings.Builder
	all := []finding{ok("a"), warn("b", "b"), fail("", "c").exitingWith(exit.Peer), fail("", "d")}
	err := writeFindings(&out, all, nil, nil, Settings{})
	if want := "ok    a\nwarn  b  -- b\nFAIL  c\nFAIL  d\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	if err == nil || err.Error() != "2 of 4 checks failed: see the lines with FAIL" ||
		exit.Code(err) != exit.Peer {
		t.Errorf("error %v, exit code %d", err, exit.Code(err))
	}
	if err := writeFindings(&out, []finding{ok("a"), warn("b", "b")}, nil, nil, Settings{}); err != nil {
		t.Errorf("warnings end with %v", err)
	}
}

func TestResultsOfProbes(t *testing.T) {
	probes := []probe.Result{
		{Name: "a", Verdict: probe.AsAssumed, Found: "yes"},
		{Name: "b", Verdict: probe.Differs, Found: "no", Assumption: "b holds", Source: "a guide", Means: "do c"},
		{Name: "d", Verdict: probe.NotTried, Found: "no time"},
	}
	var out strings.Builder
	err := writeFindings(&out, []finding{ok("x")}, probes, nil, Settings{})
	want := `ok    x
as assumed          a: yes
differs             b: no; assumed: b holds (a guide)  -- do c
could not be tried  d: no time
`
	if out.String() != want || exit.Code(err) != exit.Device ||
		err.Error() != "the device is not as assumed in 1 of 3 probes: see the lines with differs" {
		t.Errorf("printed\n%s\nerror %v", out.String(), err)
	}
	out.Reset()
	absent := fail("", "x").exitingWith(exit.Peer)
	err = writeFindings(&out, []finding{absent}, probes, nil, Settings{Quiet: true})
	if exit.Code(err) != exit.Peer || out.String() != "FAIL  x\n"+strings.SplitAfter(want, "\n")[2] {
		t.Errorf("quiet: printed\n%s\nerror %v", out.String(), err)
	}
	for _, want := range []error{nil, errors.New("nobody came")} {
		got := writeFindings(&out, nil, append(probes[:1:1], probes[2]), want, Settings{})
		if got != want {
			t.Errorf("what could not be tried ends with %v, want %v", got, want)
		}
	}
}

func TestFindingsOnAFullDisk(t *testing.T) {
	err := writeFindings(fullDisk{}, []finding{ok("a")}, nil, nil, Settings{})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fullDisk is a writer that fails like a file on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestMain fails a run of tests that leaves goroutines behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
