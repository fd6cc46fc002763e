package doca

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// Representor is the object on the DPU for a function of the host. It is safe for concurrent use.
type Representor struct {
	abi  cabi.ABI
	rep  cabi.Rep
	info RepresentorInfo
}

// RepresentorInfo describes a representor and its host function.
type RepresentorInfo struct {
	PCIAddress string // of the host function, "0000:b1:00.1"; an SF has its PF's address
	Function   string // "PF", "VF" or "SF"; empty: unknown
	VUID       string // unique name of the host function; empty: unknown
	Interface  string // network device of the representor on the DPU; empty: unknown, as before DOCA 2.6
}

// Name returns the name by which OpenRepresentor opens this representor and no other: the PCI address of the host
// function, or of an SF, which shares its PF's address, the network device or VUID.
func (i RepresentorInfo) Name() string {
	switch {
	case !i.IsSF():
		return i.PCIAddress
	case i.Interface != "":
		return i.Interface
	case i.VUID != "":
		return i.VUID
	default:
		return i.PCIAddress
	}
}

// IsSF reports whether the host function is known to be an SF.
func (i RepresentorInfo) IsSF() bool { return i.Function == functionNames[cabi.SubFunction] }

// Named reports whether this is one of the names of the representor: the PCI address of its host function in either
// form, its VUID or its network device.
func (i RepresentorInfo) Named(name string) bool {
	long, err := longName(name)
	return err == nil && long != "" && (long == i.PCIAddress || long == i.VUID || long == i.Interface)
}

var functionNames = map[cabi.Function]string{
	cabi.PhysicalFunction: "PF", cabi.VirtualFunction: "VF", cabi.SubFunction: "SF",
}

// DescribeRepresentors lists the representors and their host functions, SFs last: none on the host. A representor whose
// PCI address cannot be read is left out, and its error is returned with the others. Implements:
// doca_devinfo_rep_create_list, doca_devinfo_rep_get_pci_func_type, doca_devinfo_rep_get_vuid,
// doca_devinfo_rep_get_iface_name.
func (d *Device) DescribeRepresentors() (infos []RepresentorInfo, err error) {
	err = d.withRepresentors(func(all []listed[cabi.RepInfo, RepresentorInfo]) (err error) {
		for _, representor := range all {
			if representor.err != nil {
				err = cmp.Or(err, representor.err)
				continue
			}
			infos = append(infos, representor.info)
		}
		return err
	})
	return infos, err
}

// Representors lists the names of the representors: none on the host. Implements: doca_devinfo_rep_create_list.
func (d *Device) Representors() ([]string, error) {
	infos, err := d.DescribeRepresentors()
	var names []string
	for _, info := range infos {
		names = append(names, info.Name())
	}
	return names, err
}

// withRepresentors calls use with all representors: none on a host, which does not support them.
func (d *Device) withRepresentors(use func([]listed[cabi.RepInfo, RepresentorInfo]) error) error {
	if d.dev == nil {
		return ErrClosed
	}
	list, reps, err := d.abi.RepCreateList(d.dev)
	if errors.Is(err, CodeNotSupported) {
		return use(nil)
	}
	if err != nil {
		return err
	}
	defer d.abi.RepDestroyList(list)
	return use(describeAll(reps, d.describeRepresentor))
}

func (d *Device) describeRepresentor(rep cabi.RepInfo) (RepresentorInfo, error) {
	address, err := d.abi.RepPCIAddress(rep)
	info := RepresentorInfo{PCIAddress: address, VUID: d.abi.RepVUID(rep), Interface: d.abi.RepInterface(rep)}
	if kind, err := d.abi.RepFunction(rep); err == nil {
		info.Function = functionNames[kind]
	}
	return info, err
}

// OpenRepresentor opens the representor that has this name: the PCI address of its host function in either form, its
// VUID or its network device. A PCI address that a PF shares with SFs opens the PF's representor. A representor whose
// PCI address cannot be read is skipped; its error is returned if no other representor has the name. Errors:
// ErrBadAddress, *NotFoundError, *Error. Implements: doca_dev_rep_open.
func (d *Device) OpenRepresentor(name string) (*Representor, error) {
	var representor *Representor
	err := d.withRepresentors(func(all []listed[cabi.RepInfo, RepresentorInfo]) error {
		found, err := find(all, "representor", name)
		if err != nil {
			return err
		}
		rep, err := d.abi.RepOpen(found.handle)
		representor = &Representor{abi: d.abi, rep: rep, info: found.info}
		return err
	})
	if failure, is := errors.AsType[*Error](err); is {
		return nil, fmt.Errorf("representor %s: %w", name, failure)
	}
	if err != nil {
		return nil, err
	}
	trackOpen(representor)
	return representor, nil
}

// Info returns a description of the representor.
func (r *Representor) Info() RepresentorInfo { return r.info }

// Close closes the representor. CodeInUse while a Server uses it. Implements: doca_dev_rep_close.
func (r *Representor) Close() error {
	if r.rep == nil {
		return nil
	}
	if err := r.abi.RepClose(r.rep); err != nil {
		return err
	}
	r.rep = nil
	trackClose(r)
	return nil
}
