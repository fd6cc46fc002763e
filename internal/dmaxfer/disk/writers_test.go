package disk

import (
	"bytes"
	"testing"
	"testing/synctest"
)

// slowWriting is a file whose writes wait for permission.
type slowWriting struct {
	File
	written []byte
	goOn    chan struct{}
}

func (f *slowWriting) WriteAt(p []byte, offset int64) (int, error) {
	<-f.goOn
	return copy(f.written[offset:], p), nil
}

// firstPage is a Filler that fills only the first page.
type firstPage struct{ file *slowWriting }

func (f firstPage) Fill(buffer []byte, offset int64) int {
	return copy(f.file.written[offset:], buffer[:4096])
}

func (firstPage) Close() error { return nil }

// A lane that finds another one writing fills what it can, and writes the rest when the other one has finished.
func TestSecondWriterFills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := bytes.Repeat([]byte("0123456789abcdef"), 2*8192/16)
		file := &slowWriting{written: make([]byte, len(content)), goOn: make(chan struct{})}
		w := &writers{filler: firstPage{file}, writing: make(chan struct{}, 1)}
		ended := make(chan error, 2)
		write := func(from, to int) { ended <- w.writeAt(file, content[from:to], int64(from)) }
		go write(0, 8192)
		synctest.Wait()
		go write(8192, 16384)
		synctest.Wait()
		if want := append(make([]byte, 8192), content[8192:12288]...); !bytes.Equal(file.written[:12288], want) {
			t.Error("the second one has not filled its first page, or the first one was not writing")
		}
		file.goOn <- struct{}{}
		synctest.Wait()
		if err := <-ended; err != nil || !bytes.Equal(file.written[:12288], content[:12288]) {
			t.Errorf("the first one has not written all of its chunk: %v", err)
		}
		file.goOn <- struct{}{}
		if err := <-ended; err != nil || !bytes.Equal(file.written, content) {
			t.Errorf("the second one has not written the rest: %v", err)
		}
	})
}
