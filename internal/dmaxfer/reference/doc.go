// Package reference transfers one file in the protocol of NVIDIA's doca_dma_copy, in both roles and on both sides. It
// opens every conversation, because the offer to speak the native protocol travels in that protocol's first message;
// where the peer accepts the offer, Run returns the native session instead of a summary. The package decides nothing
// about the native protocol and does not import it.
//
//	Run ─ DIRECTION ─┬─ the peer speaks the native protocol: Outcome.Native
//	                 └─ agreed ─┬─ host: expose the whole file as memory ─ EXPORT ─ await STATUS ─ conclude
//	                            └─ DPU: await EXPORT ─ copy through a window of slots ─ conclude ─ STATUS
//
// conclude verifies the source, or commits the target. protocol.Session is the state machine; its states are drawn at
// protocol.State. A Transfer's actions follow from the session's events.
package reference
