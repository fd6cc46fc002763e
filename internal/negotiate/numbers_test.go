package negotiate_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire/wiretest"
)

// Numbers of messages, kinds and flags are the protocol: released programs know them.
func TestNumbersOnTheWire(t *testing.T) {
	for first, kinds := range map[int][][]uint32{
		0: {
			numbers(native.ChangeNone, native.ChangeNew, native.ChangeType, native.ChangeSize, native.ChangeContent,
				native.ChangeTime, native.ChangeMode, native.ChangeOwner,
				native.ChangeXattr),
			numbers(service.CopyUnknown, service.CopyFile, service.CopyTree, service.CopyStream),
			numbers(service.CopyLinksAsLinks, service.CopyLinksFollow, service.CopyLinksSkip),
			numbers(service.PingBytes, service.PingText, service.PingConsumer),
			numbers(wire.DigestNone, wire.DigestCRC32C, wire.DigestXXH3, wire.DigestBLAKE3, wire.DigestSHA256),
			numbers(wire.DurabilityNone, wire.DurabilityFile, wire.DurabilityFull),
			numbers(wire.PathDMA, wire.PathFast, wire.PathTLS, wire.PathMessages, wire.PathRMA, wire.PathTCP),
		},
		1: {
			numbers(native.AnswerNeed, native.AnswerHave, native.AnswerSum, native.AnswerExists),
			numbers(wire.DiscardedOtherSource, wire.DiscardedOtherDigest, wire.DiscardedNoJournal,
				wire.DiscardedDamaged,
				wire.DiscardedNotResumable),
			numbers(wire.EntryFile, wire.EntryDirectory, wire.EntrySymlink, wire.EntryHardLink, wire.EntrySpecial),
			numbers(native.DataRecord, native.HoleRecord, native.ClaimRecord),
			numbers(service.ItemInclude, service.ItemExclude, service.ItemPath),
			numbers(service.CopyPush, service.CopyPull),
		},
	} {
		for _, kind := range kinds {
			for i, number := range kind {
				if number != uint32(first+i) {
					t.Errorf("%v: the number %d is %d", kind, first+i, number)
				}
			}
		}
	}
	for _, flags := range [][]uint32{
		numbers(wire.EntrySizeUnknown, wire.EntryHasMetadata, wire.EntryChunked),
		numbers(service.ListRecursive, service.ListItself, service.ListIdentify, service.ListKept, service.ListAll),
		numbers(service.CopyOverwrite, service.CopyBackup, service.CopyNoResume, service.CopyMakePath,
			service.CopyDirectory, service.CopyAllowChanging, service.CopyOnly,
			service.CopyOwner, service.CopyXAttr, service.CopyHardLinks, service.CopyDryRun, service.CopyIgnoreExisting,
			service.CopyKeep),
		numbers(native.FlagFile, native.FlagTree, native.FlagStream, native.FlagOverwrite, native.FlagNoSparse,
			native.FlagReadback, native.FlagOwner, native.FlagXAttr,
			native.FlagAllowChanging, native.FlagLinks, native.FlagChecksum, native.FlagDryRun, native.FlagRefuseSame,
			native.FlagFailFast, native.FlagNoDMA, native.FlagFast,
			native.FlagReceives, native.FlagTLS, native.FlagMessages, native.FlagRMA, native.FlagTCP,
			native.FlagIgnoreExisting, native.FlagUnfinished, native.FlagPrivileged),
	} {
		for i, flag := range flags {
			if flag != 1<<i {
				t.Errorf("%v: flag %d is %#x", flags, i, flag)
			}
		}
	}
}

func numbers[T ~uint8 | ~uint32](values ...T) (all []uint32) {
	for _, v := range values {
		all = append(all, uint32(v))
	}
	return all
}

// The page and the code have the same number for each message of the native protocol and of the service.
func TestTypesOfThePage(t *testing.T) {
	row := regexp.MustCompile(
		`(?m)^\| (0x[0-9a-f]+|[0-9]+) \| ([A-Z ]+) \| (?:both|host|DPU|command|daemon|sender|receiver)`)
	var onPage []string
	for _, match := range row.FindAllStringSubmatch(wiretest.ReadProtocol(t), -1) {
		number, err := strconv.ParseInt(match[1], 0, 32)
		if err != nil {
			t.Fatal(err)
		}
		onPage = append(onPage, fmt.Sprintf("%#x %s", number, match[2]))
	}
	var inCode []string
	for number := wire.TypeHello; number < 0x1000; number++ { // the others are not in such a table
		if number.Known() {
			inCode = append(inCode, fmt.Sprintf("%#x %s", int(number), number))
		}
	}
	slices.Sort(onPage)
	slices.Sort(inCode)
	if !slices.Equal(onPage, inCode) {
		t.Errorf("the page has\n%q, the code\n%q", onPage, inCode)
	}
}

func TestNamesOfValuesOutOfRange(t *testing.T) {
	for _, name := range []string{
		wire.Protocol(9).String(), wire.Type(-1).String(), wire.Path(9).String(),
		wire.Digest(9).String(), wire.Durability(9).String(), native.Kind(9).String(), wire.Versions{Min: 7,
			Max: 9}.String(),
	} {
		if !strings.ContainsAny(name, "0123456789") {
			t.Errorf("%q hides the value", name)
		}
	}
}
