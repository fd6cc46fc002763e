// Package service is the protocol between a command and a daemon, over one connection from GREETING to the disconnect:
// one request at a time, each of the command.
//
//	Idle ─► AwaitGreeting ─► Ready ─┬─► Preparing ─┐
//	                           ▲    ├──────────────┴─► Requested ─► Copying ─┬─► Closing ─────┬─► Ready
//	                           │    │                                        └─► PeerClosing ─┘
//	                           └────┴─► Listing, Removing, Making, Pinging
//
// A refused request leads back to Ready from Requested, Listing, Removing, Making and Pinging. A disconnect in Ready
// leads to Done, and so does a final refusal on the daemon. Every state can change to Failed, which is final.
package service
