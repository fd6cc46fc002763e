package dmaxfer

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// watchedSide is a side that waits for a peer which has stopped: the lines that it logs about that, and those that it
// tells somebody who asks meanwhile.
type watchedSide struct {
	side     wire.Side
	progress job.Progress

	mu     sync.Mutex
	logged []string
	told   []string
	asked  time.Duration // how long the answer took
}

// Write takes a line of the log.
func (w *watchedSide) Write(p []byte) (int, error) {
	var line struct{ Level, Message string }
	if err := json.Unmarshal(p, &line); err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if text, is := strings.CutPrefix(line.Message, job.Stall); is && line.Level == "warn" {
		w.logged = append(w.logged, text)
	}
	return len(p), nil
}

// ask is called by a goroutine of the bubble.
func (w *watchedSide) ask() {
	began := time.Now()
	snapshots := w.progress.Snapshots()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = time.Since(began)
	for _, s := range snapshots {
		w.told = append(w.told, s.Lines()...)
	}
}

// watching has a side watched, and asked two seconds after its peer has stopped.
func (w *watchedSide) watching(with injection, stopped *atomic.Bool) injection {
	wish := with.wish
	with.wish = func(o *Options) {
		wish(o)
		if o.Side == w.side {
			o.Log, o.Progress = zerolog.New(w), &w.progress
		}
	}
	with.started = func(*attempt) {
		go func() {
			for !stopped.Load() {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(2 * time.Second)
			w.ask()
		}()
	}
	return with
}

// seconds matches the times in the lines.
var seconds = regexp.MustCompile(`[0-9]+\.[0-9]s`)

// A side whose peer stops says what it waits for: in its log before the error, and the same to a user who asks.
func TestStallIsExplained(t *testing.T) {
	all := allSweepScenarios()
	for _, test := range []struct {
		scenario string
		stops    wire.Side
		at       int // message of the peer from which on it is silent
		want     []string
	}{
		{"new file of the host", wire.DPU, 4, []string{
			`^the host waits for the DPU to acknowledge \d slots?.*; ` +
				`last progress 3\.\ds ago, last message of the DPU 3\.\ds ago`,
			`^slots: [1-3] of 3 in flight, last change [23]\.\ds ago$`,
			`^messages: 0 unsent, last one sent [23]\.\ds ago$`,
			`^entry 0 /files/file: the (sender is to send its content|receiver is to commit it), ` +
				`\S+ \w+ of 16 KiB transferred, `,
		}},
		{"new file of the host", wire.Host, 6, []string{
			`^the DPU waits for the host to send the content of 1 entry; last progress 3`,
			`^slots: 0 of 3 in flight`, `^messages: 0 unsent`,
			`^entry 0 /files/file: the sender is to send its content, `,
		}},
		{"new file of the DPU", wire.DPU, 3, []string{
			`^the host waits for the DPU to announce entries, or the end; `, `^slots: 0 of 3`, `^messages: 0 unsent`,
		}},
		{"new file of the DPU", wire.Host, 0, []string{
			`^the DPU waits for the host to report whether it has the file; last progress 3`, `^messages: 0 unsent`,
		}},
		{"new file of the DPU", wire.Host, 1, []string{
			`^the DPU waits for the host to send its HELLO; last progress 3`, `^messages: 0 unsent`,
		}},
		{"new tree of the host", wire.DPU, 3, []string{
			`^the host waits for the DPU to acknowledge 3 slots, answer \d entries`,
			`^slots: 3 of 3`, `^messages: 0 unsent`,
			`^entry 0 \.: the receiver is to answer, last progress`, `^entry 1 a: `, `^entry 2 b: `, `^entry 3 b/c: `,
			`^entry 4 b/d: `, `^entry 5 b/e: `, `^entry 6 b/e/f: `, `^entry 7 b/empty: `, `^\.\.\. and 1 more$`,
		}},
	} {
		t.Run(fmt.Sprint(test.scenario, ", ", test.stops, " ", test.at), func(t *testing.T) {
			sc := all[test.scenario]
			sc.Idle = 3 * time.Second
			w := &watchedSide{side: test.stops.Other()}
			with, stopped := stoppingPeer(test.stops, test.at, silences["silent"])
			c := newOracle(t, sc, fault{Kind: peerSilent})
			e := c.run(c.stage(), fault{}, w.watching(with, stopped))
			if e.errs[w.side] == nil {
				t.Error("the copy succeeds")
			}
			mustMatchInOrder(t, w.logged, test.want)
			if !slices.Equal(withoutTimes(w.told), withoutTimes(w.logged)) {
				t.Errorf("a user who asks gets\n%s\nand the log has\n%s",
					strings.Join(w.told, "\n"), strings.Join(w.logged, "\n"))
			}
		})
	}
}

func withoutTimes(lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, seconds.ReplaceAllString(line, ""))
	}
	return all
}

func mustMatchInOrder(t *testing.T, lines, patterns []string) {
	t.Helper()
	matches := len(lines) == len(patterns)
	for i := 0; matches && i < len(lines); i++ {
		matches = regexp.MustCompile(patterns[i]).MatchString(lines[i])
	}
	if !matches {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(patterns, "\n"))
	}
}

// fullConn is a connection on which messages wait forever from some point on.
type fullConn struct {
	comch.Conn
	full   *atomic.Bool
	unless func(ctx context.Context) error // waits in Send
}

func (f fullConn) Send(ctx context.Context, message []byte) error {
	if !f.full.Load() {
		return f.Conn.Send(ctx, message)
	}
	return f.unless(ctx)
}

// A transfer whose messages wait for room can be asked all the same. One that hangs in the call does not keep anybody
// waiting.
func TestStuckTransferIsExplained(t *testing.T) {
	for name, test := range map[string]struct {
		send func(context.Context) error
		want string
	}{
		"full queue": {func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, `messages: \d+ unsent, and one has waited for room for [12]\.\ds`},
		"hung call": {func(context.Context) error {
			time.Sleep(4 * time.Second)
			return comch.ErrPeerLost
		}, `^the host does not say what it waits for: no answer within 500ms$`},
	} {
		t.Run(name, func(t *testing.T) {
			sc := sweepScenarios()["new file of the host"]
			sc.Idle = 3 * time.Second
			w := &watchedSide{side: wire.Host}
			with, stopped := stoppingPeer(wire.DPU, 4, silences["silent"])
			with = w.watching(with, stopped)
			with.conn = func(side wire.Side, conn comch.Conn) comch.Conn {
				if side != w.side {
					return conn
				}
				return fullConn{conn, stopped, test.send}
			}
			c := newOracle(t, sc, fault{Kind: peerSilent})
			c.run(c.stage(), fault{}, with)
			if !slices.ContainsFunc(w.told, regexp.MustCompile(test.want).MatchString) {
				t.Errorf("told\n%s\nwant %s", strings.Join(w.told, "\n"), test.want)
			}
			if w.asked > time.Second {
				t.Errorf("the answer took %s", w.asked)
			}
		})
	}
}

// Snapshots may be taken at any time, of both sides, and change nothing.
func TestSnapshotsOfRunningTransfers(t *testing.T) {
	for name, sc := range allSweepScenarios() {
		t.Run(name, func(t *testing.T) {
			var progress [2]job.Progress
			var ended atomic.Bool
			lines := 0
			ask := func() {
				for !ended.Load() {
					for side := range progress {
						for _, s := range progress[side].Snapshots() {
							lines += len(s.Lines())
						}
					}
					time.Sleep(time.Millisecond / 4)
				}
			}
			c := &checker{scenario: sc, t: t}
			c.disks = c.stage()
			var e results
			synctest.Test(t, func(*testing.T) {
				c.last = newAttempt(sc, c.disks, fault{})
				c.last.wish = func(o *Options) { o.Progress = &progress[o.Side] }
				var asking sync.WaitGroup
				asking.Go(ask)
				e = c.last.run()
				ended.Store(true)
				asking.Wait()
			})
			c.nothingIsOpen()
			if e.errs != [2]error{} {
				t.Errorf("the copy failed: %v", e.errs)
			}
			if lines == 0 {
				t.Error("no snapshot was taken")
			}
		})
	}
}
