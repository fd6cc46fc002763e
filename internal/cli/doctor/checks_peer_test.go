//go:build cgo

package doctor

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca"
)

func TestCheckPeerWithServer(t *testing.T) {
	alive := withSockets(doca.SoftSocket{File: servingSocket})
	servesSF := withSockets(doca.SoftSocket{File: "comch.sf04:b1:00.0.0000:03:00.0.dma%20copy%20server"})
	host, dpu := Settings{Device: "b1:00.1"}, Settings{Device: "03:00.0", Representor: "b1:00.1"}
	runCheckCases(t, []checkCase{
		{"a DPU", checkPeer(alive, softInventory(), host), verdictOK, 0,
			[]string{"a DPU serves host function 0000:b1:00.1 on 0000:03:00.0"}},
		{"DPU, taken", checkPeer(alive, softInventory(), dpu), verdictFail, 6,
			[]string{"serves host function b1:00.1 on 0000:03:00.0 already"}},
		{"a DPU, SF", checkPeer(servesSF, withSF(), Settings{Device: "mlx5_5"}), verdictOK, 0,
			[]string{"a DPU serves host function mlx5_5 on 0000:03:00.0"}},
		{"DPU, SF taken", checkPeer(servesSF, withSF(),
			Settings{Device: "03:00.0", Representor: "en3f0c1pf0sf4"}), verdictFail, 6,
			[]string{"serves host function en3f0c1pf0sf4 on 0000:03:00.0 already"}},
	})
}
