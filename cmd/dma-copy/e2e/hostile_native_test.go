package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostileCase is what a peer does that the native protocol forbids, or that no friendly peer does.
type hostileCase struct {
	name  string
	hello uint32 // flags of the peer's HELLO
	act   func(ctx context.Context, p *nativePeer) error

	flags    string   // of dma-copy
	roles    []string // of the peer; nil: one of both, by turns
	noWindow bool     // the peer sends no WINDOW of its own
	ends     bool     // the peer ends the session itself

	code   int    // of dma-copy
	stderr string // part of dma-copy's error
	check  func(f *fixture, own string)
}

func (c *hostileCase) sends() bool { return c.hello&helloTree != 0 }

// argument returns the name in one word.
func (c *hostileCase) argument() string { return strings.ReplaceAll(c.name, " ", "_") }

func findHostileCase(argument string) *hostileCase {
	i := slices.IndexFunc(hostileCases, func(c hostileCase) bool { return c.argument() == argument })
	return &hostileCases[i]
}

// sending returns an act that sends messages.
func sending(messages ...[]byte) func(context.Context, *nativePeer) error {
	return func(ctx context.Context, p *nativePeer) error { return p.send(ctx, messages...) }
}

// announcing returns an act that announces entries below the root.
func announcing(entries ...wireEntry) func(context.Context, *nativePeer) error {
	return func(ctx context.Context, p *nativePeer) error { return p.announce(ctx, entries...) }
}

// badEntries returns a case of a sender whose entries are refused.
func badEntries(name, stderr string, entries ...wireEntry) hostileCase {
	return hostileCase{
		name: name, hello: helloTree | helloLinks, flags: "--preserve links ", act: announcing(entries...),
		code: exitProtocol, stderr: stderr,
	}
}

// badSender returns a case of a sender whose messages are refused, when these files are needed.
func badSender(name, stderr string, files []wireEntry, messages ...[]byte) hostileCase {
	return hostileCase{
		name: name, hello: helloTree, code: exitProtocol, stderr: stderr,
		act: func(ctx context.Context, p *nativePeer) error {
			if err := p.announceNeeded(ctx, len(files), files...); err != nil {
				return err
			}
			return p.send(ctx, messages...)
		},
	}
}

// badReceiver returns a case of a receiver whose messages are refused. It sends them when it knows the entries: 1 is a
// small file, 2 a directory, 3 a small file in it, and 4 a large file.
func badReceiver(name, stderr string, messages ...[]byte) hostileCase {
	return hostileCase{
		name: name, code: exitProtocol, stderr: stderr,
		act: func(ctx context.Context, p *nativePeer) error {
			if err := p.awaitItems(ctx, entriesType, hostileEntries); err != nil {
				return err
			}
			return p.send(ctx, messages...)
		},
	}
}

const hostileEntries = 5

var (
	packedFile  = wireFile(1, "a", 4)
	chunkedFile = wireEntry{kind: kindFile, flags: chunked, depth: 1, mode: 0o644, name: "a", size: 1 << 17}
	onePacked   = []wireEntry{packedFile}
	oneChunked  = []wireEntry{chunkedFile}
	pageOfZeros = make([]byte, 4096)
	fourZeros   = make([]byte, 4)
)

func with(e wireEntry, change func(*wireEntry)) wireEntry {
	change(&e)
	return e
}

// deepTree announces a chain of directories, each as soon as the one above it has been made.
func deepTree(length int) func(context.Context, *nativePeer) error {
	return func(ctx context.Context, p *nativePeer) error {
		if err := p.announce(ctx); err != nil {
			return err
		}
		for depth := 1; depth <= length; depth++ {
			if err := p.awaitItems(ctx, resultsType, 1); err != nil {
				return err
			}
			if err := p.send(ctx, entriesImage(wireDirectory(depth, "d"))); err != nil {
				return err
			}
		}
		return nil
	}
}

// longPath announces directories with names of 255 bytes.
func longPath(ctx context.Context, p *nativePeer) error {
	if err := p.announce(ctx); err != nil {
		return err
	}
	for depth := 1; depth <= 17; depth++ {
		if err := p.send(ctx, entriesImage(wireDirectory(depth, strings.Repeat("d", 255)))); err != nil {
			return err
		}
	}
	return nil
}

// endless announces entries of a kind without end.
func endless(of func(depth int, name string) wireEntry) func(context.Context, *nativePeer) error {
	return func(ctx context.Context, p *nativePeer) error {
		if err := p.announce(ctx); err != nil {
			return err
		}
		return p.repeat(ctx, func(i int) []byte { return entriesImage(of(1, fmt.Sprintf("%09d", i))) })
	}
}

// endlessDirectories announces directories without end, each message when those of the one before have been made.
func endlessDirectories(ctx context.Context, p *nativePeer) error {
	err := p.announce(ctx)
	for i := 0; err == nil; {
		var made []wireEntry
		for range 50 {
			made = append(made, wireDirectory(1, fmt.Sprintf("%09d", i)))
			i++
		}
		if err = p.send(ctx, entriesImage(made...)); err == nil {
			err = p.awaitItems(ctx, resultsType, len(made))
		}
	}
	return err
}

// finishing announces files of which so many fail on the receiver, answers that, and ends the transfer.
func finishing(failing int, entries ...wireEntry) func(context.Context, *nativePeer) error {
	return func(ctx context.Context, p *nativePeer) error {
		if err := p.announce(ctx, entries...); err != nil {
			return err
		}
		for range failing {
			m, err := p.await(ctx, failureType)
			if err != nil {
				return err
			}
			if err := p.send(ctx, slices.Concat(m[:10], u16(0))); err != nil {
				return err
			}
		}
		if err := p.send(ctx, finishImage(uint32(1+len(entries)))); err != nil {
			return err
		}
		_, err := p.await(ctx, finishedType)
		return err
	}
}

var hostileCases = slices.Concat(hostileSessions, hostileEntryLists, hostileSenders, hostileReceivers)

var hostileSessions = []hostileCase{
	{name: "hello twice", hello: helloTree, act: sending(helloImage(helloTree, peerChunk, peerDepth)),
		code: exitProtocol, stderr: "HELLO"},
	{name: "window of another length", hello: helloTree, roles: []string{"host"}, noWindow: true,
		act: sending(windowImage(1<<20, 1, garbage)), code: exitProtocol, stderr: "1 bytes instead of"},
	{name: "window with a garbage descriptor", hello: helloTree, roles: []string{"host"}, noWindow: true,
		act:  sending(windowImage(1<<20, peerChunk*peerDepth, garbage)),
		code: exitDevice, stderr: "importing the host's window"},
	{name: "window that wraps", hello: helloTree, roles: []string{"host"}, noWindow: true,
		act: sending(windowImage(1<<64-4096, peerChunk*peerDepth, garbage)), code: exitProtocol, stderr: "WINDOW"},
	{name: "window of a DPU", hello: helloTree, roles: []string{"dpu"},
		act: sending(windowImage(1<<20, peerChunk*peerDepth, garbage)), code: exitProtocol, stderr: "out of order"},
	{name: "message of the reference protocol", hello: helloTree, act: sending(statusImage(true)),
		code: exitProtocol, stderr: "out of order"},
	{name: "unknown type", hello: helloTree, act: sending(message(0x2d, u32(0))), code: exitProtocol,
		stderr: "unknown type"},
	{name: "work that decreases", hello: helloTree, code: exitProtocol, stderr: "HEARTBEAT",
		act: sending(message(heartbeatType, u32(1), bigEndian(9)), message(heartbeatType, u32(1), bigEndian(8)))},
	{name: "sender that falls silent", hello: helloTree, act: announcing(packedFile), flags: idleFlag,
		code: exitPeer, stderr: "no message from the"},
	{name: "receiver that falls silent", act: sending(), flags: idleFlag,
		code: exitPeer, stderr: "no message from the"},
}

var hostileEntryLists = []hostileCase{
	badEntries("name of the parent", "bytes that no file can have", wireFile(1, "..", 4)),
	badEntries("name of the directory", "bytes that no file can have", wireDirectory(1, ".")),
	badEntries("name with a slash", "bytes that no file can have", wireFile(1, "../file", 4)),
	badEntries("absolute name", "bytes that no file can have", wireFile(1, "/tmp", 4)),
	badEntries("name with a zero", "bytes that no file can have", wireFile(1, "a\x00", 4)),
	badEntries("no name", "bytes that no file can have", wireFile(1, "", 4)),
	badEntries("name of 256 bytes", "a name of 256 bytes", wireFile(1, strings.Repeat("n", 256), 4)),
	badEntries("second root", "entry 1 at depth 0", wireRoot),
	badEntries("depth that leaps", "depth 2 after a directory at depth 0", wireDirectory(2, "a")),
	badEntries("child of a file", "depth 2 after a file at depth 1", packedFile, wireFile(2, "b", 4)),
	badEntries("child of a symlink", "depth 2 after a symlink at depth 1",
		wireEntry{kind: kindSymlink, depth: 1, name: "a", link: "/etc"},
		wireFile(2, "passwd", 4)),
	badEntries("child of a hard link", "depth 2 after a hard link at depth 1", packedFile,
		wireEntry{kind: kindHardLink, depth: 1, name: "b", link: "a"}, wireFile(2, "c", 4)),
	badEntries("name twice", "order of the names", packedFile, packedFile),
	badEntries("file and directory of one name", "order of the names", packedFile, wireDirectory(1, "a")),
	badEntries("names that decrease", "order of the names", wireFile(1, "b", 4), packedFile),
	badEntries("unknown kind", "unknown kind 6", with(packedFile, func(e *wireEntry) { e.kind = 6 })),
	badEntries("special file", "unknown special file", with(packedFile, func(e *wireEntry) { e.kind = 5 })),
	badEntries("unknown flag", "unknown flags", with(packedFile, func(e *wireEntry) { e.flags = 128 })),
	badEntries("mode of a device", "mode 020644", with(packedFile, func(e *wireEntry) { e.mode = 0o020644 })),
	badEntries("a billion nanoseconds", "nanoseconds", with(packedFile, func(e *wireEntry) { e.nanoseconds = 1e9 })),
	badEntries("size over the limit", "limit 70368744177664",
		with(chunkedFile, func(e *wireEntry) { e.size = overLimit })),
	badEntries("pack over a chunk", "in a slot of", with(packedFile, func(e *wireEntry) { e.size = 1 << 30 })),
	badEntries("directory with a size", "with the size, identity or flags of a file",
		wireEntry{kind: kindDirectory, depth: 1, name: "a", size: 1}),
	badEntries("directory with an identity", "with the size, identity or flags of a file",
		wireEntry{kind: kindDirectory, depth: 1, name: "a", identity: 1}),
	badEntries("symlink without text", "that it cannot have", wireEntry{kind: kindSymlink, depth: 1, name: "a"}),
	badEntries("symlink with a zero", "that it cannot have",
		wireEntry{kind: kindSymlink, depth: 1, name: "a", link: "b\x00c"}),
	badEntries("hard link that leads out", "that it cannot have", packedFile,
		wireEntry{kind: kindHardLink, depth: 1, name: "b", link: "../../file"}),
	badEntries("absolute hard link", "that it cannot have", packedFile,
		wireEntry{kind: kindHardLink, depth: 1, name: "b", link: "/etc/passwd"}),
	badEntries("attributes that were not agreed on", "extended attributes",
		with(packedFile, func(e *wireEntry) { e.flags = hasMetadata })),
	{name: "hard link that was not agreed on", hello: helloTree, code: exitProtocol, stderr: "hard link",
		act: announcing(packedFile, wireEntry{kind: kindHardLink, depth: 1, name: "b", link: "a"})},
	{name: "file in place of a tree", hello: helloTree, code: exitProtocol, stderr: "root",
		act: sending(transferImage, entriesImage(wireFile(0, "", 4)))},
	{name: "root with a name", hello: helloTree, code: exitProtocol, stderr: "root",
		act: sending(transferImage, entriesImage(wireDirectory(0, "a")))},
	{name: "count of entries too large", hello: helloTree, code: exitProtocol, stderr: "ENTRIES",
		act: sending(transferImage, message(entriesType, u32(2), wireRoot.image()))},
	{name: "count of entries too small", hello: helloTree, code: exitProtocol, stderr: "ENTRIES",
		act: sending(transferImage, message(entriesType, u32(1), wireRoot.image(), packedFile.image()))},
	{name: "count of 2^32-1 entries", hello: helloTree, code: exitProtocol, stderr: "ENTRIES",
		act: sending(transferImage, message(entriesType, u32(1<<32-1), wireRoot.image()))},
	{name: "depth of 2049", hello: helloTree, act: deepTree(2049), code: exitProtocol, stderr: "depth 2049"},
	{name: "path of over 4096 bytes", hello: helloTree, act: longPath, code: exitProtocol,
		stderr: "a path of more than 4096 bytes"},
	{name: "endless files", hello: helloTree, code: exitProtocol, stderr: "more than 1024 open entries",
		act: endless(func(depth int, name string) wireEntry { return wireFile(depth, name, 4) })},
	{name: "endless directories", hello: helloTree, act: endlessDirectories, flags: "--max-entries 5000 ",
		code: exitLimit, stderr: "has more than 5000 entries"},
	{name: "endless bytes", hello: helloTree, flags: "--max-bytes 1M ", code: exitLimit, stderr: "--max-bytes",
		act: announcing(with(chunkedFile, func(e *wireEntry) { e.size = 1<<20 + 1 }))},
	{name: "size over the disk", hello: helloTree, ends: true, code: exitSomeFailed, stderr: "a: ",
		act: finishing(1, with(chunkedFile, func(e *wireEntry) { e.size = overDisk }))},
	{name: "hard link to nothing", hello: helloTree | helloLinks, flags: "--preserve links ", ends: true,
		code: exitSomeFailed, stderr: "b: ",
		act: finishing(1, wireEntry{kind: kindHardLink, depth: 1, name: "b", link: "a"})},
	{name: "hard link to a directory", hello: helloTree | helloLinks, flags: "--preserve links ", ends: true,
		code: exitSomeFailed, stderr: "b: ",
		act: finishing(1, wireDirectory(1, "a"), wireEntry{kind: kindHardLink, depth: 1, name: "b", link: "a"})},
	{name: "hard link through a symlink", hello: helloTree | helloLinks, flags: "--preserve links ", ends: true,
		code: exitSomeFailed, stderr: "b: ",
		act: finishing(1, wireEntry{kind: kindSymlink, depth: 1, name: "a", link: ".."},
			wireEntry{kind: kindHardLink, depth: 1, name: "b", link: "a/outside"})},
}

var hostileSenders = []hostileCase{
	{name: "entries before a transfer", hello: helloTree, act: sending(entriesImage(wireRoot)),
		code: exitProtocol, stderr: "out of order"},
	{name: "transfer twice", hello: helloTree, act: sending(transferImage, transferImage),
		code: exitProtocol, stderr: "out of order"},
	badSender("answers of a sender", "out of order", onePacked, listImage(answersType, answerItem(1, answerNeed, 0))),
	badSender("results of a sender", "out of order", onePacked, listImage(resultsType, verdictItem(1, 0))),
	badSender("finished by a sender", "out of order", onePacked, finishedImage(2, 2, 0, 0)),
	badSender("content of a directory", "CHUNKS", onePacked, listImage(chunksType, dataRecord(0, 0, 0, fourZeros))),
	badSender("content of nothing", "CHUNKS", onePacked, listImage(chunksType, dataRecord(0, 7, 0, fourZeros))),
	badSender("chunks of a packed file", "CHUNKS", onePacked, listImage(chunksType, dataRecord(0, 1, 0, fourZeros))),
	badSender("end of a packed file", "END", onePacked, endImage(1, 4, 0)),
	badSender("pack of a chunked file", "PACK", oneChunked, packImage(0, packedItem(1, 0, fourZeros))),
	badSender("pack of a directory", "PACK", onePacked, packImage(0, packedItem(0, 0, nil))),
	badSender("pack of another length", "PACK", onePacked, packImage(0, packedItem(1, 0, pageOfZeros))),
	badSender("pack beyond the slot", "PACK", onePacked, packImage(0, packedItem(1, 1<<30, fourZeros))),
	badSender("pack that overlaps", "PACK", []wireEntry{packedFile, wireFile(1, "b", 4)},
		packImage(0, packedItem(1, 0, fourZeros), packedItem(2, 2, fourZeros))),
	badSender("file twice in a pack", "PACK", onePacked,
		packImage(0, packedItem(1, 0, fourZeros), packedItem(1, 4, fourZeros))),
	badSender("file in two packs", "PACK", onePacked,
		packImage(0, packedItem(1, 0, fourZeros)), packImage(1, packedItem(1, 0, fourZeros))),
	badSender("count of a pack too large", "PACK", onePacked,
		message(packType, u16(0), []byte{0, 4}, u32(9), u32(0), packedItem(1, 0, fourZeros))),
	badSender("slot out of range", "slot", onePacked, packImage(peerDepth, packedItem(1, 0, fourZeros))),
	badSender("slot twice", "slot", oneChunked,
		listImage(chunksType, dataRecord(0, 1, 0, pageOfZeros), dataRecord(0, 1, 4096, pageOfZeros))),
	badSender("chunk beyond the file", "CHUNKS", oneChunked, listImage(chunksType, dataRecord(0, 1, 1<<17, fourZeros))),
	badSender("chunk whose offset wraps", "CHUNKS", oneChunked,
		listImage(chunksType, dataRecord(0, 1, 1<<64-4, fourZeros))),
	badSender("chunk of no bytes", "CHUNKS", oneChunked, listImage(chunksType, dataRecord(0, 1, 0, nil))),
	badSender("claim that was not offered", "CHUNKS", oneChunked,
		listImage(chunksType, changed(dataRecord(0, 1, 0, pageOfZeros), 0, 3))),
	badSender("attempt 4", "CHUNKS", oneChunked,
		listImage(chunksType, changed(dataRecord(0, 1, 0, pageOfZeros), 1, 4))),
	badSender("end with another size", "END", oneChunked, endImage(1, 1<<17-1, 0)),
	badSender("end twice", "END", oneChunked, endImage(1, 1<<17, 0), endImage(1, 1<<17, 0)),
	badSender("sum that was not asked for", "SUM", onePacked, message(sumType, u32(1), u32(0))),
	badSender("failure of nothing", "FAILURE", onePacked, failureImage(9, 1)),
	badSender("failure of a directory", "FAILURE", onePacked, failureImage(0, 1)),
	badSender("finish before the content", "FINISH", onePacked, finishImage(2)),
	badSender("finish with another total", "FINISH", onePacked, failureImage(1, 4), finishImage(3)),
	{name: "content that is not needed", hello: helloTree, code: exitProtocol, stderr: "PACK",
		flags: "--overwrite ", act: func(ctx context.Context, p *nativePeer) error {
			if err := p.announceNeeded(ctx, 1, wireFile(1, "existing", 4)); err != nil {
				return err
			}
			return p.send(ctx, packImage(0, packedItem(1, 0, fourZeros)))
		}},
	{name: "entries after finish", hello: helloTree, code: exitProtocol, stderr: "out of order",
		act: sending(transferImage, entriesImage(wireRoot), finishImage(1), entriesImage(wireDirectory(1, "a")))},
	{name: "overlapping chunks", hello: helloTree, roles: []string{"host"}, code: exitProtocol, stderr: "CHUNKS",
		act: func(ctx context.Context, p *nativePeer) error {
			file := with(chunkedFile, func(e *wireEntry) { e.size = 2 * 4096 })
			if err := p.announceNeeded(ctx, 1, file); err != nil {
				return err
			}
			return p.send(ctx,
				listImage(chunksType, dataRecord(0, 1, 0, pageOfZeros), dataRecord(1, 1, 0, pageOfZeros)),
				endImage(1, 2*4096, castagnoli(make([]byte, 2*4096))))
		}},
	{name: "end with another digest", hello: helloTree, roles: []string{"host"}, ends: true, code: exitSomeFailed,
		stderr: "digest mismatch",
		act: func(ctx context.Context, p *nativePeer) error {
			file := with(chunkedFile, func(e *wireEntry) { e.size = 4096 })
			if err := p.announceNeeded(ctx, 1, file); err != nil {
				return err
			}
			return p.finishFailed(ctx, listImage(chunksType, dataRecord(0, 1, 0, pageOfZeros)), endImage(1, 4096, 7))
		}},
	{name: "pack with another digest", hello: helloTree, roles: []string{"host"}, ends: true, code: exitSomeFailed,
		stderr: "digest mismatch",
		act: func(ctx context.Context, p *nativePeer) error {
			if err := p.announceNeeded(ctx, 1, packedFile); err != nil {
				return err
			}
			item := packedItem(1, 0, fourZeros)
			return p.finishFailed(ctx, packImage(0, changed(item, len(item)-1, item[len(item)-1]^1)))
		}},
	{name: "mode with set-id bits", hello: helloTree, flags: "--overwrite ", ends: true, act: setIDFile,
		check: func(f *fixture, own string) { f.expectMode(f.tree(own, "set-id"), 0o755) }},
	{name: "chunk that is never as announced", hello: helloTree, roles: []string{"host"}, code: exitDigest,
		stderr: "retransmit limit reached", act: func(ctx context.Context, p *nativePeer) error {
			if err := p.announceNeeded(ctx, 1, chunkedFile); err != nil {
				return err
			}
			wrong := dataRecord(0, 1, 0, []byte("not these bytes"))
			for attempt := range 5 {
				if err := p.send(ctx, listImage(chunksType, changed(wrong, 1, byte(attempt)))); err != nil {
					return err
				}
				if err := p.awaitItems(ctx, acksType, 1); err != nil {
					return err
				}
			}
			return nil
		}},
}

// setIDFile sends an empty file whose mode has the set-id bits.
func setIDFile(ctx context.Context, p *nativePeer) error {
	file := wireEntry{kind: kindFile, depth: 1, mode: 0o6755, name: "set-id"}
	if err := p.announceNeeded(ctx, 1, file); err != nil {
		return err
	}
	if err := p.send(ctx, packImage(0, packedItem(1, 0, nil)), finishImage(2)); err != nil {
		return err
	}
	_, err := p.await(ctx, finishedType)
	return err
}

// finishFailed sends messages after which the receiver fails entry 1, and ends the transfer.
func (p *nativePeer) finishFailed(ctx context.Context, messages ...[]byte) error {
	if err := p.send(ctx, messages...); err != nil {
		return err
	}
	if _, err := p.await(ctx, failureType); err != nil {
		return err
	}
	if err := p.send(ctx, failureImage(1, exitDigest), finishImage(2)); err != nil {
		return err
	}
	_, err := p.await(ctx, finishedType)
	return err
}

var hostileReceivers = []hostileCase{
	badReceiver("need of a directory", "ANSWERS", listImage(answersType, answerItem(0, answerNeed, 0))),
	badReceiver("answer about nothing", "ANSWERS", listImage(answersType, answerItem(99, answerNeed, 0))),
	badReceiver("answer twice in a message", "ANSWERS",
		listImage(answersType, answerItem(1, answerNeed, 0), answerItem(1, answerNeed, 0))),
	badReceiver("answer twice", "ANSWERS",
		listImage(answersType, answerItem(1, answerHave, 0)), listImage(answersType, answerItem(1, answerHave, 0))),
	badReceiver("unknown answer", "ANSWERS", listImage(answersType, answerItem(1, 4, 0))),
	badReceiver("offset in a packed file", "ANSWERS", listImage(answersType, answerItem(1, answerNeed, 1))),
	badReceiver("offset beyond the file", "ANSWERS", listImage(answersType, answerItem(4, answerNeed, 1<<40))),
	badReceiver("sum twice", "ANSWERS",
		listImage(answersType, answerItem(1, answerSum, 0)), listImage(answersType, answerItem(1, answerSum, 0))),
	badReceiver("count of answers too large", "ANSWERS", message(answersType, u32(3), answerItem(1, answerNeed, 0))),
	badReceiver("result without content", "RESULTS", listImage(resultsType, verdictItem(1, 0))),
	badReceiver("result of nothing", "RESULTS", listImage(resultsType, verdictItem(99, 0))),
	badReceiver("result twice", "RESULTS",
		listImage(resultsType, verdictItem(0, 0)), listImage(resultsType, verdictItem(0, 0))),
	badReceiver("unknown result", "RESULTS", listImage(resultsType, verdictItem(0, 1))),
	badReceiver("acknowledgement of an idle slot", "ACKS", listImage(acksType, verdictItem(0, 0))),
	badReceiver("acknowledgement of no slot", "ACKS", listImage(acksType, verdictItem(1<<20, 0))),
	badReceiver("unknown verdict", "ACKS", listImage(acksType, verdictItem(0, 2))),
	badReceiver("finished at once", "FINISHED", finishedImage(2, 5, 0, 0)),
	badReceiver("cancelled at once", "CANCELLED", cancelledImage),
	badReceiver("failure of nothing on the receiver", "FAILURE", failureImage(99, 5)),
	badReceiver("transfer of a receiver", "TRANSFER", transferImage),
	badReceiver("entries of a receiver", "ENTRIES", entriesImage(wireRoot)),
	badReceiver("content of a receiver", "CHUNKS", listImage(chunksType, dataRecord(0, 4, 0, fourZeros))),
	badReceiver("finish of a receiver", "FINISH", finishImage(5)),
	{name: "finished with other counts", code: exitProtocol, stderr: "FINISHED", act: finishedAfterHave(2, 4, 0)},
	{name: "finished with less durability", code: exitProtocol, stderr: "FINISHED", act: finishedAfterHave(0, 5, 0)},
	{name: "finished with failures", code: exitProtocol, stderr: "FINISHED", act: finishedAfterHave(2, 5, 1)},
	{name: "chunks that are always bad", code: exitDigest, stderr: "retransmit limit reached",
		act: func(ctx context.Context, p *nativePeer) error { return p.refuseChunks(ctx) }},
	{name: "failure with control characters", code: exitSomeFailed, stderr: `a\x1b[2J`, ends: true,
		act: func(ctx context.Context, p *nativePeer) error { return p.failOne(ctx, "a\x1b[2J\n") }},
	{name: "failure of the root", code: exitSomeFailed, stderr: "the ", ends: true,
		act: func(ctx context.Context, p *nativePeer) error { return p.failRoot(ctx) }},
}

// finishedAfterHave has everything already, and sends a FINISHED with these values.
func finishedAfterHave(durability byte, unchanged, failed uint32) func(context.Context, *nativePeer) error {
	return func(ctx context.Context, p *nativePeer) error {
		if err := p.awaitItems(ctx, entriesType, hostileEntries); err != nil {
			return err
		}
		if err := p.have(ctx, 0, 1, 2, 3, 4); err != nil {
			return err
		}
		if _, err := p.await(ctx, finishType); err != nil {
			return err
		}
		return p.send(ctx, finishedImage(durability, 0, unchanged, failed))
	}
}

func (p *nativePeer) have(ctx context.Context, entries ...uint32) error {
	var items [][]byte
	for _, entry := range entries {
		items = append(items, answerItem(entry, answerHave, 0))
	}
	return p.send(ctx, listImage(answersType, items...))
}

// refuseChunks needs the large file, and reports each of its chunks as bad, until it gets an ABORT.
func (p *nativePeer) refuseChunks(ctx context.Context) error {
	if err := p.awaitItems(ctx, entriesType, hostileEntries); err != nil {
		return err
	}
	if err := p.have(ctx, 0, 1, 2, 3); err != nil {
		return err
	}
	if err := p.send(ctx, listImage(answersType, answerItem(4, answerNeed, 0))); err != nil {
		return err
	}
	for {
		m, err := p.conn.Recv(ctx)
		if err != nil {
			return connectionError(err)
		}
		switch imageType(m) {
		case chunksType:
			err = p.refuse(ctx, m)
		case abortType:
			return p.aborted(m)
		}
		if err != nil {
			return err
		}
	}
}

// refuse reports the slots of CHUNKS as bad.
func (p *nativePeer) refuse(ctx context.Context, chunks []byte) error {
	var items [][]byte
	for record := range slices.Chunk(chunks[8:], 32) {
		items = append(items, verdictItem(uint32(record[2])<<8|uint32(record[3]), 1))
	}
	return p.send(ctx, listImage(acksType, items...))
}

// failOne fails one entry with a text, and has the others.
func (p *nativePeer) failOne(ctx context.Context, text string) error {
	if err := p.awaitItems(ctx, entriesType, hostileEntries); err != nil {
		return err
	}
	failure := message(failureType, u32(4), []byte{exitTarget, 0}, u16(len(text)), []byte(text))
	if err := p.send(ctx, failure); err != nil {
		return err
	}
	return p.haveAllBut(ctx, 4)
}

func (p *nativePeer) failRoot(ctx context.Context) error {
	if err := p.awaitItems(ctx, entriesType, hostileEntries); err != nil {
		return err
	}
	if err := p.send(ctx, failureImage(0, exitTarget)); err != nil {
		return err
	}
	return p.haveAllBut(ctx, 0)
}

// haveAllBut has all entries but one, which has failed, and ends the transfer.
func (p *nativePeer) haveAllBut(ctx context.Context, failed uint32) error {
	var rest []uint32
	for entry := range uint32(hostileEntries) {
		if entry != failed {
			rest = append(rest, entry)
		}
	}
	if err := p.have(ctx, rest...); err != nil {
		return err
	}
	if _, err := p.await(ctx, finishType); err != nil {
		return err
	}
	return p.send(ctx, finishedImage(2, 0, hostileEntries-1, 1))
}

// TestHostileNativePeer has a peer of the native protocol do what no friendly peer does. dma-copy ends with the code of
// the cause, tells the peer, leaves nothing outside of its target, and a receiver's next transfer works.
func TestHostileNativePeer(t *testing.T) {
	t.Parallel()
	for i := range hostileCases {
		c := &hostileCases[i]
		roles := c.roles
		if roles == nil {
			roles = bothSides[i%2:][:1]
		}
		for _, role := range roles {
			t.Run(c.name+"/"+role, func(t *testing.T) {
				t.Parallel()
				c.test(newFixture(t), role)
			})
		}
	}
}

// test runs dma-copy on one side, and the hostile peer in the given role.
func (c *hostileCase) test(f *fixture, role string) {
	f.t.Helper()
	own := peerOf(role)
	must(f.t, os.WriteFile(filepath.Join(f.dir, own, "outside"), []byte("outside"), 0o600))
	c.prepare(f, own)
	program := f.start(own, map[string]string{"host": hostTree, "dpu": dpuTree}[own]+c.flags)
	peer := f.start(role, "nativepeer -role "+role+" -case "+c.argument())
	program.expectExitIn(c.code)
	program.expectStderr(c.stderr)
	if !c.ends && c.code != exitPeer {
		peer.expectExit(exitOK)
		peer.expectStderr(fmt.Sprintf("ABORT(%d)", c.code))
	}
	peer.kill()
	if c.check != nil {
		c.check(f, own)
	}
	c.expectRecovered(f, own)
}

// prepare makes the tree that a hostile receiver is sent, or what a hostile sender finds.
func (c *hostileCase) prepare(f *fixture, own string) {
	f.t.Helper()
	if !c.sends() {
		f.writeTree(own, "", "a", "dir/b")
		must(f.t, writeRandomFile(f.tree(own, "large"), "large", 3<<20))
		return
	}
	if strings.Contains(c.flags, "--overwrite") {
		must(f.t, os.Mkdir(f.tree(own), 0o755))
		existing := f.tree(own, "existing")
		must(f.t, os.WriteFile(existing, []byte("1234"), 0o644))
		must(f.t, os.Chtimes(existing, time.Unix(1_700_000_000, 0), time.Unix(1_700_000_000, 0)))
	}
}

// expectRecovered expects nothing to have been written outside of the tree, nor in that of a sender, and a transfer of
// another tree to what a receiver holds to work.
func (c *hostileCase) expectRecovered(f *fixture, own string) {
	f.t.Helper()
	if text := readFile(f.t, f.dir, own, "outside"); text != "outside" {
		f.t.Errorf("a file outside of the tree is now %q", text)
	}
	if !c.sends() {
		expectOnly(f.t, filepath.Join(f.dir, own), "outside", "tree")
		expectOnly(f.t, f.tree(own), "a", "dir", "large")
		return
	}
	expectOnly(f.t, filepath.Join(f.dir, own), "outside", "tree", ".tree.dma-copy-part")
	f.writeTree(peerOf(own), "", "later", "under/later")
	flags := c.flags
	if c.ends && !strings.Contains(flags, "--overwrite") {
		flags += "--ignore-existing " // both have the directory, and nothing says any more that it is unfinished
	}
	f.expectTree(peerOf(own), treeFlags{receiver: flags})
	for _, name := range []string{"later", "under/later"} {
		must(f.t, compareFiles(f.tree("host", name), f.tree("dpu", name)))
	}
	f.expectClean()
}
