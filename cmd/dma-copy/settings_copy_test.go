package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

func TestAcceptedCommandLines(t *testing.T) {
	cases := []struct {
		name, line string
		want       func(*copying.Settings)
	}{
		{"the least", "-f x", func(*copying.Settings) {}},
		{"host of the product page", "-p b1:00.1 -f x", func(s *copying.Settings) { s.Device = "b1:00.1" }},
		{"DPU of the product page", "-p 03:00.1 -r b1:00.1 -f x",
			func(s *copying.Settings) { s.Device, s.Representor = "03:00.1", "b1:00.1" }},
		{"device by the old short flag", "-d b1:00.1 -f x", func(s *copying.Settings) { s.Device = "b1:00.1" }},
		{"device by the old long flag", "--dev-pci b1:00.1 -f x", func(s *copying.Settings) { s.Device = "b1:00.1" }},
		{"device by both flags, the same", "-d mlx5_0 -p mlx5_0 -f x",
			func(s *copying.Settings) { s.Device = "mlx5_0" }},
		{"device with domain", "--pci-addr=0000:b1:00.1 -f x", func(s *copying.Settings) { s.Device = "0000:b1:00.1" }},
		{"a repeated switch", "-f x --overwrite --overwrite", func(s *copying.Settings) { s.Options.Overwrite = true }},
		{"value joined to a short flag", "-fx -l50", func(s *copying.Settings) { s.LogLevel = 50 }},
		{"level by name", "-f x -l critical", func(s *copying.Settings) { s.LogLevel = option.LevelCritical }},
		{"level by name in capitals", "-f x --log-level DISABLE",
			func(s *copying.Settings) { s.LogLevel = option.LevelDisable }},
		{"driver's level", "-f x --sdk-log-level 70",
			func(s *copying.Settings) { s.Driver.LogLevel = option.LevelTrace }},
		{"driver doca", "-f x --driver doca", func(s *copying.Settings) { s.Driver.Name = device.DriverDOCA }},
		{"driver soft", "-f x --driver soft", func(s *copying.Settings) { s.Driver.Name = device.DriverSoft }},
		{"role host", "-f x --role host", func(s *copying.Settings) { s.Role = inventory.RoleHost }},
		{"role DPU with representor", "-f x --role dpu -r b1:00.1",
			func(s *copying.Settings) { s.Role, s.Representor = inventory.RoleDPU, "b1:00.1" }},
		{"hardware only", "-f x --require-hw", func(s *copying.Settings) { s.Driver.RequireHW = true }},
		{"switch switched off", "-f x --require-hw=false", func(*copying.Settings) {}},
		{"durations", "-f x --wait 1m30s --timeout 2h --idle-timeout 500ms", func(s *copying.Settings) {
			s.Wait, s.Timeout, s.IdleTimeout = 90*time.Second, 2*time.Hour, 500*time.Millisecond
		}},
		{"no limit", "-f x --timeout 0", func(*copying.Settings) {}},
		{"chunk in bytes", "-f x --chunk 65536", func(s *copying.Settings) { s.Options.Chunk = 65536 }},
		{"chunk in bytes, said", "-f x --chunk 512B", func(s *copying.Settings) { s.Options.Chunk = 512 }},
		{"chunk in KiB", "-f x --chunk 256KiB", func(s *copying.Settings) { s.Options.Chunk = 256 << 10 }},
		{"chunk in small kib", "-f x --chunk 256kib", func(s *copying.Settings) { s.Options.Chunk = 256 << 10 }},
		{"days", "-f x --max-duration 1.5d --timeout 1w2d12h", func(s *copying.Settings) {
			s.Options.MaxDuration, s.Timeout = 36*time.Hour, 228*time.Hour
		}},
		{"fractions", "-f x --chunk 0.5M --max-bytes 1.5GiB --bwlimit 2.5MB", func(s *copying.Settings) {
			s.Options.Chunk, s.Options.MaxBytes, s.Options.Bandwidth = 1<<19, 3<<29, 2_500_000
		}},
		{"chunk with one letter", "-f x --chunk 1M", func(s *copying.Settings) { s.Options.Chunk = 1 << 20 }},
		{"chunk with one small letter", "-f x --chunk 1m", func(s *copying.Settings) { s.Options.Chunk = 1 << 20 }},
		{"chunk in thousands", "-f x --chunk 64kB", func(s *copying.Settings) { s.Options.Chunk = 64000 }},
		{"chunk chosen by the device", "-f x --chunk 0", func(*copying.Settings) {}},
		{"the largest chunk", "-f x --chunk 9223372036854775807",
			func(s *copying.Settings) { s.Options.Chunk = 1<<63 - 1 }},
		{"depth", "-f x --depth 16", func(s *copying.Settings) { s.Options.Depth = 16 }},
		{"a NUMA node", "-f x --numa 1", func(s *copying.Settings) { s.Placement = wishFor("1", "") }},
		{"no NUMA node", "-f x --numa off", func(s *copying.Settings) { s.Placement = wishFor("off", "") }},
		{"cores", "-f x --cores 0-3,8", func(s *copying.Settings) { s.Placement = wishFor("auto", "0-3,8") }},
		{"cores rather than no node's", "-f x --cores 8 --numa off",
			func(s *copying.Settings) { s.Placement = wishFor("off", "8") }},
		{"overwrite and quiet", "-f x --overwrite --quiet", func(s *copying.Settings) {
			s.Options.Overwrite, s.Quiet, s.LogLevel, s.Driver.LogLevel = true, true, option.LevelError,
				option.LevelError
		}},
		{"a stream", "-f -", func(s *copying.Settings) { s.File = "-" }},
		{"digest and durability", "-f x --digest sha256 --durability file", func(s *copying.Settings) {
			s.Options.Digest, s.AutoDigest, s.Options.Durability = digest.SHA256, false, wire.DurabilityFile
		}},
		{"nothing compared, nothing flushed", "-f x --digest none --durability none", func(s *copying.Settings) {
			s.Options.Digest, s.AutoDigest, s.Options.Durability = digest.None, false, wire.DurabilityNone
		}},
		{"an expected digest", "-f x --expect crc32c:1F0E22C4",
			func(s *copying.Settings) { s.Options.Expect = expected("crc32c:1f0e22c4") }},
		{"read back, no holes", "-f x --verify readback --sparse never",
			func(s *copying.Settings) { s.Options.Readback, s.Options.NoSparse = true, true }},
		{"preserve one", "-f x --preserve xattr", func(s *copying.Settings) { s.Options.Xattrs = true }},
		{"preserve both", "-f x --preserve owner,xattr",
			func(s *copying.Settings) { s.Options.Owner, s.Options.Xattrs = true, true }},
		{"backup, anew, of a file that changes", "-f x --backup --no-resume --allow-changing",
			func(s *copying.Settings) {
				s.Options.Backup, s.Options.NoResume, s.Options.AllowChanging = true, true, true
			}},
		{"limits", "-f x --bwlimit 1M --max-bytes 20G --max-holes 3G --max-duration 90s", func(s *copying.Settings) {
			o := &s.Options
			o.Bandwidth, o.MaxBytes, o.MaxHoles, o.MaxDuration = 1<<20, 20<<30, 3<<30, 90*time.Second
		}},
		{"the reference's protocol", "-f x --protocol reference",
			func(s *copying.Settings) { s.Options.ReferenceOnly = true }},
		{"progress alone", "-f x --progress", func(s *copying.Settings) { s.Progress = "always" }},
		{"progress in front of an argument", "--progress -f never", func(s *copying.Settings) {
			s.Progress, s.File = "always", "never"
		}},
		{"events, no progress", "-f x -o json --progress never",
			func(s *copying.Settings) { s.Output, s.Progress = option.OutputJSON, output.ProgressNever }},
		{"preserve hard links", "-f x --preserve links,xattr",
			func(s *copying.Settings) { s.Options.Xattrs, s.Options.HardLinks = true, true }},
		{"patterns in the order of the command line",
			"-f x --exclude *.o --include=a --exclude-from ignore --exclude b --include c", func(s *copying.Settings) {
				s.Filters = []copying.FilterRule{{Kind: copying.FilterExclude, Text: "*.o"},
					{Kind: copying.FilterInclude, Text: "a"},
					{Kind: copying.FilterExcludeFrom, Text: "ignore"},
					{Kind: copying.FilterExclude, Text: "b"}, {Kind: copying.FilterInclude, Text: "c"}}
			}},
		{"patterns of all copies and a stream", "-f - --exclude *.o --expect crc32c:1f0e22c4",
			func(s *copying.Settings) {
				s.File, s.Filters = "-", []copying.FilterRule{{Kind: copying.FilterExclude, Text: "*.o"}}
				s.Options.Expect = expected("crc32c:1f0e22c4")
			}},
		{"a list of paths", "-f x --files-from list", func(s *copying.Settings) { s.FilesFrom = "list" }},
		{"a list of paths on stdin, with NUL bytes", "-f x --files-from - -0",
			func(s *copying.Settings) { s.FilesFrom, s.Null = "-", true }},
		{"short switches together", "-0f x --files-from list",
			func(s *copying.Settings) { s.FilesFrom, s.Null = "list", true }},
		{"symlinks", "-f x --links follow", func(s *copying.Settings) { s.Options.Links = tree.LinksFollow }},
		{"a plan by content", "-f x --dry-run --checksum", func(s *copying.Settings) {
			s.DryRun,
				s.Options.Checksum = true, true
		}},
		{"a strict tree", "-f x --fail-fast --if-same error --max-entries 10000000 --events all",
			func(s *copying.Settings) {
				s.Options.FailFast, s.Options.RefuseSame, s.Options.MaxEntries, s.Events = true, true, 10_000_000,
					output.EventsAll
			}},
		{"file like a flag", "--file=--quiet", func(s *copying.Settings) { s.File = "--quiet" }},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got, want := mustLoad(t, nil, words(tc.line)...), defaults(tc.want); !reflect.DeepEqual(got, want) {
				t.Errorf("dma-copy %s:\n got %+v\nwant %+v", tc.line, got, want)
			}
		})
	}
}

// expected returns an expected digest.
func expected(text string) *digest.Sum {
	sum, err := digest.ParseSum(text)
	if err != nil {
		panic(err)
	}
	return &sum
}
