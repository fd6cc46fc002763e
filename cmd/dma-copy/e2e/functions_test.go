package e2e

import "testing"

// allFunctions gives the software device a virtual and a scalable function in addition to the physical ones.
const allFunctions = "DMA_COPY_SOFT_FUNCTIONS=vf,sf "

// TestVirtualFunction copies between a DPU and a virtual function of the host, by each of its names and of its
// representor's, in both directions.
func TestVirtualFunction(t *testing.T) {
	t.Parallel()
	for device, representor := range map[string]string{
		"b1:00.2": "b1:00.2", "0000:b1:00.2": "0000:b1:00.2",
		"mlx5_4": "pf0vf0", "enp177s0f0v0": "SOFT00000000MLNXS0D0F0VF1",
	} {
		copyOverFunction(t, device, representor)
	}
}

// TestScalableFunction copies between a DPU and a scalable function of the host, which shares the PCI address of its
// physical function.
func TestScalableFunction(t *testing.T) {
	t.Parallel()
	for device, representor := range map[string]string{
		"mlx5_5": "en3f0c1pf0sf4", "enp177s0f0s4": "SOFT00000000CMLNXS0D0F0SF32768",
	} {
		copyOverFunction(t, device, representor)
	}
}

// copyOverFunction starts subtests that copy in both directions between a host function and a DPU that serves it.
func copyOverFunction(t *testing.T, device, representor string) {
	t.Helper()
	for _, sender := range bothSides {
		t.Run(device+"_from_"+sender, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.createFile(sender, 100_000)
			f.startBoth(map[string]string{
				"host": allFunctions + "dma-copy -p " + device + " -f host/file",
				"dpu":  allFunctions + "dma-copy -p 03:00.0 -r " + representor + " -f dpu/file",
			}).expectExit(exitOK)
			f.expectSameFiles()
			f.expectClean()
		})
	}
}
