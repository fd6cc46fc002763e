package disk

import "slices"

// writers coordinates the lanes that write to one file. On tmpfs a write holds the file's lock while it allocates and
// copies pages, so a second writer would wait. Instead, it adds pages through the Filler, which does not take that
// lock.
type writers struct {
	filler  Filler        // nil: not available, or not wanted
	writing chan struct{} // holds a token while a lane calls WriteAt
}

// beginFilling enables the second way of writing if the file has a Filler.
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

// end closes the Filler after the last write. Its error does not affect the file.
func (w *writers) end() {
	if w.filler != nil {
		_ = w.filler.Close()
		w.filler = nil
	}
}
