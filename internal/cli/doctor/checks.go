package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// The checks of hardware and driver. Each judges what it is given, and asks nothing but the machine.

// checkInstall judges DOCA's libraries, which may be absent unless they are asked for.
func checkInstall(found doca.Installation, err error, s Settings) finding {
	const install = "install DOCA's runtime libraries (2.7 or newer), or name their directory with --doca-libdir"
	libraries := inventory.Libraries(found.Directory, found.Files)
	switch {
	case err == nil && found.Caution != "":
		return warn("if copies fail, install a newer dma-copy", "%s: libraries in %s", found.Caution, libraries)
	case err == nil:
		return ok("DOCA %s: libraries in %s", found.Version, libraries)
	case s.Driver.Name == device.DriverSoft && !s.Driver.RequireHW:
		return ok("DOCA is not needed for --driver soft (%s)", err)
	case s.Driver.RequireHW && s.Driver.Name != device.DriverDOCA:
		return fail(install, "%s", err).exitingWith(exit.NotHardware)
	case s.Driver.Name == device.DriverDOCA:
		return fail(install, "%s", err)
	default:
		return warn(install+"; not needed for the software device", "%s", err)
	}
}

// checkDriver judges the choice of the driver. The software device is a warning unless it was asked for. The report of
// installErr by checkInstall is not repeated.
func checkDriver(driver inventory.Driver, err, installErr error, s Settings) finding {
	title := inventory.DriverTitle(driver.Name, driver.Hardware, driver.Version)
	switch {
	case err != nil:
		return fail(adviceFor(err), "driver: %s", without(err.Error(), installErr)).exitingWith(exit.Code(err))
	case driver.Hardware || s.Driver.Name == device.DriverSoft:
		return ok("driver: %s, because %s", title, driver.Reason)
	case driver.Name == device.DriverDOCA:
		return warn("to use a card, take the development kit out of the loader's path (LD_LIBRARY_PATH), or name the "+
			"directory of DOCA's libraries with --doca-libdir",
			"driver: %s: the libraries are the development kit's", title)
	default:
		return warn("fix that, or use --driver soft", "driver: %s: %s",
			title, without(driver.Reason, installErr))
	}
}

// without shortens a text by an error that was printed before.
func without(text string, said error) string {
	if said == nil {
		return text
	}
	return strings.ReplaceAll(text, said.Error(), "DOCA cannot be loaded (see above)")
}

// adviceFor returns the hint that a copy would print.
func adviceFor(err error) string { return cmp.Or(exit.Hint(err), "fix what the message names") }

func checkDevices(devices []*inventory.Device, s Settings) finding {
	switch {
	case s.Device != "" && len(devices) > 0 && len(selected(devices, s.Device)) == 0:
		return fail(`choose one that "dma-copy devices" lists`, "devices: %s not found", s.Device)
	case len(devices) == 0:
		return fail("check the card (lspci -d 15b3:), its kernel driver and this user's permissions",
			"devices: none found")
	}
	var names []string
	for _, d := range devices {
		names = append(names, fmt.Sprintf("%s (%s)", d.Info().Name(), strings.TrimPrefix(inventory.Sides(d), "the ")))
	}
	return ok("devices: %s", strings.Join(names, ", "))
}

// checkEachDevice warns of each device that no copy, or none by DMA, can use.
func checkEachDevice(devices []*inventory.Device) []finding {
	var findings []finding
	for _, d := range devices {
		findings = append(findings, checkDataPaths(d.Info())...)
		if d.Error != "" {
			findings = append(findings, warn("run as root or with access to the device, and check dmesg",
				"device %s: %s", d.Info().Name(), d.Error))
		}
	}
	return findings
}

// checkDataPaths warns of a device that cannot be one of the two sides of a copy by DMA. It applies the rules of a
// copy.
func checkDataPaths(device doca.DeviceInfo) []finding {
	const remedy = "use another device, or update firmware and DOCA"
	if !device.IsHost() && !device.IsDPU() {
		return []finding{warn(remedy, "device %s has no control channel", device.Name())}
	}
	noDMA, noFast := job.LacksForDMA(device, inventory.NativeSide(device)), job.LacksForFast(device)
	switch {
	case noDMA == "":
		return nil
	case noFast == "":
		return []finding{warn("for copies by DMA "+remedy,
			"device %s %s: copies use Comch producers and consumers instead (--path fast)", device.Name(), noDMA)}
	default:
		return []finding{warn(remedy, "device %s %s and %s", device.Name(), noDMA, noFast)}
	}
}

// checkRepresentors judges what the DPU needs to serve a host function. A host needs no representors.
func checkRepresentors(devices []*inventory.Device, s Settings) finding {
	const remedy = "run as root or in group mlnx, and check that the card is in DPU mode (not NIC mode)"
	served, dpu := representors(selected(devices, s.Device))
	switch {
	case !dpu && s.Representor != "":
		return fail("leave out -r on the host",
			"representors: only the DPU has representors, so %s does not exist", s.Representor)
	case !dpu:
		return ok("representors: none, and none needed on the host")
	case s.Representor != "" && !isRepresentor(served, s.Representor):
		return fail("choose one of: "+orNone(namesOf(served)),
			"representors: none for host function %s", s.Representor)
	case len(served) == 0:
		return fail(remedy, "representors: no device of the DPU represents a host function")
	default:
		return ok("representors: %s", strings.Join(namesOf(served), ", "))
	}
}

// selected returns the devices that -p selects.
func selected(devices []*inventory.Device, name string) []*inventory.Device {
	if name == "" {
		return devices
	}
	var left []*inventory.Device
	for _, d := range devices {
		if d.Named(name) {
			left = append(left, d)
		}
	}
	return left
}

// representors returns the representors of the devices, and reports whether one of the devices is the DPU's.
func representors(devices []*inventory.Device) (served []inventory.Representor, dpu bool) {
	for _, d := range devices {
		dpu = dpu || d.DPUSide
		served = append(served, d.Representors...)
	}
	return served, dpu
}

func isRepresentor(served []inventory.Representor, name string) bool {
	return slices.ContainsFunc(served, func(r inventory.Representor) bool { return r.Info().Named(name) })
}

// namesOf returns the names of representors, those that several devices have once.
func namesOf(served []inventory.Representor) []string {
	var names []string
	for _, r := range served {
		if name := r.Info().Name(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func orNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// checkMemlock compares the limit on locked memory with what hardware pins: need bytes, or more if there is a reason.
func checkMemlock(m machine, need uint64, reasonForMore string) finding {
	const remedy = "ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit"
	limit, err := m.memlock()
	switch {
	case err != nil:
		return warn("", "locked memory: the limit is unknown: %s", err)
	case m.mayLockAny():
		return ok("locked memory: no limit for this process (CAP_IPC_LOCK)")
	case limit == unix.RLIM_INFINITY:
		return ok("locked memory: no limit")
	case limit < need:
		return fail(remedy, "locked memory: the limit is %s and a copy locks %s", quantity.Bytes(limit),
			quantity.Bytes(need))
	case reasonForMore != "":
		return warn(remedy, "locked memory: the limit is %s: %s", quantity.Bytes(limit), reasonForMore)
	default:
		return ok("locked memory: the limit is %s", quantity.Bytes(limit))
	}
}

// checkVerbs judges the device files through which the driver accesses the card.
func checkVerbs(m machine) finding {
	files := m.verbs()
	if len(files) == 0 {
		return fail("load the card's driver (modprobe mlx5_ib), or give them to the container",
			"/dev/infiniband/uverbs*: none found")
	}
	var refused []string
	for _, file := range files {
		if err := m.accessible(file); err != nil {
			refused = append(refused, fmt.Sprintf("%s (%s)", filepath.Base(file), err))
		}
	}
	const remedy = "run as root or in the group that owns them"
	switch {
	case len(refused) == len(files):
		return fail(remedy, "/dev/infiniband/uverbs*: none can be opened: %s", strings.Join(refused, ", "))
	case len(refused) > 0:
		return warn(remedy, "/dev/infiniband/uverbs*: some cannot be opened: %s", strings.Join(refused, ", "))
	default:
		return ok("/dev/infiniband/uverbs*: all %d can be opened", len(files))
	}
}

func checkUser(m machine) finding {
	who := m.user()
	return ok("user: %s (%d), groups %s", who.name, who.id, strings.Join(who.groups, ", "))
}

// checkLeftovers reports temporary files and does not delete them: a copy that is running may use them.
func checkLeftovers(m machine) finding {
	names, err := m.leftovers()
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return warn("", "temporary files: the current directory cannot be read: %s", disk.Reason(err))
	case len(names) == 0:
		return ok("temporary files: none in the current directory")
	default:
		return warn("delete them if no copy is running: they are partial files of copies that failed",
			"temporary files in the current directory: %s", strings.Join(names, ", "))
	}
}

// checkPartials reports each partial file and what can be done with it. Errors are reported by checkLeftovers.
func checkPartials(m machine) []finding {
	found, _ := m.partials()
	var findings []finding
	for _, left := range found {
		findings = append(findings, checkPartial(left, m.now()))
	}
	return findings
}

func checkPartial(left disk.Leftover, now time.Time) finding {
	what := fmt.Sprintf("partial file %s in the current directory: %s", left.Name, verifiedPart(left))
	if left.Tree {
		what = fmt.Sprintf("%s in the current directory: the copy of a directory is not complete", left.Name)
	}
	age := quantity.Age(now.Sub(time.Unix(left.Modified.Sec, int64(left.Modified.Nsec))))
	files := strings.TrimSuffix(left.Name+" and "+left.Journal, " and ")
	switch {
	case left.InUse:
		return ok("%s, in use by a running copy", what)
	case left.Tree:
		return warn("run the same command to copy the rest, or delete "+left.Name+" to leave the directory as it is",
			"%s, interrupted %s", what, age)
	case left.Prefix > 0:
		return warn("run the same command to resume, or delete "+files, "%s, last written %s", what, age)
	default:
		return warn("delete "+files+"; no copy can resume it", "%s, last written %s", what, age)
	}
}

func verifiedPart(left disk.Leftover) string {
	size := quantity.Bytes(uint64(left.Size))
	if left.Prefix == 0 {
		return size + ", none of it verified"
	}
	return fmt.Sprintf("%s of %s verified", quantity.Bytes(uint64(left.Prefix)), quantity.Bytes(uint64(left.Total)))
}
