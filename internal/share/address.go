package share

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// DefaultPort is the TCP port of a daemon on another machine where none is given. It is unassigned at IANA.
const DefaultPort = 7483

// Scheme begins what a command names on another machine: ucx://HOST[:PORT]/SHARE/PATH.
const Scheme = "ucx://"

// maxHost is the longest name of a host in the DNS, in bytes.
const maxHost = 253

// hostPattern is the pattern of a DNS name or an IPv4 address. Underscores are in use, if not in standards.
var hostPattern = pattern(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?$`)

// ParseAddress returns the address of a daemon on another machine in the form HOST:PORT, with DefaultPort if the text
// has none. An IPv6 address has brackets, and may have a zone: [fe80::1%eth0]:7483. A host's name is not looked up.
func ParseAddress(text string) (string, error) {
	host, port, err := splitAddress(text, strconv.Itoa(DefaultPort))
	if err != nil {
		return "", err
	}
	if err := checkHost(host, strings.HasPrefix(text, "[")); err != nil {
		return "", err
	}
	return net.JoinHostPort(host, port), nil
}

// splitAddress returns host and port, without the brackets of an IPv6 address. otherwise is the port of a text without
// one.
func splitAddress(text, otherwise string) (host, port string, err error) {
	if strings.Count(text, ":") > 1 && !strings.HasPrefix(text, "[") {
		return "", "", errors.New("an IPv6 address has brackets: write [ADDRESS]:PORT")
	}
	host, port = text, otherwise
	if end := strings.LastIndexByte(text, ':'); end > strings.LastIndexByte(text, ']') {
		host, port = text[:end], text[end+1:]
		if port, err = parsePort(port); err != nil {
			return "", "", err
		}
	}
	if inner, is := strings.CutPrefix(host, "["); is {
		inner, closed := strings.CutSuffix(inner, "]")
		if !closed {
			return "", "", errors.New("the bracket of an IPv6 address is not closed: write [ADDRESS]:PORT")
		}
		host = inner
	}
	return host, port, nil
}

func parsePort(text string) (string, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || strconv.FormatUint(port, 10) != text {
		return "", fmt.Errorf("%s is not a port: give a number from 1 to 65535", quote.Text(text))
	}
	return text, nil
}

// checkHost checks a host without its brackets.
func checkHost(host string, brackets bool) error {
	if brackets {
		address, err := netip.ParseAddr(host)
		if err != nil || !address.Is6() || quote.Printable(host) != host || strings.ContainsAny(host, " /[]@") {
			return fmt.Errorf("%s is not an IPv6 address", quote.Text(host))
		}
		return nil
	}
	if len(host) > maxHost || !hostPattern().MatchString(host) {
		return fmt.Errorf("%s is not the name or IP address of a machine", quote.Text(host))
	}
	return nil
}

// ParseListen returns the address at which a daemon listens, with DefaultPort if the text has none. The address of no
// host, as in ":7483", is every address of this machine.
func ParseListen(text string) (netip.AddrPort, error) {
	if text == "" {
		return netip.AddrPort{}, errors.New("an address is missing: write ADDRESS:PORT, or :PORT for all addresses")
	}
	if strings.HasPrefix(text, Scheme) {
		return netip.AddrPort{}, fmt.Errorf("%s is for the arguments of commands: write ADDRESS:PORT, "+
			"or :PORT for all addresses", Scheme)
	}
	host, port, err := splitAddress(text, strconv.Itoa(DefaultPort))
	if err != nil {
		return netip.AddrPort{}, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, err // not reached: splitAddress has checked it
	}
	address := netip.IPv6Unspecified() // also for IPv4, unless the machine separates them
	if host != "" {
		if err := checkHost(host, strings.HasPrefix(text, "[")); err != nil {
			return netip.AddrPort{}, err
		}
		if address, err = netip.ParseAddr(host); err != nil {
			return netip.AddrPort{}, fmt.Errorf("%s is not an IP address of this machine: write ADDRESS:PORT, "+
				"or :PORT for all addresses", quote.Text(host))
		}
	}
	return netip.AddrPortFrom(address, uint16(number)), nil
}

// parseURL parses what stands behind Scheme.
func parseURL(text string) (Remote, error) {
	authority, path, hasPath := strings.Cut(text, "/")
	address, err := ParseAddress(authority)
	if err != nil {
		return Remote{}, err
	}
	name, path, _ := strings.Cut(path, "/")
	if name == "" && (path != "" || hasPath && strings.HasSuffix(text, "//")) {
		return Remote{}, errors.New("there is no share behind the address: write ucx://HOST:PORT/SHARE/PATH")
	}
	if name != "" {
		if err := CheckName(name); err != nil {
			return Remote{}, err
		}
	}
	path, err = CleanPath(path)
	return Remote{Address: address, Share: name, Path: path}, err
}
