// Package wire is what the wire protocols share: the types of all messages, which have one range of numbers; the codec
// of their fields; limits, errors and values; and the part of a session that does not depend on the protocol.
package wire
