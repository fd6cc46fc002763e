package serve

import (
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/quantity"
)

// reload reads keys and shares again, each even if the other fails.
func (d *daemon) reload(store *identity.Store) {
	d.manager.Reloading()
	defer d.manager.Ready()
	if d.audit != nil {
		if err := d.audit.Reopen(); err != nil {
			d.log.Error().Err(err).Msg("the audit log stays in the old file")
		}
	}
	if d.settings.Auth == contact.AuthKeys {
		d.reloadKeys(store)
	}
	if err := d.reloadShares(); err != nil {
		d.log.Error().Err(err).Int("exit_code", exit.Code(err)).Msg("the shares stay as they are")
		return
	}
	fmt.Fprintf(d.streams.Stderr, "reloaded: %s\n", quantity.Count(len(d.settings.Shares), "share"))
}

// reloadKeys trusts the keys of the directory. If that cannot be read, nobody is trusted: a key may have been removed.
// The messages come last, when the keys are in use.
func (d *daemon) reloadKeys(store *identity.Store) {
	trusted, err := d.loadTrust(store)
	if err != nil {
		d.server.ReloadKeys(nil)
		d.log.Error().Err(err).Int("exit_code", exit.Code(err)).
			Msg("no key is trusted until the directory of keys can be read (correct it, and send SIGHUP again)")
		return
	}
	d.server.ReloadKeys(trusted)
	if len(trusted.All()) == 0 {
		d.log.Warn().Msg("no key is trusted any more: nobody is served")
	}
}

func (d *daemon) reloadShares() error {
	now, err := d.settings.Reload()
	if err != nil {
		return err
	}
	for _, each := range now.Shares {
		if slices.Contains(d.settings.Shares, each) {
			continue // the server logs whether it can be used
		}
		if err := d.confined.Admit(each.Name, sandboxShare(each)); err != nil {
			return err
		}
	}
	if err := d.server.ReloadShares(now.Shares); err != nil {
		return err
	}
	d.settings.Shares = now.Shares
	return nil
}
