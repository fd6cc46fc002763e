package doca

import (
	"cmp"
	"slices"
	"strings"
)

// listed is a device or representor of a list: its handle and description, or the error of reading its PCI address.
type listed[Handle any, Info description] struct {
	handle Handle
	info   Info
	err    error
}

// description is a DeviceInfo or RepresentorInfo.
type description interface {
	Name() string
	Named(name string) bool
	IsSF() bool
}

// describeAll describes the entries of a list. SFs come last, so that a PCI address finds the PF first.
func describeAll[Handle any, Info description](
	handles []Handle, describe func(Handle) (Info, error),
) []listed[Handle, Info] {
	all := make([]listed[Handle, Info], len(handles))
	for i, handle := range handles {
		info, err := describe(handle)
		all[i] = listed[Handle, Info]{handle, info, err}
	}
	isSF := func(entry listed[Handle, Info]) int {
		if entry.info.IsSF() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b listed[Handle, Info]) int { return cmp.Compare(isSF(a), isSF(b)) })
	return all
}

// find returns the first entry with the name. One whose PCI address cannot be read is skipped; its error is returned if
// no other has the name. Errors: ErrBadAddress, *NotFoundError.
func find[Handle any, Info description](
	all []listed[Handle, Info], kind, name string,
) (found listed[Handle, Info], err error) {
	if _, err := longName(name); err != nil {
		return found, err
	}
	missing := &NotFoundError{Kind: kind, Name: name}
	var unreadable error
	for _, entry := range all {
		switch {
		case entry.err != nil:
			unreadable = cmp.Or(unreadable, entry.err)
		case entry.info.Named(name):
			return entry, nil
		default:
			missing.Available = append(missing.Available, entry.info.Name())
		}
	}
	return found, cmp.Or[error](unreadable, missing)
}

// longName returns the long form of a PCI address, and any other name as it is: only PCI addresses have colons.
// ErrBadAddress.
func longName(name string) (string, error) {
	if !strings.Contains(name, ":") {
		return name, nil
	}
	return ParsePCIAddress(name)
}
