package share

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// RelayTarget is the addresses of one network, with a port, to which a daemon may push files for others.
type RelayTarget struct {
	Network netip.Prefix // masked
	Port    uint16
}

// MaxRelayTargets is how many of them a daemon has at most.
const MaxRelayTargets = 1000

// ParseRelayTargets parses a list of ADDRESS[/BITS][:PORT], separated by commas, with DefaultPort where an element has
// none. An IPv6 address or network has brackets, as in [fd00::/64]:7483. Names are refused: who changes them could
// change where files go.
func ParseRelayTargets(text string) ([]RelayTarget, error) {
	var targets []RelayTarget
	for each := range strings.SplitSeq(text, ",") {
		target, err := parseRelayTarget(each)
		if err != nil {
			return nil, err
		}
		if targets = append(targets, target); len(targets) > MaxRelayTargets {
			return nil, fmt.Errorf("more than %d networks: give larger ones", MaxRelayTargets)
		}
	}
	return targets, nil
}

func parseRelayTarget(text string) (RelayTarget, error) {
	if text == "" {
		return RelayTarget{}, errors.New("an address is missing: write ADDRESS:PORT or ADDRESS/BITS:PORT")
	}
	host, port, err := splitAddress(text)
	if err != nil {
		return RelayTarget{}, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return RelayTarget{}, err // not reached: splitAddress has checked it
	}
	network, err := parseNetwork(host)
	if err != nil {
		return RelayTarget{}, err
	}
	switch address := network.Addr(); {
	case address.Is6() != strings.HasPrefix(text, "["):
		return RelayTarget{}, errors.New("an IPv6 address has brackets: write [ADDRESS/BITS]:PORT")
	case address.Is4In6(), address.IsMulticast(), address.IsUnspecified() && network.IsSingleIP():
		return RelayTarget{}, fmt.Errorf("%s is not an address that a daemon can have", quote.Text(host))
	}
	return RelayTarget{network, uint16(number)}, nil
}

// parseNetwork parses ADDRESS or ADDRESS/BITS.
func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%s is not an IP address or network: write ADDRESS:PORT or ADDRESS/BITS:PORT",
			quote.Text(text))
	case network != network.Masked():
		return netip.Prefix{}, fmt.Errorf("%s is not the address of a network: write %s", quote.Text(text),
			network.Masked())
	}
	return network, nil
}

// String returns the form that ParseRelayTargets reads.
func (t RelayTarget) String() string {
	host := t.Network.String()
	if t.Network.IsSingleIP() {
		host = t.Network.Addr().String()
	}
	if t.Network.Addr().Is6() {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(t.Port))
}

// Permits reports whether files may be pushed to an address. A loopback address is one of this machine, which no larger
// network stands for.
func (t RelayTarget) Permits(address netip.AddrPort) bool {
	return address.Port() == t.Port && t.Network.Contains(address.Addr()) &&
		(!address.Addr().IsLoopback() || t.Network.Addr().IsLoopback())
}
