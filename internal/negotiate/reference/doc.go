// Package reference is the protocol of NVIDIA's doca_dma_copy, to the byte and in both roles:
//
//	host: Idle ─► AwaitDirection ─► AwaitExport ─► AwaitStatus ─► Done
//	DPU:  Idle ─► AwaitDirection ─► AwaitExport ─► Copying ─► AwaitDisconnect ─► Done
//
// In AwaitDirection a Session finds out whether the peer also speaks the native protocol. Then its state is HandedOver,
// and a native session continues. If the host turns out to speak the reference protocol after all, the native session
// calls Resume.
//
// Every state can change to Failed, which is final.
package reference
