package main

import (
	"slices"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

const levelHelp = "10=DISABLE, 20=CRITICAL, 30=ERROR,\n40=WARNING, 50=INFO, 60=DEBUG, 70=TRACE"

// options implements settings.
func (s *copySettings) options() []option {
	return slices.Concat(
		generalOptions(&s.LogLevel, &s.Driver), s.fileOptions(), driverOptions(&s.Driver), s.deviceOptions(),
		placeOptions(&s.Place), s.runOptions(), s.reportOptions(), s.contentOptions(), s.targetOptions(), s.limitOptions(),
		s.workshopOptions())
}

// commonOptions are those of every command that opens a driver.
func commonOptions(level *logLevel, driver *driverSettings) []option {
	return append(generalOptions(level, driver), driverOptions(driver)...)
}

// generalOptions are those of every DOCA program.
func generalOptions(level *logLevel, driver *driverSettings) []option {
	return []option{logLevelOption(level), sdkLogLevelOption(&driver.LogLevel), jsonOption()}
}

func logLevelOption(level *logLevel) option {
	return option{
		group: docaOptions, name: "log-level", short: "l", value: "LEVEL", fallback: "40", json: jsonNumber,
		assign: into(level, parseLevel),
		help:   "Log level of the program, by number or name:\n" + levelHelp,
	}
}

func sdkLogLevelOption(level *logLevel) option {
	return option{
		group: docaOptions, name: "sdk-log-level", value: "LEVEL", fallback: "40", json: jsonNumber,
		assign: into(level, parseLevel),
		help:   "The same for the driver's own messages",
	}
}

// jsonOption names the parameter file, which is read before all others are merged.
func jsonOption() option {
	return option{
		group: docaOptions, name: "json", short: "j", value: "FILE", json: jsonNone,
		assign: func(string) error { return nil },
		help:   "Parameter file in DOCA's JSON form; may have\ncomments and trailing commas",
	}
}

// fileOptions are those of DOCA's own program.
func (s *copySettings) fileOptions() []option {
	return []option{
		deviceOption(&s.Device),
		representorOption(&s.Representor),
		{group: programOptions, name: "file", short: "f", value: "FILE",
			json: jsonText, assign: into(&s.File, parsePath),
			help: "File to send, or to create; mandatory; - is\nstdin, or stdout if the other side has a file"},
	}
}

func deviceOption(device *string) option {
	return option{
		group: programOptions, name: "pci-addr", short: "p", alias: "dev-pci", aliasKey: "d", value: "DEVICE",
		json: jsonText, assign: into(device, parseDevice),
		help: "Device: PCI address, IB or net device name;\nneeded only where more than one device fits",
	}
}

func representorOption(representor *string) option {
	return option{
		group: programOptions, name: "rep-pci", short: "r", value: "DEVICE",
		json: jsonText, assign: into(representor, parseDevice),
		help: "Representor of the host's device, DPU only",
	}
}

func driverOptions(s *driverSettings) []option {
	return []option{
		{group: addedOptions, name: "driver", value: "auto|doca|soft", fallback: driverAuto,
			json: jsonText, assign: into(&s.Name, parseOneOf(driverAuto, driverDOCA, driverSoft)),
			help: "DOCA's libraries or the software device; auto\nis DOCA if it loads and finds a device"},
		{group: addedOptions, name: "require-hw", fallback: "false", json: jsonSwitch,
			assign: into(&s.RequireHW, parseSwitch),
			help:   "Fail rather than copy without the hardware"},
		{group: addedOptions, name: "doca-libdir", value: "DIR", json: jsonText,
			assign: into(&s.LibraryDir, parsePath),
			help:   "Directory of DOCA's libraries; if not given,\nthe loader's path and DOCA's own directories"},
	}
}

func (s *copySettings) deviceOptions() []option {
	return []option{
		{group: addedOptions, name: "role", value: "auto|host|dpu", fallback: string(roleAuto),
			json:   jsonText,
			assign: into(&s.Role, parseOneOf(roleAuto, roleHost, roleDPU)),
			help:   "Role of this side; auto is dpu where the device\ncan be a server or -r is given"},
		{group: addedOptions, name: "chunk", value: "SIZE", fallback: "0",
			json: jsonNumber, assign: into(&s.Chunk, parseChunk),
			help: "Bytes per DMA task, such as 65536, 256KiB or 1M\n(1024 to the K); 0 is automatic. Between two\n" +
				"dma-copy the smaller of both sides, rounded\ndown to a power of two (minimum 4KiB)"},
		{group: addedOptions, name: "depth", value: "COUNT", fallback: "0",
			json: jsonNumber, assign: into(&s.Depth, parseCount),
			help: "DMA tasks in flight; 0 is automatic. Between\ntwo dma-copy the smaller of both sides"},
	}
}

// placeOptions are about where on this machine the program runs.
func placeOptions(wish *placement.Wish) []option {
	return []option{
		{group: addedOptions, name: "numa", value: "auto|off|NODE", fallback: placement.NodeAuto, json: jsonNumber,
			assign: into(&wish.Node, placement.ParseNode),
			help: "Pin the process to a NUMA node's CPUs, and so\nby default to its memory; auto is the node of\n" +
				"the device, if hardware"},
		{group: addedOptions, name: "cores", value: "LIST", json: jsonNumber,
			assign: into(&wish.Cores, placement.ParseList),
			help:   "Pin the process to these CPUs, such as 0-3,8,\ninstead of a node's"},
	}
}

func (s *copySettings) runOptions() []option {
	return []option{
		{group: addedOptions, name: "wait", value: "DURATION", fallback: "30s",
			json: jsonText, assign: into(&s.Wait, parsePatience),
			help: "Timeout for the peer to connect and be free;\neither side may start first"},
		{group: addedOptions, name: "timeout", value: "DURATION", fallback: "0",
			json: jsonText, assign: into(&s.Timeout, parseLimit),
			help: "Timeout for the whole run; 0 is none"},
		{group: addedOptions, name: "max-duration", value: "DURATION", fallback: "0",
			json: jsonText, assign: into(&s.MaxDuration, parseLimit),
			help: "Timeout for the copy, from when both sides are\nconnected; 0 is none"},
		{group: addedOptions, name: "max-bytes", value: "SIZE", fallback: "0",
			json: jsonNumber, assign: into(&s.MaxBytes, parseMostBytes),
			help: "Refuse a larger file; 0 is no limit"},
		{group: addedOptions, name: "max-holes", value: "SIZE", fallback: "256GiB",
			json: jsonNumber, assign: into(&s.MaxHoles, parseMostBytes),
			help: "Refuse a file with more holes, which take as\n" +
				"long as data with a digest other than crc32c or\nwith a readback; 0 is no limit"},
		{group: addedOptions, name: "idle-timeout", value: "DURATION", fallback: "30s",
			json: jsonText, assign: into(&s.IdleTimeout, parsePatience),
			help: "Timeout without progress"},
		{group: addedOptions, name: "overwrite", fallback: "false", json: jsonSwitch,
			assign: into(&s.Overwrite, parseSwitch),
			help:   "Receive here, replacing FILE if it exists;\nrequired on one side if both have it"},
		{group: addedOptions, name: "backup", fallback: "false", json: jsonSwitch,
			assign: into(&s.Backup, parseSwitch),
			help:   "With --overwrite: keep the old file as FILE~"},
		{group: addedOptions, name: "protocol", value: "auto|reference", fallback: string(protocolAuto), json: jsonText,
			assign: into(&s.Protocol, parseOneOf(protocolAuto, protocolReference)),
			help:   "reference forces NVIDIA's protocol, auto\nprefers the native one"},
	}
}

func (s *copySettings) reportOptions() []option {
	return []option{
		{group: addedOptions, name: "output", short: "o", value: "text|json", fallback: string(outputText), json: jsonText,
			assign: into(&s.Output, parseOneOf(outputText, outputJSON)),
			help:   "Report as text on stderr, or as JSON lines on\nstdout (on stderr with -f -)"},
		{group: addedOptions, name: "progress", value: "auto|never|always", fallback: string(progressAuto), json: jsonText,
			assign: into(&s.Progress, parseOneOf(progressAuto, progressNever, progressAlways)),
			help:   "auto is a bar on a terminal, else a line every\n10s; always a line every second, even if quiet"},
		{group: addedOptions, name: "quiet", fallback: "false", json: jsonSwitch,
			assign: into(&s.Quiet, parseSwitch),
			help:   "Print no summary and no progress"},
	}
}

// contentOptions are about what the bytes are and how they are compared.
func (s *copySettings) contentOptions() []option {
	return []option{
		{group: nativeOptions, name: "digest", value: "none|crc32c|xxh3|blake3|sha256", fallback: defaultDigest.String(), json: jsonText,
			assign: into(&s.Digest, parseCopyDigest),
			help:   "Digest that both sides compare; the stronger\nchoice of both sides is used"},
		{group: nativeOptions, name: "expect", value: "ALGORITHM:HEX", json: jsonText,
			assign: into(&s.Expect, digest.ParseSum),
			help:   "Expected digest, such as crc32c:1f0e22c4, else\nfail; implies its --digest"},
		{group: nativeOptions, name: "verify", value: "digest|readback", fallback: string(verifyDigest), json: jsonText,
			assign: into(&s.Verify, parseOneOf(verifyDigest, verifyReadback)),
			help:   "readback: the receiver also reads the file back\nfrom its disk before the final rename"},
		{group: nativeOptions, name: "allow-changing", fallback: "false", json: jsonSwitch,
			assign: into(&s.AllowChanging, parseSwitch),
			help:   "Sender: the file may change during the copy;\nits size at the start is sent"},
	}
}

// targetOptions are about what the receiver's file gets besides its bytes.
func (s *copySettings) targetOptions() []option {
	return []option{
		{group: nativeOptions, name: "durability", value: "none|file|full", fallback: negotiate.DurabilityFull.String(), json: jsonText,
			assign: into(&s.Durability, parseDurability),
			help: "What to flush (fsync) before success: nothing,\nthe file, its directory too; the stronger\n" +
				"choice of both sides is used"},
		{group: nativeOptions, name: "sparse", value: "auto|never", fallback: string(sparseAuto), json: jsonText,
			assign: into(&s.Sparse, parseOneOf(sparseAuto, sparseNever)),
			help:   "never: fill holes with zeros"},
		{group: nativeOptions, name: "preserve", value: "owner,xattr", json: jsonText,
			assign: into(&s.Preserve, parsePreserved),
			help:   "Preserve them too, if set on both sides; mode\nand modification time are always preserved"},
		{group: nativeOptions, name: "no-resume", fallback: "false", json: jsonSwitch,
			assign: into(&s.NoResume, parseSwitch),
			help:   "Receiver: neither resume an earlier copy, nor\nkeep a partial file on failure"},
	}
}

func (s *copySettings) limitOptions() []option {
	return []option{
		{group: nativeOptions, name: "bwlimit", value: "RATE", fallback: "0", json: jsonNumber,
			assign: into(&s.Bandwidth, parseRate),
			help:   "Bandwidth limit in bytes per second, such as\n100MiB; 0 is no limit"},
	}
}

// workshopOptions are for those who work on the program.
func (s *copySettings) workshopOptions() []option {
	return []option{
		{group: addedOptions, name: "cpuprofile", value: "FILE", json: jsonText, hidden: true,
			assign: into(&s.CPUProfile, parsePath),
			help:   "Write a profile of this side for go tool pprof"},
	}
}
