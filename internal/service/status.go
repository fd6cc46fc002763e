package service

import (
	"time"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/job"
)

// Status is what a Server is doing at one moment.
type Status struct {
	Started  time.Time
	Draining bool // no new connection or request is taken

	Connections []ConnectionStatus // authenticated ones, by ID
	Pending     int                // connections that have not authenticated yet
	Running     int                // transfers
	Waiting     int                // transfers that wait for a permit
	Tenants     []TenantStatus     // that have running or waiting transfers, by name
	Memory      int64              // bytes of the windows, buffers and ITEMS of all connections
	Shares      []ShareStatus      // by name
	TrustedKeys int
	Limits      Limits // of all peers together; those that are not set have their defaults
	Totals      Totals // since the start
}

// ConnectionStatus describes one connection.
type ConnectionStatus struct {
	Session Session
	Request *Record // the running request, or nil
	Waiting bool    // it is a copy that waits for a permit
	Moved   int64   // bytes of it that the receiver has, of a copy
	Resumed int64   // bytes that an earlier copy had left, which Moved includes when they are verified
	Total   int64   // bytes of its source; job.Unknown for a stream or a tree, and before the copy begins

	Progress *job.Progress // of a copy, which says what it waits for; nil: there is none
}

// TenantStatus is what a tenant has of the permits to transfer.
type TenantStatus struct {
	Name             string // of the key; its fingerprint if it is not trusted any more; or the function
	Running, Waiting int    // transfers
}

// ShareStatus describes one share.
type ShareStatus struct {
	Name, Path string
	Access     string // "ro", "wo" or "rw"
}

// Totals count since the start of the Server.
type Totals struct {
	Connections int64 // accepted
	Refused     int64 // that ended before they were authenticated
	Requests    int64
	Failed      int64 // requests that ended with an error
	Bytes       int64 // of copies
	Bugs        int64 // connections that a defect has ended
}
