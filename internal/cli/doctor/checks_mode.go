package doctor

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Modes of a BlueField. In NIC mode it is a network adapter of the host without a DPU side.
const (
	modeDPU     = "DPU mode"
	modeNIC     = "NIC mode"
	modeUnknown = "its mode cannot be read here"
)

// blueFields are the PCI device ids of network functions of a BlueField. Source: the PCI ID database.
var blueFields = map[string]string{
	"0xa2d2": "BlueField", "0xa2d6": "BlueField-2", "0xa2dc": "BlueField-3", "0xa2df": "BlueField-4",
}

// hostPort is the name of the port for a host's physical function, which only the DPU has, and only in DPU mode.
var hostPort = regexp.MustCompile(`^(c\d+)?pf\d+$`)

// checkMode says which BlueField this machine has, and in which mode it is where that can be read: on the DPU from its
// ports, on the host from the rshim driver. root is the file system of the machine.
func checkMode(root fs.FS) finding {
	cards := cardsIn(root)
	if len(cards) == 0 {
		return ok("card: no BlueField among the PCI devices of this machine")
	}
	mode, reason := modeIn(root)
	what := fmt.Sprintf("card: %s, %s", strings.Join(cards, ", "), mode)
	switch mode {
	case modeUnknown:
		address := cards[0][strings.LastIndexByte(cards[0], ' ')+1:]
		return newFinding(verdictOK, "as root: mlxconfig -d "+address+" q INTERNAL_CPU_OFFLOAD_ENGINE; "+
			"DISABLED(1) is NIC mode, in which no copy works", "%s", what)
	case modeNIC:
		return warn("no copy works in NIC mode: set INTERNAL_CPU_OFFLOAD_ENGINE=0 with mlxconfig, and power-cycle",
			"%s (%s)", what, reason)
	}
	return ok("%s (%s)", what, reason)
}

// cardsIn lists the network functions of BlueFields, such as "BlueField-3 at 0000:b1:00.0".
func cardsIn(root fs.FS) []string {
	var cards []string
	devices, _ := fs.Glob(root, "sys/bus/pci/devices/*") // fails for a bad pattern only
	for _, device := range devices {
		if name, is := blueFields[read(root, device+"/device")]; is && read(root, device+"/vendor") == "0x15b3" {
			cards = append(cards, name+" at "+path.Base(device))
		}
	}
	slices.Sort(cards)
	return cards
}

func read(root fs.FS, name string) string {
	text, _ := fs.ReadFile(root, name) // a file that cannot be read says nothing
	return strings.TrimSpace(string(text))
}

// modeIn returns the mode of the card, and what says so.
func modeIn(root fs.FS) (mode, reason string) {
	ports, _ := fs.Glob(root, "sys/class/net/*/phys_port_name")
	for _, port := range ports {
		if name := read(root, port); hostPort.MatchString(name) {
			return modeDPU, "port " + name
		}
	}
	drivers, _ := fs.Glob(root, "dev/rshim*/misc")
	for _, driver := range drivers {
		for line := range strings.Lines(read(root, driver)) {
			switch key, value, _ := strings.Cut(strings.TrimSpace(line), " "); {
			case key != "BF_MODE":
			case strings.Contains(value, "NIC"):
				return modeNIC, "/" + driver
			case strings.Contains(value, "DPU"):
				return modeDPU, "/" + driver
			}
		}
	}
	return modeUnknown, ""
}
