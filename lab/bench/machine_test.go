package bench

import "testing"

func TestThisMachine(t *testing.T) {
	m := thisMachine()
	if m.Cores < 1 || m.Memory < 1<<20 || m.Kernel == unknown || m.CPU == "" {
		t.Errorf("%+v", m)
	}
	if got := selected("always [madvise] never\n"); got != "madvise" {
		t.Errorf("selected %q", got)
	}
	if got := loadAverage("0.25 1.00 1.50 1/200 300\n"); got != 0.25 {
		t.Errorf("load %v", got)
	}
	if got := selected(""); got != unknown {
		t.Errorf("selected %q of nothing", got)
	}
}

func TestLimits(t *testing.T) {
	for _, tc := range [][3]string{
		{"", "", ""}, {"", "a=1", "a=1"}, {"bf3", "", "model=bf3"}, {"bf3", "a=1", "model=bf3,a=1"},
	} {
		if got := (Settings{Model: tc[0]}).Limits(tc[1]); got != tc[2] {
			t.Errorf("%q, want %q", got, tc[2])
		}
	}
}
