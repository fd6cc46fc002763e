package e2e

import "testing"

// TestVirtualFunction copies between a DPU and a virtual function of the host, by each of its names, in both
// directions.
func TestVirtualFunction(t *testing.T) {
	t.Parallel()
	const functions = "DMA_COPY_SOFT_FUNCTIONS=vf,sf "
	for _, name := range []string{"b1:00.2", "0000:b1:00.2", "mlx5_4", "enp177s0f0v0"} {
		for _, sender := range bothSides {
			t.Run(name+"_from_"+sender, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.createFile(sender, 100_000)
				sides := f.startBoth(map[string]string{
					"host": functions + "dma-copy -p " + name + " -f host/file",
					"dpu":  functions + "dma-copy -p 03:00.0 -r b1:00.2 -f dpu/file",
				})
				for _, s := range sides {
					s.expectExit(exitOK)
				}
				f.expectSameFiles()
				f.expectClean()
			})
		}
	}
}
