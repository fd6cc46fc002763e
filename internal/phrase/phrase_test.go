package phrase

import "testing"

func TestNearest(t *testing.T) {
	candidates := []string{"wait", "timeout", "idle-timeout", "pci-addr", "rep-pci"}
	cases := []struct{ word, want string }{
		{"wiat", "wait"}, {"WAIT", "wait"}, {"time-out", "timeout"}, {"idle", "idle-timeout"}, {"pci_addr", "pci-addr"},
		{"pci", "pci-addr"}, {"rep", "rep-pci"}, {"", ""}, {"x", ""}, {"something-else", ""},
	}
	for _, tc := range cases {
		if got := Nearest(tc.word, candidates); got != tc.want {
			t.Errorf("nearest to %q is %q, want %q", tc.word, got, tc.want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	cases := []struct {
		from, to string
		want     int
	}{
		{"", "", 0}, {"abc", "abc", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2},
	}
	for _, tc := range cases {
		if got := editDistance(tc.from, tc.to); got != tc.want {
			t.Errorf("from %q to %q in %d steps, want %d", tc.from, tc.to, got, tc.want)
		}
	}
}
