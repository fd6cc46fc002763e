package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/root"
)

func TestRefusedCommandLines(t *testing.T) {
	const (
		badDevice      = "not a device; give a PCI address such as b1:00.1, or an IB or net device name"
		badRepresentor = "not a representor; give the PCI address of a host function such as b1:00.1, " +
			"or the VUID or net device name of its representor"
		badSize  = "not a size; give whole bytes such as 1048576, 512MiB or 2G"
		badCount = "give a whole number from 0 to 2147483647"
		badLevel = "not a log level; give 10 to 70 in steps of ten, " +
			"or DISABLE, CRITICAL, ERROR, WARNING, INFO, DEBUG or TRACE"
		badDuration = "not a duration; give a number with its unit, such as 30s, 5m or 1d"
		tooLong     = "longer than 292 years; give a duration such as 5m or 7d"
		notPositive = "the duration must be longer than zero; give one such as 30s"
	)
	cases := []struct{ name, line, sentence string }{
		{"no file", "-p b1:00.1", "--file is missing: name the file to send or to create with -f FILE"},
		{"empty file", "-f _", `--file "": an empty name; give the path of a file`},
		{"argument", "-f x y",
			`unexpected argument "y": name the file with -f FILE, and write long flags with two dashes`},
		{"argument after dashes", "-f x -- y",
			`unexpected argument "y": name the file with -f FILE, and write long flags with two dashes`},
		{"long flag with one dash", "-file x",
			`unexpected argument "x": name the file with -f FILE, and write long flags with two dashes`},
		{"copy to a share", "image.bin :inbox/",
			`unexpected argument "image.bin": write dma-copy push image.bin :inbox/`},
		{"copy as cp", "cp a b", `unknown command "cp": write dma-copy local a b`},
		{"copy as scp", "a user@dpu:/srv",
			`"user@dpu:/srv": write ssh://user@dpu/srv for a file on a machine that ssh logs in to`},
		{"copy as scp, home directory", "user@dpu:a/b c",
			`"user@dpu:a/b": write ssh://user@dpu/~/a/b for a file on a machine that ssh logs in to`},
		{"command of another program", "list :", `unknown command "list": write dma-copy ls`},
		{"mistyped help", "helo", `unknown command "helo": did you mean "help"?`},
		{"parameter file missing", "-f x --json",
			"--json needs a value: it reads a parameter file, as in --json FILE or -j FILE; " +
				"for output as JSON write -o json"},
		{"parameter file like a flag", "--json -f",
			`--json "-f": no such file or directory; name a readable parameter file`},
		{"script of no shell", "completion", "completion: the shell is missing: give bash, zsh or fish"},
		{"script of an unknown shell", "completion tcsh", "completion tcsh: unknown shell: give bash, zsh or fish"},
		{"scripts of two shells", "completion bash zsh",
			`unexpected argument "zsh": dma-copy completion takes one shell`},
		{"mistyped flag", "--pci-adr b1:00.1 -f x", `unknown flag "--pci-adr": did you mean --pci-addr?`},
		{"mistyped alias", "--dev-pic b1:00.1 -f x", `unknown flag "--dev-pic": did you mean --dev-pci?`},
		{"flag cut short", "-f x --over", `unknown flag "--over": did you mean --overwrite?`},
		{"flag in capitals", "-f x --QUIET", `unknown flag "--QUIET": did you mean --quiet?`},
		{"flag like no other", "-f x --frobnicate", `unknown flag "--frobnicate": "dma-copy --help" lists the flags`},
		{"letter of a long flag", "-f x -w", `unknown flag "-w": "dma-copy --help" lists the flags`},
		{"letter in the wrong case", "-P b1:00.1 -f x", `unknown flag "-P": write --progress`},
		{"letter like no other", "-f x -y", `unknown flag "-y": "dma-copy --help" lists the flags`},
		{"letter of rsync", "-f x -z", `unknown flag "-z": leave it out: data is not compressed`},
		{"three dashes", "---file x", `"---file" is not a flag: write --NAME VALUE or --NAME=VALUE`},
		{"nameless flag", "--=x", `"--=x" is not a flag: write --NAME VALUE or --NAME=VALUE`},
		{"value missing", "--file", "--file needs a value: write --file FILE or -f FILE"},
		{"value missing after a letter", "-p", "--pci-addr needs a value: write --pci-addr DEVICE or -p DEVICE"},
		{"value missing after the alias", "-d", "--dev-pci needs a value: write --dev-pci DEVICE or -d DEVICE"},
		{"value missing, no letter", "-f x --wait", "--wait needs a value: write --wait DURATION"},
		{"help with a value", "--help=please", `--help "please": the flag takes no value; leave it out`},
		{"two devices", "-p b1:00.0 -d b1:00.1 -f x",
			`--pci-addr "b1:00.0" and --dev-pci "b1:00.1" differ: both name the same thing, so give one of them`},
		{"device empty", "-p _ -f x", `--pci-addr "": ` + badDevice},
		{"device by path", "-p /dev/mlx -f x", `--pci-addr "/dev/mlx": ` + badDevice},
		{"device by the alias, by path", "-d /dev/mlx -f x", `--dev-pci "/dev/mlx": ` + badDevice},
		{"representor empty", "-r _ -f x", `--rep-pci "": ` + badRepresentor},
		{"representor as a devlink port", "-r pci/0000:03:00.0/1 -f x",
			`--rep-pci "pci/0000:03:00.0/1": ` + badRepresentor},
		{"representor of a host", "-r b1:00.1 --role host -f x", `--rep-pci "b1:00.1" conflicts with --role host: ` +
			"only the DPU side has representors, so leave one of them out"},
		{"level between steps", "-f x -l 45", `--log-level "45": ` + badLevel},
		{"level below", "-f x -l 0", `--log-level "0": ` + badLevel},
		{"level above", "-f x -l 80", `--log-level "80": ` + badLevel},
		{"level zero-padded", "-f x -l 040", `--log-level "040": ` + badLevel},
		{"level unknown", "-f x --sdk-log-level loud", `--sdk-log-level "loud": ` + badLevel},
		{"driver unknown", "-f x --driver hard",
			`--driver "hard": not one of the choices; give auto, doca, soft or ucx`},
		{"role unknown", "-f x --role guest", `--role "guest": not one of the choices; give auto, host or dpu`},
		{"switch position unknown", "-f x --quiet=maybe", `--quiet "maybe": not a boolean; give true or false`},
		{"switch with a separate value", "-f x --quiet true",
			`unexpected argument "true": name the file with -f FILE, and write long flags with two dashes`},
		{"NUMA node unknown", "-f x --numa near",
			`--numa "near": not a NUMA node; give auto, off or the number of one, such as 0`},
		{"NUMA node negative", "-f x --numa=-1",
			`--numa "-1": not a NUMA node; give auto, off or the number of one, such as 0`},
		{"no core", "-f x --cores _", `--cores "": not a list; give numbers and ranges with commas, such as 0-3,8`},
		{"cores backwards", "-f x --cores 3-1",
			`--cores "3-1": the range 3-1 is reversed; give the smaller number first, as in 1-3`},
		{"cores of no machine", "-f x --cores 0-1024", `--cores "0-1024": 1024 is too large; give numbers below 1024`},
		{"cores and a node", "-f x --cores 1,0 --numa 0", "--cores 0-1 conflicts with --numa 0: " +
			"both select the CPUs, so leave one of them out"},
		{"digest unknown", "-f x --digest md5",
			`--digest "md5": not a digest; give auto, none, crc32c, xxh3, blake3 or sha256`},
		{"digest without an algorithm", "-f x --expect 1f0e22c4",
			`--expect "1f0e22c4": not a digest; give ALGORITHM:HEX, such as crc32c:1f0e22c4`},
		{"digest cut short", "-f x --expect crc32c:1f0e",
			`--expect "crc32c:1f0e": a crc32c digest has 8 hexadecimal digits, not 4`},
		{"digest too strong to compare", "-f x --expect crc32c:1f0e22c4 --digest sha256",
			"--expect crc32c:1f0e22c4 conflicts with --digest sha256: the expected digest must be a sha256"},
		{"durability unknown", "-f x --durability much",
			`--durability "much": not one of the choices; give none, file or full`},
		{"something to preserve unknown", "-f x --preserve owner,acl",
			`--preserve "owner,acl": "acl": not one of the choices; give owner, xattr, links or all`},
		{"something to preserve twice", "-f x --preserve owner,owner",
			`--preserve "owner,owner": "owner" is given twice; leave one out`},
		{"nothing to preserve in a list", "-f x --preserve owner,,links",
			`--preserve "owner,,links": "": not one of the choices; give owner, xattr, links or all`},
		{"rate without a number", "-f x --bwlimit fast",
			`--bwlimit "fast": not a size; give whole bytes such as 1048576, 512MiB or 2G`},
		{"rate of nothing", "-f x --bwlimit 16383", `--bwlimit "16383": too small; give at least 16KiB`},
		{"bytes beyond numbers", "-f x --max-bytes 99999999999G",
			`--max-bytes "99999999999G": too large; give a size such as 2GiB`},
		{"stream in the reference's protocol", "-f - --protocol reference",
			"-f - conflicts with --protocol reference: that protocol does not support it, so leave one of them out"},
		{"digest in the reference's protocol", "-f x --protocol reference --expect crc32c:1f0e22c4",
			"--expect conflicts with --protocol reference: that protocol does not support it, so " +
				"leave one of them out"},
		{"NUL bytes in no list", "-f x -0",
			"--null is for the list of --files-from: name that with --files-from FILE, or leave --null out"},
		{"stream and a list", "-f - --files-from list",
			"-f - conflicts with --files-from: a stream is not a tree, so leave one of them out"},
		{"plan of a stream", "-f - --dry-run",
			"-f - conflicts with --dry-run: a stream has no plan, so leave one of them out"},
		{"digest of a tree", "-f x --files-from list --expect crc32c:1f0e22c4",
			"--expect crc32c:1f0e22c4 conflicts with --files-from: a tree has no digest, so leave one of them out"},
		{"plan in the reference's protocol", "-f x --protocol reference --dry-run",
			"--dry-run conflicts with --protocol reference: that protocol does not support it, so leave one of them " +
				"out"},
		{"list in the reference's protocol", "-f x --protocol reference --files-from list",
			"--files-from conflicts with --protocol reference: that protocol does not support it, so leave one of " +
				"them out"},
		{"pattern empty", "-f x --exclude _",
			`--exclude "": not a pattern; give one line as in .gitignore, such as *.tmp or build/`},
		{"pattern malformed", "-f x --exclude [a", `--exclude "[a": not a pattern: it has "[" without "]"`},
		{"list unnamed", "-f x --files-from _", `--files-from "": an empty name; give the path of a file`},
		{"links unknown", "-f x --links hard", `--links "hard": not one of the choices; give copy, follow or skip`},
		{"entries unknown", "-f x --max-entries 1M",
			`--max-entries "1M": give a whole number from 0 to 9223372036854775807`},
		{"entries beyond 63 bits", "-f x --max-entries 9223372036854775808",
			`--max-entries "9223372036854775808": give a whole number from 0 to 9223372036854775807`},
		{"events unknown", "-f x --events none",
			`--events "none": not one of the choices; give all or failures`},
		{"result unknown", "-f x --if-same fail",
			`--if-same "fail": not one of the choices; give skip or error`},
		{"wait of nothing", "-f x --wait 0", `--wait "0": ` + notPositive},
		{"wait negative", "-f x --wait -1s", `--wait "-1s": ` + notPositive},
		{"wait without unit", "-f x --wait 30", `--wait "30": ` + badDuration},
		{"wait of words", "-f x --wait long", `--wait "long": ` + badDuration},
		{"idle timeout of nothing", "-f x --idle-timeout 0s", `--idle-timeout "0s": ` + notPositive},
		{"idle timeout negative", "-f x --idle-timeout=-5m", `--idle-timeout "-5m": ` + notPositive},
		{"timeout negative", "-f x --timeout -1s",
			`--timeout "-1s": a duration cannot be negative; give one such as 10m, or 0 for no limit`},
		{"timeout beyond the clock", "-f x --timeout 9999999h", `--timeout "9999999h": ` + tooLong},
		{"timeout of too many days", "-f x --timeout 106752d", `--timeout "106752d": ` + tooLong},
		{"wait of days and letters", "-f x --wait 1day", `--wait "1day": ` + badDuration},
		{"chunk empty", "-f x --chunk _", `--chunk "": ` + badSize},
		{"chunk negative", "-f x --chunk -1", `--chunk "-1": ` + badSize},
		{"chunk with plus", "-f x --chunk +1", `--chunk "+1": ` + badSize},
		{"chunk zero-padded", "-f x --chunk 0256KiB", `--chunk "0256KiB": ` + badSize},
		{"chunk in parts of bytes", "-f x --chunk 1.0001KiB", `--chunk "1.0001KiB": ` +
			"not a whole number of bytes; give whole bytes such as 1048576, 512MiB or 2G"},
		{"chunk of a bare fraction", "-f x --chunk .5M", `--chunk ".5M": ` + badSize},
		{"chunk with commas", "-f x --chunk 1,024", `--chunk "1,024": ` + badSize},
		{"chunk of unknown unit", "-f x --chunk 1X", `--chunk "1X": ` + badSize},
		{"chunk beyond 63 bits", "-f x --chunk 9223372036854775808",
			`--chunk "9223372036854775808": too large; give a size such as 2GiB`},
		{"chunk beyond 64 bits", "-f x --chunk 99999999999G",
			`--chunk "99999999999G": too large; give a size such as 2GiB`},
		{"depth negative", "-f x --depth -1", `--depth "-1": ` + badCount},
		{"depth zero-padded", "-f x --depth 016", `--depth "016": ` + badCount},
		{"depth with unit", "-f x --depth 16K", `--depth "16K": ` + badCount},
		{"depth beyond 31 bits", "-f x --depth 2147483648",
			`--depth "2147483648": give a whole number from 0 to 2147483647`},
		{"parameter file missing", "-j no.json",
			`--json "no.json": no such file or directory; name a readable parameter file`},
		{"parameter file unnamed", "-f x -j _",
			`--json "": no such file or directory; name a readable parameter file`},
		{"control characters", "-f x y\x1b[2J",
			`unexpected argument "y\x1b[2J": name the file with -f FILE, and write long flags with two dashes`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { checkRefusal(t, invoke(nil, words(tc.line)...), tc.sentence) })
	}
}

func TestErrorOfTheRunIsReturned(t *testing.T) {
	failure := errors.New("the transfer failed")
	stdio := root.Streams{Stdout: io.Discard, Stderr: io.Discard,
		Env: func(string) (string, bool) { return "", false }}
	p := withCopy(func(copying.Settings) error { return failure })
	if err := p.Execute(t.Context(), stdio, []string{"-f", "x"}); err != failure {
		t.Errorf("got %v, want %v", err, failure)
	}
}

func TestDPDKGroupIsNotedAsIgnored(t *testing.T) {
	inNewDir(t, "params.json", `{"doca_program_flags": {"file": "x"},
		"doca_dpdk_flags": {
			"devices": [{"device": "pf", "id": "03:00.0", "hws": true}], "core-list": "0-1", "flags": ""}}`)
	got := invoke(nil, "-j", "params.json")
	if got.err != nil || got.settings.File != "x" {
		t.Fatalf("error %v, settings %+v", got.err, got.settings)
	}
	const note = `"message":"doca_dpdk_flags of params.json is ignored: dma-copy does not run on DPDK"`
	if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, note) ||
		!strings.Contains(got.stderr, `"level":"warn"`) {
		t.Errorf("logged %q, want one warning with %s", got.stderr, note)
	}
	if silent := invoke(nil, "-j", "params.json", "-l", "ERROR"); silent.err != nil || silent.stderr != "" {
		t.Errorf("at level ERROR: error %v, logged %q", silent.err, silent.stderr)
	}
}
