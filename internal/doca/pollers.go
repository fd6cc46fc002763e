package doca

// pollers lets goroutines that send or look for a message do the work of run while it sleeps. That is cheaper than
// waking run: the message is submitted, or received, without a system call and a switch of goroutines. run lends them
// its lock for as long as it sleeps. On a nil *pollers all methods leave the work to run.
type pollers struct{ endpoint *endpoint }

// lend is called by run before it sleeps, and takeBack when it wakes.
func (p *pollers) lend() {
	if p != nil {
		p.endpoint.running.Unlock()
	}
}

func (p *pollers) takeBack() {
	if p != nil {
		p.endpoint.running.Lock()
	}
}

// try does work of run. It reports false, and does nothing, if run or another poller works, which may not have seen
// what the caller wants. Work that has to be retried, and the end, are left to run.
func (p *pollers) try(work func() (moved bool)) bool {
	if p == nil || !p.endpoint.running.TryLock() {
		return false
	}
	defer p.endpoint.running.Unlock()
	if p.endpoint.life.state >= ended {
		return true
	}
	work()
	if p.endpoint.mustRetry() {
		p.endpoint.commands.wake()
	}
	return true
}
