// Package page has the test of the status page in a browser. It needs Chromium.
package page
