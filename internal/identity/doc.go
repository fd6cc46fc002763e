// Package identity has the keys by which the two sides of a service know each other: the private key of this machine,
// the public keys that it trusts, and what each of them may do.
//
//	DIR/identity.pem         private key, mode 0600
//	DIR/trusted/NAME.key     a trusted public key and its limits
//
// Files and directories that another user could have written are refused. The package has no network and no clock.
package identity
