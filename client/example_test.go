package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/client"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/identity"
	"github.com/dma-copy/dma-copy/internal/network"
	"github.com/dma-copy/dma-copy/internal/service"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Example copies a directory into a share and back, and makes the share the same as a smaller directory.
func Example() {
	directory, address, stop := serveInbox()
	defer stop()
	source := filepath.Join(directory, "photos")
	check(os.Mkdir(source, 0o755))
	check(os.WriteFile(filepath.Join(source, "cat.jpg"), []byte("meow"), 0o644))
	check(os.WriteFile(filepath.Join(source, "dog.jpg"), []byte("woof!"), 0o644))

	ctx := context.Background()
	c, err := client.Connect(ctx, client.Options{Address: address, Anonymous: true, Delete: true})
	check(err)
	defer c.Close()
	pushed, err := c.Push(ctx, source, "inbox/")
	check(err)
	fmt.Println("pushed", pushed.Files, "files,", pushed.Bytes, "bytes")

	pulled, err := c.Pull(ctx, "inbox/photos", filepath.Join(directory, "again"))
	check(err)
	fmt.Println("pulled", pulled.Files, "files")

	check(os.Remove(filepath.Join(source, "dog.jpg")))
	synced, err := c.SyncTo(ctx, source, "inbox/photos")
	check(err)
	fmt.Println("synced", synced.Files, "files, deleted", synced.Deleted)

	check(c.List(ctx, "inbox", true, func(e client.Entry) error {
		fmt.Printf("%q\n", e.Path)
		return nil
	}))
	_, err = c.Push(ctx, filepath.Join(directory, "missing"), "inbox/")
	fmt.Println("missing source:", errors.Is(err, client.ErrSource))
	check(c.MakeDir(ctx, "inbox/empty", false))
	check(c.Remove(ctx, "inbox/empty"))
	fmt.Println("not empty:", errors.Is(c.Remove(ctx, "inbox/photos"), client.ErrTarget))
	// Output:
	// pushed 2 files, 9 bytes
	// pulled 2 files
	// synced 0 files, deleted 1
	// ""
	// "photos"
	// "photos/cat.jpg"
	// missing source: true
	// not empty: true
}

// serveInbox serves a share in a new directory, on this machine alone.
func serveInbox() (directory, address string, stop func()) {
	directory, err := os.MkdirTemp("", "client")
	check(err)
	inbox := filepath.Join(directory, "inbox")
	check(os.Mkdir(inbox, 0o755))
	key, err := identity.Generate()
	check(err)
	server, err := service.NewServer(service.ServerConfig{
		Key: key, AuthNone: true, Shares: []share.Share{{Name: "inbox", Path: inbox, Access: share.ReadWrite}},
		Copy: dmaxfer.Options{Options: role.Options{Digest: digest.BLAKE3, Software: "test 1", Log: zerolog.Nop()}},
		Log:  zerolog.Nop(),
	})
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	daemon, err := service.ListenNetwork(ctx, server, "127.0.0.1:0", network.Settings{}, zerolog.Nop())
	check(err)
	ended := make(chan error, 1)
	go func() { ended <- daemon.Run(ctx) }()
	return directory, daemon.Address(), func() {
		cancel()
		check(<-ended)
		check(daemon.Close())
		check(os.RemoveAll(directory))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
