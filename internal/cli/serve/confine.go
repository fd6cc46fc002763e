package serve

import (
	"path/filepath"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/daemon/runtimedir"
	"github.com/dma-copy/dma-copy/internal/daemon/sandbox"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/share"
)

// confine takes from the process what it no longer needs, now that everything is open.
func (d *daemon) confine(store *identity.Store, runtime *runtimedir.Dir) error {
	s := d.settings
	policy := sandbox.Policy{
		Read:    []string{store.Path()},
		Reread:  []string{option.DefaultFile(d.streams.Env), s.ParameterFile()},
		Sockets: []string{runtime.Path(), filepath.Dir(d.socketPath(runtime))},
	}
	if s.AuditLog != "" && s.AuditLog != option.Stream {
		policy.Append = append(policy.Append, filepath.Dir(s.AuditLog))
	}
	if s.Metrics != "" {
		policy.Read = append(policy.Read, "/sys/fs/cgroup") // for the metrics of the process
	}
	if path, is := strings.CutPrefix(s.Metrics, "unix:"); is {
		policy.Sockets = append(policy.Sockets, filepath.Dir(path))
	}
	return d.restrict(policy)
}

// restrict puts a policy into effect, with the shares and transports of the daemon.
func (d *daemon) restrict(policy sandbox.Policy) error {
	for _, each := range d.settings.Shares {
		policy.Shares = append(policy.Shares, sandboxShare(each))
	}
	policy, err := d.withTransports(policy)
	if err != nil {
		return err
	}
	if d.confined, err = sandbox.Restrict(policy); err != nil {
		return err
	}
	if missing := d.confined.Missing(); missing != "" {
		d.log.Warn().Msg(missing)
	}
	return nil
}

// withTransports returns the policy with what the device needs, and UCX. A port that listens already needs nothing.
func (d *daemon) withTransports(p sandbox.Policy) (sandbox.Policy, error) {
	if d.settings.UsesUCX() {
		p = p.WithUCX()
	}
	switch {
	case d.Device == nil:
		return p, nil
	case d.Driver.Hardware():
		return p.WithDevice(""), nil
	}
	soft, err := doca.InspectSoftDir("")
	return p.WithDevice(soft.Path), err
}

func (d *daemon) forbidden(s share.Share, needed share.Access) bool {
	return d.confined.Forbids(sandbox.Share{Path: s.Path, Write: needed.Allows(share.Write)})
}

func sandboxShare(s share.Share) sandbox.Share {
	return sandbox.Share{Path: s.Path, Write: s.Access.Allows(share.Write)}
}
