package doca

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/internal/doca/internal/cabi"
)

// Representor is the object on the DPU for a function of the host. It is safe for concurrent use.
type Representor struct {
	abi     cabi.ABI
	rep     cabi.Rep
	address string
}

// RepresentorInfo describes a representor by its host function.
type RepresentorInfo struct {
	PCIAddress string // of the host function, "0000:b1:00.1"
	Function   string // "PF", "VF" or "SF"; empty: unknown
	VUID       string // unique name of the host function; empty: unknown
}

var functionNames = map[cabi.Function]string{
	cabi.PhysicalFunction: "PF", cabi.VirtualFunction: "VF", cabi.SubFunction: "SF",
}

// DescribeRepresentors lists the representors and their host functions: none on the host. Implements:
// doca_devinfo_rep_create_list, doca_devinfo_rep_get_pci_func_type, doca_devinfo_rep_get_vuid.
func (d *Device) DescribeRepresentors() ([]RepresentorInfo, error) {
	var infos []RepresentorInfo
	err := d.eachRepresentor(func(rep cabi.RepInfo, address string) (bool, error) {
		info := RepresentorInfo{PCIAddress: address, VUID: d.abi.RepVUID(rep)}
		if kind, err := d.abi.RepFunction(rep); err == nil {
			info.Function = functionNames[kind]
		}
		infos = append(infos, info)
		return true, nil
	})
	if errors.Is(err, CodeNotSupported) {
		return nil, nil
	}
	return infos, err
}

// Representors lists the PCI addresses of the host functions that this device represents, each once although an SF
// shares that of its PF: none on the host. Implements: doca_devinfo_rep_create_list.
func (d *Device) Representors() ([]string, error) {
	infos, err := d.DescribeRepresentors()
	var addresses []string
	for _, info := range infos {
		addresses = appendNew(addresses, info.PCIAddress)
	}
	return addresses, err
}

func appendNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// eachRepresentor calls visit with each representor until it returns false, those of SFs last.
func (d *Device) eachRepresentor(visit func(cabi.RepInfo, string) (bool, error)) error {
	if d.dev == nil {
		return ErrClosed
	}
	list, infos, err := d.abi.RepCreateList(d.dev)
	if err != nil {
		return err
	}
	defer d.abi.RepDestroyList(list)
	sfsLast(infos, func(info cabi.RepInfo) bool {
		kind, err := d.abi.RepFunction(info)
		return err == nil && kind == cabi.SubFunction
	})
	for _, info := range infos {
		address, err := d.abi.RepPCIAddress(info)
		if err != nil {
			return err
		}
		if more, err := visit(info, address); err != nil || !more {
			return err
		}
	}
	return nil
}

// OpenRepresentor opens the representor of the host function at a PCI address in either form; of the PF if SFs share
// it. Errors: ErrBadAddress, *NotFoundError, *Error. Implements: doca_dev_rep_open.
func (d *Device) OpenRepresentor(address string) (*Representor, error) {
	wanted, err := ParsePCIAddress(address)
	if err != nil {
		return nil, err
	}
	missing := &NotFoundError{Kind: "representor", Name: address}
	var representor *Representor
	err = d.eachRepresentor(func(info cabi.RepInfo, found string) (bool, error) {
		missing.Available = appendNew(missing.Available, found)
		if found != wanted {
			return true, nil
		}
		rep, err := d.abi.RepOpen(info)
		representor = &Representor{abi: d.abi, rep: rep, address: found}
		return false, err
	})
	switch {
	case errors.Is(err, CodeNotSupported):
		return nil, missing
	case err != nil:
		return nil, fmt.Errorf("representor %s: %w", address, err)
	case representor == nil:
		return nil, missing
	}
	trackOpen(representor)
	return representor, nil
}

// Address returns the PCI address of the host function.
func (r *Representor) Address() string { return r.address }

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
