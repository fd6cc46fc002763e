package bench

import "testing"

func TestFileSystemIn(t *testing.T) {
	const mounts = `21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 21 0:20 / /dev/shm rw shared:2 master:3 - tmpfs tmpfs rw
23 21 0:21 / /dev rw - devtmpfs none rw
24 21 0:22 / /mnt/a rw - xfs /dev/a rw
25 21 0:23 / /mnt/a rw - btrfs /dev/b rw
broken
`
	for directory, want := range map[string]string{
		"/": "ext4", "/tmp/x": "ext4", "/dev/shm": "tmpfs", "/dev/shm/x": "tmpfs", "/dev/shmx": "devtmpfs",
		"/mnt/a/b": "btrfs",
	} {
		if got := fileSystemIn(mounts, directory); got != want {
			t.Errorf("%s: %s, want %s", directory, got, want)
		}
	}
	if got := fileSystemIn("", "/tmp"); got != unknown {
		t.Errorf("without mounts it is %s", got)
	}
}

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
		if got := (Plan{Model: tc[0]}).limits(tc[1]); got != tc[2] {
			t.Errorf("%q, want %q", got, tc[2])
		}
	}
}
