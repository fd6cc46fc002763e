// Package page serves the status page of a daemon: what dma-copy status shows, and the rates of the last ten minutes,
// for a browser. It can only be read, and must not change what the daemon does.
//
// The page is a fixed document, style sheet and script. The script fetches JSON and puts it into the page as text, so
// that no name of a peer is ever markup. docs/guide/service.md says who can see it.
package page
