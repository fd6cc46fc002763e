//go:build cgo

package secure

import (
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

func TestConnOverTheDeviceConforms(t *testing.T) {
	const name, wait = "secure test", 30 * time.Second
	s := newSides(t)
	comchtest.TestConn(t, func(t *testing.T) (host, dpu comch.Conn) {
		sides := docatest.OpenSides(t, "")
		listener, err := comch.Listen(sides.DPU, sides.OpenRepresentor(t), name)
		comchtest.MustBe(t, err, nil)
		t.Cleanup(func() { comchtest.MustBe(t, listener.Close(), nil) })
		host, err = comch.NewDialer(sides.Host, name, comch.Within(wait)).Dial(t.Context())
		comchtest.MustBe(t, err, nil)
		dpu, err = listener.Accept(t.Context(), comch.Within(wait))
		comchtest.MustBe(t, err, nil)
		server, client := mustMeet(t, s, dpu, host)
		t.Cleanup(func() { closeBoth(t, server, client) })
		return client, server
	})
}
