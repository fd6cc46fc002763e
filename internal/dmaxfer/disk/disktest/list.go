package disktest

import (
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// List implements disk.Dir.
func (d *memoryDir) List() (*disk.NameList, error) {
	names, err := d.Names()
	if err != nil {
		return nil, err
	}
	return disk.NewNameList(names)
}

// List implements disk.Dir.
func (d *faultyDir) List() (names *disk.NameList, err error) {
	err = d.on.do("list", d.path, func() (err error) {
		names, err = d.dir.List()
		return err
	})
	return names, err
}
