package verify

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/fileio"
)

// The JSON line of the progress matches the schema, with and without totals.
func TestProgressAsJSON(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../../docs/verify.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, total := range []int64{0, 100} {
		var stdout, stderr bytes.Buffer
		v := verifier{
			stdout: &stdout, stderr: &stderr, settings: Settings{Output: option.OutputJSON},
			meter: &meter{began: time.Now()},
		}
		v.meter.bytesTotal.Store(total)
		v.meter.filesTotal.Store(total)
		v.printProgress()
		instance, err := jsonschema.UnmarshalJSON(&stdout)
		if err == nil {
			err = schema.Validate(instance)
		}
		if err != nil || stderr.Len() > 0 {
			t.Errorf("total %d: %v; stderr %q", total, err, &stderr)
		}
	}
}

func TestProgressText(t *testing.T) {
	for _, tc := range []struct {
		line progressLine
		want string
	}{
		{progressLine{Bytes: 1 << 30, BytesTotal: 4 << 30, Rate: 512 << 20, Elapsed: 2},
			"25%  1.0 GiB/4.0 GiB  512 MiB/s  ETA 6s"},
		{progressLine{Bytes: 1 << 20, BytesTotal: 206 << 20, Rate: 1 << 20, Elapsed: 1},
			"0%  1.0 MiB/206 MiB  1.0 MiB/s  ETA 3m25s"},
		{progressLine{BytesTotal: 4 << 30}, "0%  0 B/4.0 GiB  0 B/s"},
		{progressLine{Files: 1, FilesTotal: 4, Bytes: 1 << 20, Rate: 1 << 20}, "25%  1/4 files  1.0 MiB  1.0 MiB/s"},
		{progressLine{Files: 3}, "3 files  0 B  0 B/s"},
		{progressLine{Files: 1}, "1 file  0 B  0 B/s"},
		{progressLine{Bytes: 5, BytesTotal: 4, Rate: 1}, "100%  5 B/4 B  1 B/s  ETA 0s"},
	} {
		if got := tc.line.text(); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.line, got, tc.want)
		}
	}
}

func TestMeterCountsBytes(t *testing.T) {
	inNewDir(t, "file", "content")
	file, err := fileio.Open("file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var m meter
	if _, err := io.Copy(io.Discard, meteredSource{file, &m}); err != nil || m.progress().Bytes != 7 {
		t.Errorf("%d bytes, error %v", m.progress().Bytes, err)
	}
}
