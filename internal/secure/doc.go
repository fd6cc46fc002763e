// Package secure authenticates and encrypts a control channel: TLS 1.3 over the messages of a comch.Conn, both sides by
// their Ed25519 keys. The result is a comch.Conn again. One message of it is one TLS record, which is one message of
// the channel below.
//
// The data of a copy is not in these messages: it travels outside of the channel, by DMA or the fast path, or between
// machines over data connections, which are TLS connections of their own between the same two keys.
package secure
