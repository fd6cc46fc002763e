// Package dmaxfertest gives simulations in virtual time what a transfer needs of the machine, in memory and with delays
// and faults that the test chooses: the control channel between host and DPU, and the windows and engines of a device.
package dmaxfertest
