package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// sshFixture is a fixture in which ssh of the host logs in to a real sshd, as the machine "far". That has its own home
// directory, "dpu", and its own directory of programs, in which dma-copy writes its process number to the file "pids".
type sshFixture struct{ *fixture }

// sshdConfig lets the key of the host log in, to an environment of the test's. The process of the far side is not in
// its process group.
const sshdConfig = `HostKey %[1]s/sshd/host_key
PidFile none
AuthorizedKeysFile %[1]s/sshd/id.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
Subsystem sftp internal-sftp
SetEnv PATH=%[1]s/sshd/bin:/usr/bin:/bin HOME=%[1]s/dpu DMA_COPY_SOFT_DIR=%[1]s/.run DMA_COPY_DRIVER=soft
`

// sshConfig is the user's configuration. sshd serves one connection on its stdin and stdout, so it needs no port.
const sshConfig = `Host unknown
  UserKnownHostsFile none
Host locked
  IdentityFile none
Host far locked unknown
  ProxyCommand %[2]s -i -f %[1]s/sshd/config -E %[1]s/sshd/log
  HostKeyAlias far
  UserKnownHostsFile %[1]s/sshd/known
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
  IdentitiesOnly yes
  BatchMode yes
Host far unknown
  IdentityFile %[1]s/sshd/id
Host closed
  HostName 127.0.0.1
  Port %[3]d
`

func newSSHFixture(t *testing.T) *sshFixture {
	t.Helper()
	sshd, err := exec.LookPath("/usr/sbin/sshd")
	if err == nil {
		_, err = exec.LookPath("ssh")
	}
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	must(t, err)
	if os.Geteuid() == 0 {
		must(t, os.MkdirAll("/run/sshd", 0o755)) // which sshd needs, and the start of the service makes
	}
	f := &sshFixture{newFixture(t)}
	dir := filepath.Join(f.dir, "sshd")
	must(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	must(t, os.Mkdir(filepath.Join(f.dir, "bin"), 0o755))
	for _, name := range []string{"host_key", "id"} {
		generate := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name))
		if printed, err := generate.CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, printed)
		}
	}
	closed, err := freePort()
	must(t, err)
	key := strings.Fields(readFile(t, dir, "host_key.pub"))
	for name, text := range map[string]string{
		"config":     fmt.Sprintf(sshdConfig, f.dir),
		"ssh_config": fmt.Sprintf(sshConfig, f.dir, sshd, closed),
		"known":      "far " + key[0] + " " + key[1] + "\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	ssh, err := exec.LookPath("ssh")
	must(t, err)
	f.writeScript("bin/ssh", fmt.Sprintf(`exec %s -F %s/ssh_config "$@"`, ssh, dir))
	f.installFar(`exec "$real" "$@"`)
	f.environment = append(f.environment, "PATH="+filepath.Join(f.dir, "bin")+":"+os.Getenv("PATH"),
		"HOME="+filepath.Join(f.dir, "host"))
	return f
}

func (f *sshFixture) writeScript(name, text string) {
	f.t.Helper()
	must(f.t, os.WriteFile(filepath.Join(f.dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
}

// installFar installs a dma-copy on the far side that does this; the variable real is the path of the program.
func (f *sshFixture) installFar(does string) {
	f.t.Helper()
	program, err := exec.LookPath("dma-copy")
	must(f.t, err)
	f.writeScript("sshd/bin/dma-copy", fmt.Sprintf("real=%s\necho $$ >> %s/sshd/pids\n%s", program, f.dir, does))
}

// run runs a command of the host, and expects its exit code.
func (f *sshFixture) run(code int, line string) side {
	f.t.Helper()
	s := f.start("command", line)
	s.expectExit(code)
	return s
}

// remote returns how a command of the host names something in the home directory of the far side.
func (f *sshFixture) remote(path string) string {
	return "ssh://far" + filepath.Join(f.dir, "dpu") + "/" + path
}

// expectNothingLeft waits until no process of the far side runs, and expects no file of its own.
func (f *sshFixture) expectNothingLeft() {
	f.t.Helper()
	for text := range strings.FieldsSeq(readFile(f.t, f.dir, "sshd", "pids")) {
		pid, err := strconv.Atoi(text)
		must(f.t, err)
		for look := new(lookAgain); syscall.Kill(pid, 0) == nil; {
			look.pause()
		}
	}
	for _, side := range bothSides {
		for _, name := range []string{".config", ".cache", ".local", ".ssh"} {
			if _, err := os.Lstat(filepath.Join(f.dir, side, name)); err == nil {
				f.t.Errorf("%s/%s is left", side, name)
			}
		}
	}
}
