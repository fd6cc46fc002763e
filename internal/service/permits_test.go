package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// permitUser makes copies with permits, step by step.
type permitUser struct {
	*testing.T
	*permits
	requested map[string][]*permit // by tenant, in the order of arrival
}

func newPermitUser(t *testing.T, total, tenants int) *permitUser {
	u := &permitUser{T: t, permits: newPermits(total), requested: make(map[string][]*permit)}
	u.setTenants(letters(tenants))
	return u
}

// letters returns that many tenants: "a", "b" and so on.
func letters(n int) map[string]struct{} {
	tenants := make(map[string]struct{})
	for i := range n {
		tenants[string(rune('a'+i))] = struct{}{}
	}
	return tenants
}

// arrive lets copies arrive, of the tenants that are the letters of a text.
func (u *permitUser) arrive(tenants string) {
	for _, tenant := range strings.Split(tenants, "") {
		u.requested[tenant] = append(u.requested[tenant], u.join(tenant))
	}
}

// end lets the oldest running copies of these tenants end.
func (u *permitUser) end(tenants string) {
	u.Helper()
	for _, tenant := range strings.Split(tenants, "") {
		i := slices.IndexFunc(u.requested[tenant], (*permit).isGranted)
		if i < 0 {
			u.Fatalf("%s has no running copy", tenant)
		}
		u.requested[tenant][i].release()
		u.requested[tenant] = slices.Delete(u.requested[tenant], i, i+1)
	}
}

// mustRun checks how many copies run, such as "a2 b1" by tenant.
func (u *permitUser) mustRun(when, want string) {
	u.Helper()
	var got []string
	for _, each := range u.counts() {
		if each.running > 0 {
			got = append(got, fmt.Sprint(each.tenant, each.running))
		}
	}
	slices.Sort(got)
	if text := strings.Join(got, " "); text != want {
		u.Errorf("%s: %q run, want %q", when, text, want)
	}
}

// A tenant that is alone has all permits; as long as others may come, some are reserved for them.
func TestPermitsReservedForOtherTenants(t *testing.T) {
	for _, test := range []struct {
		total, tenants int
		want           string
	}{
		{4, 1, "a4"}, {4, 2, "a3"}, {4, 3, "a2"}, {4, 4, "a2"}, {4, 100, "a2"},
		{1, 1, "a1"}, {1, 9, "a1"}, {2, 9, "a1"}, {3, 9, "a2"}, {16, 2, "a15"}, {16, 9, "a8"}, {16, 64, "a8"},
		{4, 0, "a4"}, // its key was revoked
	} {
		u := newPermitUser(t, test.total, test.tenants)
		u.arrive(strings.Repeat("a", 20))
		u.mustRun(fmt.Sprintf("%d permits, %d tenants", test.total, test.tenants), test.want)
		u.setTenants(letters(1))
		u.mustRun("alone", fmt.Sprint("a", test.total))
	}
}

// The first copies of up to half as many tenants as permits, and one more, wait for nobody.
func TestFirstCopyWaitsForNoOtherTenant(t *testing.T) {
	u := newPermitUser(t, 4, 3)
	u.arrive("aaaaaaaa")
	u.arrive("b")
	u.mustRun("the first copy of b", "a2 b1")
	u.arrive("bbbb")
	u.arrive("c")
	u.mustRun("the first copy of c", "a2 b1 c1")
	u.end("c")
	u.mustRun("after c", "a2 b1") // the permit stays for the next copy of c
	u.arrive("cc")
	u.mustRun("c again", "a2 b1 c1")
}

// Permits go to whoever has the fewest running copies, and then to whoever waits longest.
func TestPermitsGoToTheSmallestShare(t *testing.T) {
	u := newPermitUser(t, 4, 2)
	u.arrive("aaaaaa")
	u.arrive("bbbb")
	u.mustRun("first", "a3 b1")
	u.end("a")
	u.mustRun("b has less", "a2 b2")
	u.end("ab")
	u.mustRun("both", "a2 b2")
	u.end("aa")
	u.mustRun("a has less", "a2 b2")
	u.setTenants(letters(3))
	u.arrive("c")
	u.end("b")
	u.mustRun("c has none", "a2 b1 c1")
}

// With one permit tenants take requested, however many copies of one wait.
func TestTenantsTakeTurns(t *testing.T) {
	u := newPermitUser(t, 1, 3)
	u.arrive("aaaabbbc")
	var order string
	for range 8 {
		for tenant, requested := range u.requested {
			if slices.ContainsFunc(requested, (*permit).isGranted) {
				order += tenant
			}
		}
		u.end(order[len(order)-1:])
	}
	if order != "aabcabab" {
		t.Errorf("the order is %s", order)
	}
	if len(u.holders) != 0 {
		t.Errorf("there are holders left: %+v", u.holders)
	}
}

// A tenant that always comes back does not go ahead of one that has waited all the time.
func TestReturningTenantsStarveNobody(t *testing.T) {
	u := newPermitUser(t, 1, 3)
	u.arrive("bca")
	for range 2 {
		u.end("b")
		u.arrive("b")
		u.end("c")
		u.arrive("c")
		u.mustRun("a was here before", "a1")
		u.end("a")
		u.arrive("a")
	}
}

// A copy that gives up its permit leaves the others as they are; with a permit it returns that.
func TestPermitsOfWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newPermitUser(t, 1, 1)
		u.arrive("aaa")
		cause := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		must(t, u.requested["a"][0].wait(ctx))
		if err := u.requested["a"][1].wait(ctx); !errors.Is(err, cause) {
			t.Errorf("the error is %v", err)
		}
		if got := u.requested["a"][2].ahead(); got != 1 {
			t.Errorf("%d are ahead of the next", got)
		}
		u.end("a")
		must(t, u.requested["a"][1].wait(ctx)) // it has the permit already
		u.requested["a"][1].release()
		if len(u.holders) != 0 || u.free != 1 {
			t.Errorf("%d permits are free, and there are %+v", u.free, u.holders)
		}
	})
}

// ahead counts the copies that get their permits before, those of other tenants as well.
func TestCopiesAhead(t *testing.T) {
	u := newPermitUser(t, 1, 3)
	u.arrive("aaabbc")
	for tenant, want := range map[string][]int{"a": {3, 5}, "b": {1, 4}, "c": {2}} {
		for i, at := range slices.DeleteFunc(u.requested[tenant], (*permit).isGranted) {
			if got := at.ahead(); got != want[i] {
				t.Errorf("%d copies are ahead of number %d of %s, want %d", got, i, tenant, want[i])
			}
		}
	}
}

// Whatever arrives, ends and gives up: nobody waits in vain, and no share is larger than it may be.
func TestPermitsOfManyTenants(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 17))
		total, tenants := 1+random.IntN(6), 1+random.IntN(6)
		u := newPermitUser(t, total, tenants)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for step := range 300 {
			tenant := string(rune('a' + random.IntN(tenants)))
			running := slices.IndexFunc(u.requested[tenant], (*permit).isGranted)
			waiting := slices.IndexFunc(u.requested[tenant], func(t *permit) bool { return !t.isGranted() })
			switch what := random.IntN(5); {
			case what < 2 && running >= 0:
				u.end(tenant)
			case what == 2 && waiting >= 0:
				_ = u.requested[tenant][waiting].wait(gone)
				u.requested[tenant] = slices.Delete(u.requested[tenant], waiting, waiting+1)
			default:
				u.arrive(tenant)
			}
			u.checkShares(fmt.Sprintf("seed %d, step %d", seed, step))
		}
	}
}

func (u *permitUser) checkShares(when string) {
	u.Helper()
	running, idle := 0, len(u.tenants)
	for _, h := range u.holders {
		running += h.running
		if h.running > 0 {
			idle--
		}
	}
	reserved := min(idle, u.total/2)
	for _, h := range u.holders {
		free := u.free
		if h.running > 0 {
			free -= reserved
		}
		if len(h.waiting) > 0 && free > 0 || h.running == 0 && len(h.waiting) == 0 {
			u.Fatalf("%s: %+v with %d free permits, %d reserved", when, h, u.free, reserved)
		}
		if h.running > max(1, u.total-min(len(u.tenants)-1, u.total/2)) {
			u.Fatalf("%s: %+v", when, h)
		}
	}
	if running+u.free != u.total || u.free < 0 {
		u.Fatalf("%s: %d of %d run, %d are free", when, running, u.total, u.free)
	}
}
