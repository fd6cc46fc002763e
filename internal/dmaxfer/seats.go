package dmaxfer

import "golang.org/x/sys/unix"

// smallFile is copied before it matters on which processor.
const smallFile = 16 << 20

// seats are the processors that the lanes are bound to; nil: any. The only lanes of both sides are better apart, and a small file is
// copied before they would be bound.
func (n *native) seats() []int {
	if n.inOrder() || n.plan.StreamTarget || n.plan.Size < smallFile {
		return nil
	}
	return n.memory.traits().cpus
}

// scarceCPUs are those that this process may use, if there are no more of them than lanes. With the software device both sides' lanes then
// share them: a piece that is filled and emptied on one processor stays in its cache, and while one lane of the two waits the other works.
func scarceCPUs() []int {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil || allowed.Count() > maxLanes {
		return nil
	}
	var cpus []int
	for cpu := 0; len(cpus) < allowed.Count(); cpu++ {
		if allowed.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
