package contest

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
