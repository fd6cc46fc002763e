package negotiate

// This file is for a DPU whose host only seemed to offer the native protocol: the reference leaves some of its padding
// uninitialised. Such a host exports its memory, or gives up, where a HELLO is due.

func (n *NativeSession) mayBeReference(message Type) bool {
	return n.reference != nil && n.side == DPU && n.state == AwaitHello && (message == TypeExport || message == TypeStatus)
}

func (n *NativeSession) receiveReference(message Type, msg []byte) (NativeStep, error) {
	if message == TypeStatus {
		return n.receiveStatus(msg)
	}
	step, err := n.reference.resumeReference(msg)
	if err != nil {
		n.failure, n.state = n.reference.failure, Failed
		return NativeStep{Reply: step.Reply}, err
	}
	n.state = HandedOver
	return NativeStep{Event: ToReference, Reference: n.reference, ReferenceStep: step}, nil
}

// takeStatus knows of one STATUS that makes sense here: a reference host's failure.
func (n *NativeSession) receiveStatus(msg []byte) (NativeStep, error) {
	message, err := decodeStatus(msg)
	if err != nil {
		return n.failWithNotice(err)
	}
	if message == (Status{Success: false}) {
		return NativeStep{}, n.fail(&Error{Message: TypeStatus, Err: ErrPeerFailed})
	}
	return n.failWithNotice(outOfOrder(TypeStatus))
}
