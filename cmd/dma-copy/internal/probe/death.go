package probe

import (
	"errors"
	"os/exec"
	"sync"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// The probes of processes that die. A victim is a process of this program that has a connection and is killed.

// startVictim starts a victim, and returns what kills it.
func (t *trial) startVictim() (kill func() error, err error) {
	if t.Victim == nil {
		return nil, errors.New("no process to be killed can be started")
	}
	command := t.Victim()
	if _, err := command.StdinPipe(); err != nil { // with this process it ends, and so does the victim
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	kill = sync.OnceValue(func() error {
		_ = command.Process.Kill() // it may have ended
		err := command.Wait()
		if _, ended := errors.AsType[*exec.ExitError](err); ended {
			err = nil
		}
		return err
	})
	t.use(kill)
	return kill, nil
}

// serverDies kills a server on the DPU, which its client has to notice.
func serverDies(t *trial) (string, error) {
	kill, err := t.startVictim()
	if err != nil {
		return "", err
	}
	if _, err := t.ask("dial-victim"); err != nil {
		return "", err
	}
	if err := kill(); err != nil {
		return "", err
	}
	return "the client notices the death of its server", t.hostNotices()
}

func clientDies(t *trial) (string, error) {
	_, conn, err := t.clientKilled()
	if err != nil {
		return "", err
	}
	return "the server notices the death of a client", notices(t.ctx, conn)
}

// clientAfterDeath has a client connect after another one has died.
func clientAfterDeath(t *trial) (string, error) {
	server, conn, err := t.clientKilled()
	if err != nil {
		return "", err
	}
	_ = notices(t.ctx, conn) // judged by clientDies
	if _, err := t.ask("dial-victim"); err != nil {
		return "", differs("%s", firstLine(err))
	}
	_, err = server.Accept(t.ctx)
	return "the next client is accepted", err
}

// clientKilled has the host kill a client, and returns its connection.
func (t *trial) clientKilled() (*doca.Server, *doca.Connection, error) {
	server, err := t.server(victimName)
	if err != nil {
		return nil, nil, err
	}
	if _, err := t.ask("victim"); err != nil {
		return nil, nil, err
	}
	conn, err := server.Accept(t.ctx)
	if err == nil {
		_, err = t.ask("kill")
	}
	return server, conn, err
}
