package disk

import "slices"

// writers are the lanes that write to one file. A file in memory is written by two at once: a write holds the file's lock while it takes
// pages and copies, so a second one would wait for all of the first. Whoever finds another one writing fills in pages without that lock.
type writers struct {
	filler  Filler        // nil: there is no way to fill, or nobody asked for it
	writing chan struct{} // holds a token while somebody writes, if there is
}

// writeStep is how much is written with one call. A file system takes page cache in blocks as large as the call, and large free blocks
// are what a virtual machine's host takes back: to touch one then costs a fault outside the guest for each page. In smaller ones it is
// the calls and the blocks that cost.
const writeStep = 256 << 10

// beginFilling makes it two ways, if the file has the other one.
func (w *writers) beginFilling(file File, size int64) {
	if filler, err := file.Filler(size); err == nil {
		w.filler, w.writing = filler, make(chan struct{}, 1)
	}
}

func (w *writers) writeAt(file File, buffer []byte, offset int64) error {
	if w.filler == nil {
		return write(file, buffer, offset)
	}
	filled := 0
	select {
	case w.writing <- struct{}{}:
	default:
		filled = w.filler.Fill(buffer, offset)
		if filled == len(buffer) {
			return nil
		}
		w.writing <- struct{}{}
	}
	defer func() { <-w.writing }()
	return write(file, buffer[filled:], offset+int64(filled))
}

func write(file File, buffer []byte, offset int64) error {
	for step := range slices.Chunk(buffer, writeStep) {
		if _, err := file.WriteAt(step, offset); err != nil {
			return err
		}
		offset += int64(len(step))
	}
	return nil
}

// end is for when all have written. What cannot be given back then is no harm to the file.
func (w *writers) end() {
	if w.filler != nil {
		_ = w.filler.Close()
		w.filler = nil
	}
}
