//go:build cgo

package service

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/secure"
)

// slowAlice lets the copies of alice take minutes, and not those of bob, who is returned.
func slowAlice(w *world) (bob *identity.Key) {
	bob = newKey(w.T)
	w.trusted[w.key.Public()] = identity.Grant{Name: "alice", Key: w.key.Public(), Bandwidth: 32 << 10}
	w.trusted[bob.Public()] = identity.Grant{Name: "bob", Key: bob.Public(), Bandwidth: 1 << 20}
	w.local.Put("/home/large", largeText)
	w.local.Put("/home/small", "small")
	return bob
}

// However many slow copies a key makes, another one does not wait for them.
func TestSlowKeyDelaysNoOtherKey(t *testing.T) {
	var bob *identity.Key
	inWorld(t, func(w *world) {
		bob = slowAlice(w)
		w.config.Limits.Transfers = 4
	}, func(w *world) {
		var slow []<-chan error
		for i := range 6 {
			slow = append(slow, w.starting(w.alice(), fmt.Sprintf("box/large-%d", i)))
		}
		mustShare(w, TenantStatus{"alice", 3, 3})
		began := time.Now()
		c, err := w.connect(bob)
		must(w.T, err)
		for i := range 10 {
			_, err := c.Push(w.Context(), w.copyOf("small", fmt.Sprintf("box/small-%d", i)))
			must(w.T, err)
		}
		if took := time.Since(began); took > time.Second { // virtual
			w.Errorf("ten small copies took %s", took)
		}
		second, err := w.connect(bob)
		must(w.T, err)
		others := []<-chan error{w.starting(c, "box/bob-0"), w.starting(second, "box/bob-1")}
		mustShare(w, TenantStatus{"alice", 3, 3}, TenantStatus{"bob", 1, 1})
		for _, ended := range slices.Concat(slow, others) {
			must(w.T, <-ended)
		}
	})
}

// starting starts the copy of the large file, and waits until it runs or waits.
func (w *world) starting(c *Client, remote string) (ended <-chan error) {
	w.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := c.Push(w.Context(), w.copyOf("large", remote))
		done <- err
	}()
	time.Sleep(time.Millisecond)
	return done
}

// mustShare checks which tenants have running and waiting copies, and that the connections say so, too.
func mustShare(w *world, want ...TenantStatus) {
	w.Helper()
	got := w.server.Status()
	if !slices.Equal(got.Tenants, want) || got.Limits.Transfers != w.config.Limits.Transfers {
		w.Errorf("the tenants are %+v, want %+v", got.Tenants, want)
	}
	running, waiting := 0, 0
	for _, each := range got.Connections {
		switch {
		case each.Waiting:
			waiting++
			if each.Total != job.Unknown {
				w.Errorf("a copy that waits has %d bytes in total", each.Total)
			}
		case each.Request != nil:
			running++
		}
	}
	if running != got.Running || waiting != got.Waiting {
		w.Errorf("%d connections copy and %d wait, of %d and %d", running, waiting, got.Running, got.Waiting)
	}
}

// A key that is trusted alone has all permits, and one less as soon as another key is trusted.
func TestReloadedKeysShareThePermits(t *testing.T) {
	inWorld(t, func(w *world) {
		slow(w)
		w.config.Limits.Transfers = 2
	}, func(w *world) {
		var copies []<-chan error
		for i := range 4 {
			copies = append(copies, w.starting(w.alice(), fmt.Sprintf("box/%d", i)))
		}
		time.Sleep(time.Second)
		mustShare(w, TenantStatus{"alice", 2, 2})
		bob := newKey(w.T)
		both := trust{bob.Public(): {Name: "bob", Key: bob.Public()}, w.key.Public(): w.trusted[w.key.Public()]}
		w.server.ReloadKeys(both)
		must(w.T, <-copies[0])
		must(w.T, <-copies[1])
		time.Sleep(time.Second)
		mustShare(w, TenantStatus{"alice", 1, 1})
		w.server.ReloadKeys(w.trusted)
		mustShare(w, TenantStatus{"alice", 2, 0})
		must(w.T, <-copies[2])
		must(w.T, <-copies[3])
	})
}

// Without keys the permits are shared by the functions that have connections.
func TestFunctionsShareThePermits(t *testing.T) {
	inWorld(t, func(w *world) {
		slow(w)
		w.config.AuthNone, w.config.Trust, w.config.Limits.Transfers = true, nil, 2
	}, func(w *world) {
		anybody := func(function string) *Client {
			raw, shared := w.dial(function)
			c, err := Connect(w.Context(), ClientConfig{
				Conn: raw, Memory: fixed(shared), Verify: secure.AnyKey, Anonymous: true,
			})
			must(w.T, err)
			return c
		}
		clients := []*Client{anybody("b1:00.2"), anybody("b1:00.2"), anybody("b1:00.3")}
		copies := []<-chan error{w.starting(clients[0], "box/0"), w.starting(clients[1], "box/1")}
		time.Sleep(time.Second)
		mustShare(w, TenantStatus{"b1:00.2", 1, 1})
		must(w.T, clients[2].Close())
		time.Sleep(time.Second)
		mustShare(w, TenantStatus{"b1:00.2", 2, 0})
		must(w.T, <-copies[0])
		must(w.T, <-copies[1])
	})
}
