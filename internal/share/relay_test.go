package share

import (
	"net/netip"
	"strings"
	"testing"
)

func TestRelayTargets(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.2":                          "10.0.0.2:7483",
		"10.0.0.2:1":                        "10.0.0.2:1",
		"10.0.0.0/24:7483":                  "10.0.0.0/24:7483",
		"10.0.0.0/24":                       "10.0.0.0/24:7483",
		"10.0.0.2/32:80":                    "10.0.0.2:80",
		"0.0.0.0/0":                         "0.0.0.0/0:7483",
		"[fd00::14]":                        "[fd00::14]:7483",
		"[fd00::/64]:65535":                 "[fd00::/64]:65535",
		"127.0.0.1:9":                       "127.0.0.1:9",
		"10.0.0.0/24,[fd00::/8]:1,10.1.0.1": "10.0.0.0/24:7483,[fd00::/8]:1,10.1.0.1:7483",
		strings.Repeat("10.0.0.1,", 999) + "10.0.0.2": strings.Repeat("10.0.0.1:7483,", 999) + "10.0.0.2:7483",
	} {
		targets, err := ParseRelayTargets(text)
		if err != nil {
			t.Errorf("%.40s: %v", text, err)
			continue
		}
		var got []string
		for _, each := range targets {
			got = append(got, each.String())
		}
		if joined := strings.Join(got, ","); joined != want {
			t.Errorf("%.40s: got %.80s, want %.80s", text, joined, want)
		}
	}
}

func TestRelayTargetsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "an address is missing",
		"10.0.0.1,":           "an address is missing",
		"lab.example":         "is not an IP address or network",
		"lab:7483":            "is not an IP address or network",
		"10.0.0.1:0":          "is not a port",
		"10.0.0.1:070":        "is not a port",
		"10.0.0.1:65536":      "is not a port",
		"10.0.0.2/24":         "write 10.0.0.0/24",
		"127.0.0.0/7":         "write 126.0.0.0/7",
		"10.0.0.0/33":         "is not an IP address or network",
		"fd00::14":            "an IPv6 address has brackets",
		"[10.0.0.1]:1":        "an IPv6 address has brackets",
		"[fe80::1%eth0]:1":    "is not an IP address or network",
		"[fd00::14":           "the bracket of an IPv6 address is not closed",
		"[::ffff:10.0.0.1]:1": "is not an address that a daemon can have",
		"[::]:1":              "is not an address that a daemon can have",
		"0.0.0.0:1":           "is not an address that a daemon can have",
		"224.0.0.1":           "is not an address that a daemon can have",
		"10.0.0.1 ":           "is not an IP address or network",
		strings.Repeat("10.0.0.1,", 1000) + "10.0.0.2": "more than 1000 networks",
	} {
		if got, err := ParseRelayTargets(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, %v; want %q", text, got, err, want)
		}
	}
}

// A loopback address is permitted only by an element that is about loopback addresses.
func TestRelayTargetsPermit(t *testing.T) {
	for _, test := range []struct {
		target, address string
		want            bool
	}{
		{"10.0.0.2:7483", "10.0.0.2:7483", true},
		{"10.0.0.2:7483", "10.0.0.2:7484", false},
		{"10.0.0.2:7483", "10.0.0.3:7483", false},
		{"10.0.0.0/24", "10.0.0.255:7483", true},
		{"10.0.0.0/24", "10.0.1.0:7483", false},
		{"0.0.0.0/0", "192.0.2.1:7483", true},
		{"0.0.0.0/0", "127.0.0.1:7483", false},
		{"0.0.0.0/0", "[fd00::1]:7483", false},
		{"[::/0]", "[fd00::1]:7483", true},
		{"[::/0]", "[::1]:7483", false},
		{"[::/0]", "127.0.0.1:7483", false},
		{"[::1]", "[::1]:7483", true},
		{"127.0.0.0/8", "127.3.2.1:7483", true},
		{"127.0.0.1", "127.0.0.1:7483", true},
		{"127.0.0.1", "127.0.0.2:7483", false},
	} {
		targets, err := ParseRelayTargets(test.target)
		if err != nil {
			t.Fatal(err)
		}
		if got := targets[0].Permits(netip.MustParseAddrPort(test.address)); got != test.want {
			t.Errorf("%s permits %s: got %t", test.target, test.address, got)
		}
	}
}

func FuzzRelayTargets(f *testing.F) {
	for _, text := range []string{"10.0.0.0/24:7483,[fd00::/64]:1", "127.0.0.1", "[::1]", "0.0.0.0/0:1,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		targets, err := ParseRelayTargets(text)
		if err != nil {
			return
		}
		for _, each := range targets {
			again, err := ParseRelayTargets(each.String())
			if err != nil || len(again) != 1 || again[0] != each {
				t.Fatalf("%q: %s became %v, %v", text, each, again, err)
			}
		}
	})
}
