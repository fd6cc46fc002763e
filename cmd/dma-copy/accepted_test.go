package main

import (
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

func TestAcceptedCommandLines(t *testing.T) {
	cases := []struct {
		name, line string
		want       func(*copySettings)
	}{
		{"the least", "-f x", func(*copySettings) {}},
		{"host of the product page", "-p b1:00.1 -f x", func(s *copySettings) { s.Device = "b1:00.1" }},
		{"DPU of the product page", "-p 03:00.1 -r b1:00.1 -f x",
			func(s *copySettings) { s.Device, s.Representor = "03:00.1", "b1:00.1" }},
		{"device by the old short flag", "-d b1:00.1 -f x", func(s *copySettings) { s.Device = "b1:00.1" }},
		{"device by the old long flag", "--dev-pci b1:00.1 -f x", func(s *copySettings) { s.Device = "b1:00.1" }},
		{"device by both flags, the same", "-d mlx5_0 -p mlx5_0 -f x", func(s *copySettings) { s.Device = "mlx5_0" }},
		{"device with domain", "--pci-addr=0000:b1:00.1 -f x", func(s *copySettings) { s.Device = "0000:b1:00.1" }},
		{"the last of a repeated flag", "-f y -f x", func(*copySettings) {}},
		{"value joined to a short flag", "-fx -l50", func(s *copySettings) { s.LogLevel = 50 }},
		{"level by name", "-f x -l critical", func(s *copySettings) { s.LogLevel = levelCritical }},
		{"level by name in capitals", "-f x --log-level DISABLE", func(s *copySettings) { s.LogLevel = levelDisable }},
		{"driver's level", "-f x --sdk-log-level 70", func(s *copySettings) { s.Driver.LogLevel = levelTrace }},
		{"driver doca", "-f x --driver doca", func(s *copySettings) { s.Driver.Name = driverDOCA }},
		{"driver soft", "-f x --driver soft", func(s *copySettings) { s.Driver.Name = driverSoft }},
		{"role host", "-f x --role host", func(s *copySettings) { s.Role = roleHost }},
		{"role DPU with representor", "-f x --role dpu -r b1:00.1",
			func(s *copySettings) { s.Role, s.Representor = roleDPU, "b1:00.1" }},
		{"hardware only", "-f x --require-hw", func(s *copySettings) { s.Driver.RequireHW = true }},
		{"switch switched off", "-f x --require-hw=false", func(*copySettings) {}},
		{"durations", "-f x --wait 1m30s --timeout 2h --idle-timeout 500ms", func(s *copySettings) {
			s.Wait, s.Timeout, s.IdleTimeout = 90*time.Second, 2*time.Hour, 500*time.Millisecond
		}},
		{"no limit", "-f x --timeout 0", func(*copySettings) {}},
		{"chunk in bytes", "-f x --chunk 65536", func(s *copySettings) { s.Chunk = 65536 }},
		{"chunk in bytes, said", "-f x --chunk 512B", func(s *copySettings) { s.Chunk = 512 }},
		{"chunk in KiB", "-f x --chunk 256KiB", func(s *copySettings) { s.Chunk = 256 << 10 }},
		{"chunk in small kib", "-f x --chunk 256kib", func(s *copySettings) { s.Chunk = 256 << 10 }},
		{"chunk with one letter", "-f x --chunk 1M", func(s *copySettings) { s.Chunk = 1 << 20 }},
		{"chunk with one small letter", "-f x --chunk 1m", func(s *copySettings) { s.Chunk = 1 << 20 }},
		{"chunk in thousands", "-f x --chunk 64kB", func(s *copySettings) { s.Chunk = 64000 }},
		{"chunk chosen by the device", "-f x --chunk 0", func(*copySettings) {}},
		{"the largest chunk", "-f x --chunk 9223372036854775807", func(s *copySettings) { s.Chunk = 1<<63 - 1 }},
		{"depth", "-f x --depth 16", func(s *copySettings) { s.Depth = 16 }},
		{"a NUMA node", "-f x --numa 1", func(s *copySettings) { s.Place = wishFor("1", "") }},
		{"no NUMA node", "-f x --numa off", func(s *copySettings) { s.Place = wishFor("off", "") }},
		{"cores", "-f x --cores 0-3,8", func(s *copySettings) { s.Place = wishFor("auto", "0-3,8") }},
		{"cores rather than no node's", "-f x --cores 8 --numa off", func(s *copySettings) { s.Place = wishFor("off", "8") }},
		{"overwrite and quiet", "-f x --overwrite --quiet", func(s *copySettings) { s.Overwrite, s.Quiet = true, true }},
		{"a stream", "-f -", func(s *copySettings) { s.File = "-" }},
		{"digest and durability", "-f x --digest sha256 --durability file", func(s *copySettings) {
			s.Digest, s.Durability = digest.SHA256, negotiate.DurabilityFile
		}},
		{"nothing compared, nothing flushed", "-f x --digest none --durability none", func(s *copySettings) {
			s.Digest, s.Durability = digest.None, negotiate.DurabilityNone
		}},
		{"an expected digest", "-f x --expect crc32c:1F0E22C4", func(s *copySettings) { s.Expect, _ = digest.ParseSum("crc32c:1f0e22c4") }},
		{"read back, no holes", "-f x --verify readback --sparse never",
			func(s *copySettings) { s.Verify, s.Sparse = verifyReadback, sparseNever }},
		{"preserve one", "-f x --preserve xattr", func(s *copySettings) { s.Preserve.Xattr = true }},
		{"preserve both", "-f x --preserve owner,xattr", func(s *copySettings) { s.Preserve = preserved{Owner: true, Xattr: true} }},
		{"backup, anew, of a file that changes", "-f x --backup --no-resume --allow-changing",
			func(s *copySettings) { s.Backup, s.NoResume, s.AllowChanging = true, true, true }},
		{"limits", "-f x --bwlimit 1M --max-bytes 20G --max-holes 3G --max-duration 90s", func(s *copySettings) {
			s.Bandwidth, s.MaxBytes, s.MaxHoles, s.MaxDuration = 1<<20, 20<<30, 3<<30, 90*time.Second
		}},
		{"the reference's protocol", "-f x --protocol reference", func(s *copySettings) { s.Protocol = protocolReference }},
		{"events, no progress", "-f x -o json --progress never",
			func(s *copySettings) { s.Output, s.Progress = outputJSON, progressNever }},
		{"file like a flag", "--file=--quiet", func(s *copySettings) { s.File = "--quiet" }},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got, want := mustLoad(t, nil, words(tc.line)...), defaults(tc.want); got != want {
				t.Errorf("dma-copy %s:\n got %+v\nwant %+v", tc.line, got, want)
			}
		})
	}
}
