package disktest

import (
	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// List implements disk.Dir.
func (d *memoryDir) List(after string, limit int) (*disk.NameList, error) {
	names, err := d.Names()
	if err != nil {
		return nil, err
	}
	return disk.NewNameList(names, after, limit)
}

// List implements disk.Dir.
func (d *faultyDir) List(after string, limit int) (names *disk.NameList, err error) {
	err = d.on.do("list", d.path, func() (err error) {
		names, err = d.dir.List(after, limit)
		return err
	})
	return names, err
}
