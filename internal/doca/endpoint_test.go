package doca

import "testing"

// A command that was accepted is called even if run ends first, and only once; what is not accepted is called by the
// caller.
func TestEveryCallIsMadeOnce(t *testing.T) {
	c := asleep(t, &broken{stopped: true})
	e, calls := c.endpoint, 0
	count := func() { calls++ }
	e.life.state = stopping
	e.commands.add(count)
	e.run()
	if calls != 1 {
		t.Errorf("called %d times at the end", calls)
	}
	if e.do(count) || calls != 1 {
		t.Errorf("a command was accepted after the end, or called: %d calls", calls)
	}
	if err := e.call(func() error { count(); return nil }); err != nil || calls != 2 {
		t.Errorf("after the end: %v, %d calls", err, calls)
	}
}
