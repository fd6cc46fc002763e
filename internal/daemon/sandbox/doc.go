// Package sandbox takes from the process what a daemon no longer needs once its device, keys, sockets and logs are
// open: access to files outside its shares (Landlock), TCP, signals to other processes, ambient capabilities, and the
// gain of privileges by execve.
//
// All of it holds for every thread of the process, C threads included, and cannot be undone. The package must not know
// what a daemon does; the Policy lists the files that it needs.
package sandbox
