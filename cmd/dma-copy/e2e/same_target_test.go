package e2e

import "testing"

// TestTwoReceiversOfOneTarget starts two transfers to one name at once, of which each would take four seconds. One
// completes; both sides of the other fail because the target is being received already.
func TestTwoReceiversOfOneTarget(t *testing.T) {
	t.Parallel()
	forEachSender(t, func(f *fixture, sender string) {
		f.createFile(sender, slowSize)
		must(f.t, writeRandomFile(f.path(sender)+"2", "another", slowSize-1))
		files := map[string]string{sender: sender + "/file2 ", peerOf(sender): peerOf(sender) + "/file "}
		flags := paced(slowFlags, "--bwlimit 1M ")
		first := sidePair{"host": f.start("host 1", hostCommand), "dpu": f.start("DPU 1", dpuCommand+flags)}
		second := sidePair{
			"host": f.start("host 2", "dma-copy -p b1:00.0 -f "+files["host"]),
			"dpu":  f.start("DPU 2", "dma-copy -p 03:00.0 -r b1:00.0 -f "+files["dpu"]+flags),
		}
		target := f.path(peerOf(sender))
		firstDone := f.checkReceiver(first, f.path(sender), target)
		secondDone := f.checkReceiver(second, f.path(sender)+"2", target)
		if firstDone == secondDone {
			f.t.Errorf("the first transfer to one target completed: %t, the second: %t", firstDone, secondDone)
		}
		f.expectClean()
	})
}

// checkReceiver reports whether a transfer completed, and otherwise expects both sides to name the cause.
func (f *fixture) checkReceiver(sides sidePair, source, target string) (completed bool) {
	f.t.Helper()
	if sides["host"].exitCode() == exitOK {
		sides["dpu"].expectExit(exitOK)
		if err := compareFiles(source, target); err != nil {
			f.t.Error(err)
		}
		return true
	}
	sides.expectExit(exitTarget)
	for _, name := range bothSides {
		sides[name].expectStderr("is being received by another process")
	}
	return false
}
