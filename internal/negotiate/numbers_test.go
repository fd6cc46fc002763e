package negotiate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Numbers of messages, kinds and flags are the protocol: released programs know them.
func TestNumbersOnTheWire(t *testing.T) {
	for first, kinds := range map[int][][]uint32{
		0: {
			numbers(ChangeNone, ChangeNew, ChangeType, ChangeSize, ChangeContent, ChangeTime, ChangeMode, ChangeOwner,
				ChangeXattr),
			numbers(CopyUnknown, CopyFile, CopyTree, CopyStream),
			numbers(CopyLinksAsLinks, CopyLinksFollow, CopyLinksSkip),
			numbers(PingBytes, PingText, PingConsumer),
			numbers(DigestNone, DigestCRC32C, DigestXXH3, DigestBLAKE3, DigestSHA256),
			numbers(DurabilityNone, DurabilityFile, DurabilityFull),
			numbers(PathDMA, PathFast, PathTLS, PathMessages, PathRMA, PathTCP),
		},
		1: {
			numbers(AnswerNeed, AnswerHave, AnswerSum, AnswerExists),
			numbers(DiscardedOtherSource, DiscardedOtherDigest, DiscardedNoJournal, DiscardedDamaged,
				DiscardedNotResumable),
			numbers(EntryFile, EntryDirectory, EntrySymlink, EntryHardLink, EntrySpecial),
			numbers(DataRecord, HoleRecord, ClaimRecord),
			numbers(ItemInclude, ItemExclude, ItemPath),
			numbers(CopyPush, CopyPull),
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
		numbers(EntrySizeUnknown, EntryHasMetadata, EntryChunked),
		numbers(ListRecursive, ListItself, ListIdentify, ListKept, ListAll),
		numbers(CopyOverwrite, CopyBackup, CopyNoResume, CopyMakePath, CopyDirectory, CopyAllowChanging, CopyOnly,
			CopyOwner, CopyXAttr, CopyHardLinks, CopyDryRun, CopyIgnoreExisting, CopyKeep),
		numbers(FlagFile, FlagTree, FlagStream, FlagOverwrite, FlagNoSparse, FlagReadback, FlagOwner, FlagXAttr,
			FlagAllowChanging, FlagLinks, FlagChecksum, FlagDryRun, FlagRefuseSame, FlagFailFast, FlagNoDMA, FlagFast,
			FlagReceives, FlagTLS, FlagMessages, FlagRMA, FlagTCP, FlagIgnoreExisting, FlagUnfinished),
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
	for _, match := range row.FindAllStringSubmatch(readProtocol(t), -1) {
		number, err := strconv.ParseInt(match[1], 0, 32)
		if err != nil {
			t.Fatal(err)
		}
		onPage = append(onPage, fmt.Sprintf("%#x %s", number, match[2]))
	}
	var inCode []string
	for number := TypeHello; number < 0x1000; number++ { // the page describes the reference protocol's with their fields
		if number.known() {
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
		Protocol(9).String(), Type(-1).String(), Path(9).String(),
		Digest(9).String(), Durability(9).String(), Kind(9).String(), Versions{Min: 7, Max: 9}.String(),
	} {
		if !strings.ContainsAny(name, "0123456789") {
			t.Errorf("%q hides the value", name)
		}
	}
}
