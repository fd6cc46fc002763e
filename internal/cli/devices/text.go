package devices

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// textOf returns a table of the devices, or with long all that is known of each.
func textOf(found inventory.Inventory, long bool) string {
	var text strings.Builder
	writeDriverBlock(&text, found.Driver)
	if long {
		for _, device := range found.Devices {
			writeDeviceBlock(&text, device)
		}
		return text.String()
	}
	text.WriteString("\n")
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DEVICE\tRDMA\tNET DEVICE\tFUNCTION\tRATE\tCAN BE\tHOST FUNCTIONS")
	for _, d := range found.Devices {
		fmt.Fprintln(table, strings.TrimRight(strings.Join(columnsOf(d), "\t"), "\t"))
	}
	_ = table.Flush() // of a text in memory
	return text.String()
}

// columnsOf returns the line of a device.
func columnsOf(d *inventory.Device) []string {
	rate := "unknown"
	if d.PortRate > 0 {
		rate = fmt.Sprintf("%g Gb/s", float64(d.PortRate)/1e9)
	}
	var represented []string
	for _, rep := range d.Representors {
		represented = append(represented, rep.HostFunction)
	}
	columns := []string{
		d.PCIAddress, orUnknown(d.RDMAName), orUnknown(d.NetName), functionOf(d), rate, inventory.Sides(d),
		strings.Join(represented, ", "),
	}
	for i := range columns {
		columns[i] = quote.Printable(columns[i])
	}
	return columns
}

// row writes one property, aligned with the others. Names come from the driver, so unprintable characters are escaped.
func row(text *strings.Builder, name, format string, args ...any) {
	fmt.Fprintf(text, "  %-15s  %s\n", name, quote.Printable(fmt.Sprintf(format, args...)))
}

func writeDriverBlock(text *strings.Builder, driver inventory.Driver) {
	fmt.Fprintf(text, "driver %s\n", inventory.DriverTitle(driver.Name, driver.Hardware, driver.Version))
	row(text, "why this one", "%s", driver.Reason)
	if driver.LibraryDirectory != "" {
		row(text, "libraries in", "%s", inventory.Libraries(driver.LibraryDirectory, driver.LibraryFiles))
	}
	if driver.TimeModel != "" {
		row(text, "time model", "%s", driver.TimeModel)
	}
	if driver.MovesNothing {
		row(text, "bytes", "%s", inventory.NoBytesMoved)
	}
}

func writeDeviceBlock(text *strings.Builder, d *inventory.Device) {
	fmt.Fprintf(text, "\ndevice %s\n", quote.Printable(d.PCIAddress))
	row(text, "RDMA device", "%s", orUnknown(d.RDMAName))
	row(text, "net device", "%s", orUnknown(d.NetName))
	row(text, "function", "%s", functionOf(d))
	if d.PortRate > 0 {
		row(text, "port rate", "%g Gb/s", float64(d.PortRate)/1e9)
	}
	row(text, "can be", "%s", inventory.Sides(d))
	writeRepresentors(text, d)
	row(text, "DMA copies", "%s", copiesOf(d.DMA))
	row(text, "memory", "%s", memoryOf(d.Memory))
	row(text, "control channel", "%s", channelOf(d))
	row(text, "consumers", "%s", consumersOf(d.FastPath))
	row(text, "producers", "%s", producersOf(d.FastPath))
	if d.Error != "" {
		row(text, "not all known", "%s", strings.ReplaceAll(d.Error, "\n", "; "))
	}
}

func orUnknown(name string) string { return cmp.Or(name, "unknown") }

func functionOf(d *inventory.Device) string {
	if d.SFIndex != nil {
		return fmt.Sprintf("%s with index %d", d.FunctionType, *d.SFIndex)
	}
	return orUnknown(d.FunctionType)
}

func writeRepresentors(text *strings.Builder, d *inventory.Device) {
	switch {
	case len(d.Representors) > 0:
		name := "represents"
		for _, rep := range d.Representors {
			row(text, name, "%s function %s%s", representedSide(d, rep), rep.HostFunction, representorDetails(rep))
			name = "" // once for all of them
		}
	case d.DPUSide:
		row(text, "represents", "no host function")
	}
}

// representedSide returns the side that has the function of a representor. Cards also list representors of SFs that
// were created on the DPU, which have the PCI address of the DPU's own device.
func representedSide(d *inventory.Device, rep inventory.Representor) string {
	if rep.FunctionType == "SF" && rep.HostFunction == d.PCIAddress {
		return "DPU"
	}
	return "host"
}

func representorDetails(rep inventory.Representor) string {
	var details []string
	if rep.FunctionType != "" {
		details = append(details, rep.FunctionType)
	}
	if rep.NetName != "" {
		details = append(details, "net device "+rep.NetName)
	}
	if rep.VUID != "" {
		details = append(details, "VUID "+rep.VUID)
	}
	if len(details) == 0 {
		return ""
	}
	return " (" + strings.Join(details, ", ") + ")"
}

// limits are phrases about what a driver allows; unknown limits are left out.
type limits []string

func (l *limits) add(most uint64, format string, args ...any) {
	if most > 0 {
		*l = append(*l, fmt.Sprintf(format, args...))
	}
}

// addCount adds a phrase with the number itself.
func (l *limits) addCount(most uint32, format string) { l.add(uint64(most), format, most) }

func (l *limits) addList(most uint32) {
	if most == 1 {
		*l = append(*l, "no buffer lists")
		return
	}
	l.addCount(most, "lists of up to %d buffers")
}

func (l limits) String() string {
	if len(l) == 0 {
		return "limits unknown"
	}
	return strings.Join(l, ", ")
}

func copiesOf(dma inventory.DMA) string {
	if !dma.CopySupported {
		return "not supported"
	}
	var l limits
	l.add(dma.MaxBytesPerTask, "up to %s per task", sizeWithBytes(dma.MaxBytesPerTask))
	l = append(l, tasksOf(dma.MaxTasks))
	l.addList(dma.MaxListLength)
	return l.String()
}

func tasksOf(count int) string {
	if count == 0 {
		return "tasks in flight unknown"
	}
	return fmt.Sprintf("up to %d tasks in flight", count)
}

func sizeWithBytes(size uint64) string {
	if size < 1024 {
		return fmt.Sprintf("%d bytes", size)
	}
	return fmt.Sprintf("%s (%d bytes)", quantity.Bytes(size), size)
}

func memoryOf(memory inventory.Memory) string {
	var can []string
	if memory.ExportSupported {
		can = append(can, "be exported to the other side")
	}
	if memory.ImportSupported {
		can = append(can, "be imported from the other side")
	}
	if len(can) == 0 {
		return "can be neither exported nor imported"
	}
	return "can " + strings.Join(can, " and ")
}

func channelOf(d *inventory.Device) string {
	if !d.HostSide && !d.DPUSide {
		return "not supported"
	}
	var l limits
	l.addCount(d.Comch.MaxMessageBytes, "messages of up to %d bytes")
	l.addCount(d.Comch.MaxReceiveQueueMessages, "%d in the receive queue")
	l.addCount(d.Comch.MaxSendTasks, "%d being sent")
	l.addCount(d.Comch.MaxServerNameBytes, "server names of up to %d bytes")
	l.addCount(d.Comch.MaxClients, "up to %d clients of a server")
	return l.String()
}

func consumersOf(fast inventory.FastPath) string {
	if !fast.Consumers.Supported {
		return "not supported"
	}
	l := portLimits(fast.Consumers, "receives")
	l.addCount(fast.MaxImmediateBytes, "immediate data of up to %d bytes")
	return l.String()
}

func producersOf(fast inventory.FastPath) string {
	if !fast.Producers.Supported {
		return "not supported"
	}
	return portLimits(fast.Producers, "sends").String()
}

func portLimits(port inventory.Port, tasks string) limits {
	var l limits
	l.addCount(port.MaxPerConnection, "up to %d per connection")
	l.addCount(port.MaxTasks, "up to %d "+tasks+" each")
	l.add(uint64(port.MaxMessageBytes), "up to %s each", sizeWithBytes(uint64(port.MaxMessageBytes)))
	l.addList(port.MaxListLength)
	return l
}

func textOfNetwork(n inventory.Network) string {
	var text strings.Builder
	fmt.Fprintf(&text, "UCX %s\n", n.UCX)
	var names []string // each once, in UCX's order
	devices := map[string][]string{}
	for _, t := range n.Transports {
		if devices[t.Name] == nil {
			names = append(names, t.Name)
		}
		devices[t.Name] = append(devices[t.Name], t.Device)
	}
	for _, name := range names {
		row(&text, name, "%s", strings.Join(devices[name], ", "))
	}
	for _, port := range n.RDMAPorts {
		writePort(&text, port)
	}
	if len(n.RDMAPorts) == 0 {
		text.WriteString("\nno RDMA device: --path rma is not possible with another machine\n")
	}
	return text.String()
}

func writePort(text *strings.Builder, port inventory.RDMAPort) {
	fmt.Fprintf(text, "\nRDMA port %s\n", port.Name)
	row(text, "state", "%s", orUnknown(port.State))
	row(text, "link layer", "%s", orUnknown(port.LinkLayer))
	row(text, "net device", "%s", orUnknown(port.NetDevice))
	for _, gid := range port.GIDs {
		row(text, fmt.Sprintf("GID %d", gid.Index), "%s  %s", gid.Address, gid.Type)
	}
}
