package pump

import "testing"

func TestSharesWithoutPeer(t *testing.T) {
	half := Shares{Peer: 0.5, Reading: 0.125, Writing: 0.375}
	if got, want := half.WithoutPeer(), (Shares{Reading: 0.25, Writing: 0.75}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, idle := range []Shares{{}, {Peer: 1}} {
		if got := idle.WithoutPeer(); got != (Shares{}) {
			t.Errorf("%+v became %+v, want nothing", idle, got)
		}
	}
}
