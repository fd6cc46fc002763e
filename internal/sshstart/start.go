package sshstart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/share"
)

// The limits of time.
const (
	startTime = 2 * time.Minute // for ssh to connect, the user to type a password, and the far side to answer
	probeTime = 2 * time.Second // for a TCP connection to an address of the far side
	endTime   = 5 * time.Second // for ssh to end after its stdin was closed
)

// Far is a far side that runs. Its methods may be called concurrently, except for Close.
type Far struct {
	Answer
	login    share.Login
	process  *exec.Cmd
	stdin    io.Closer
	stdout   sync.WaitGroup // its reader
	messages *messages
	relay    *relay // nil: none
}

// command returns the command that runs ssh with options for a machine. The options override the user's configuration
// for a login: no forwarding, no terminal, no command. Nothing behind "--" is an option.
func command(login share.Login, options []string, remote ...string) *exec.Cmd {
	args := []string{
		"-x", "-T", "-oForwardAgent=no", "-oClearAllForwardings=yes", "-oPermitLocalCommand=no", "-oRemoteCommand=none",
	}
	args = append(args, options...)
	if login.User != "" {
		args = append(args, "-l", login.User)
	}
	if login.Port != "" {
		args = append(args, "-p", login.Port)
	}
	c := exec.Command("ssh", append(append(args, "--", login.Host), remote...)...)
	c.WaitDelay = endTime // for a process of ssh that stays in the background, and keeps stderr open
	return c
}

// Start starts the far side of a machine for a request, and returns when it answers. wait limits the TCP connection of
// ssh; 0: its configuration does. stderr takes what ssh and the far side say later. It returns the errors of the far
// side; exit.Peer and exit.Refused for ssh that does not connect or log in; exit.Device where ssh or dma-copy is
// missing.
func Start(
	ctx context.Context, login share.Login, request Request, wait time.Duration, stderr io.Writer,
) (*Far, error) {
	var options []string
	if wait > 0 {
		options = append(options, "-oConnectTimeout="+strconv.Itoa(max(1, int(wait.Seconds()))))
	}
	f := &Far{login: login, process: command(login, options, "dma-copy agent"), messages: new(messages)}
	f.process.Stderr = f.messages
	stdin, err := f.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := f.process.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	if err := f.process.Start(); err != nil {
		return nil, exit.Errorf(exit.Device, "install OpenSSH's client", "start ssh: %w", err)
	}
	f.stdin = stdin
	limited, cancel := context.WithTimeoutCause(ctx, startTime, exit.Errorf(exit.Peer, "try ssh "+login.String(),
		"timeout: dma-copy on %s did not answer within %s", login, startTime))
	defer cancel()
	stop := context.AfterFunc(limited, func() { _ = f.process.Process.Kill() })
	err = request.write(stdin)
	if err == nil || errors.Is(err, syscall.EPIPE) {
		f.Answer, err = readAnswer(stdout, login.String())
	}
	f.stdout.Go(func() { _, _ = io.Copy(io.Discard, stdout) })
	inTime := stop()
	if err == nil && inTime {
		f.messages.pass(stderr)
		return f, nil
	}
	status := f.end()
	if !inTime {
		return nil, context.Cause(limited)
	}
	return nil, f.explain(err, status, stderr)
}

// explain returns why the far side has not answered. err is the error of the exchange, status the error of the process.
func (f *Far) explain(err, status error, stderr io.Writer) error {
	if _, coded := errors.AsType[*exit.Error](err); coded {
		return err
	}
	said := cmp.Or(f.messages.last(stderr), "it has printed nothing")
	ended, _ := errors.AsType[*exec.ExitError](status)
	if ended == nil || !errors.Is(err, io.EOF) {
		return exit.Errorf(exit.Protocol, fmt.Sprintf("see what ssh %s dma-copy version prints", f.login),
			"the answer of dma-copy on %s: %w", f.login, err)
	}
	switch code := ended.ExitCode(); {
	case code == 127 || code == 126:
		return exit.Errorf(exit.Device, "install its package there, or put the program into a directory that "+
			"ssh "+f.login.String()+" 'echo $PATH' lists", "dma-copy is not installed on %s: %s", f.login, said)
	case code == 255 && isRefusal(said):
		return exit.Errorf(exit.Refused, "try ssh "+f.login.String(), "ssh cannot log in to %s: %s", f.login, said)
	case code == 255:
		return exit.Errorf(exit.Peer, "try ssh "+f.login.String(), "ssh cannot connect to %s: %s", f.login, said)
	default:
		return exit.Errorf(exit.Protocol, "install the same dma-copy on both sides",
			"dma-copy on %s does not answer (exit code %d): %s", f.login, code, said)
	}
}

// isRefusal reports whether ssh has reached the machine, and one of the two does not trust the other.
func isRefusal(said string) bool {
	return strings.Contains(said, "Permission denied") || strings.Contains(said, "Host key verification failed") ||
		strings.Contains(said, "Too many authentication failures")
}

// Reachable returns those addresses of the far side, with its port, at which something accepts a connection. It may be
// another machine.
func (f *Far) Reachable(ctx context.Context) (found []string) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	accepted := make([]bool, len(f.Addresses))
	var probes sync.WaitGroup
	for i, address := range f.Addresses {
		probes.Go(func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", netip.AddrPortFrom(address, f.Port).String())
			if accepted[i] = err == nil; accepted[i] {
				_ = conn.Close()
			}
		})
	}
	probes.Wait()
	for i, address := range f.Addresses {
		if accepted[i] {
			found = append(found, netip.AddrPortFrom(address, f.Port).String())
		}
	}
	return found
}

// Close ends the far side, and all connections through ssh.
func (f *Far) Close() error {
	var err error
	if f.relay != nil {
		err = f.relay.close()
	}
	_ = f.end()
	return err
}

// end closes the stdin of ssh, at which the far side ends, and kills ssh if that takes too long.
func (f *Far) end() error {
	_ = f.stdin.Close()
	kill := time.AfterFunc(endTime, func() { _ = f.process.Process.Kill() })
	defer kill.Stop()
	f.stdout.Wait()
	return f.process.Wait()
}
