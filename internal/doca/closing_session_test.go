package doca_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dma-copy/dma-copy/internal/doca"
)

// session opens every kind of object of package doca, uses it once, and closes it, in the order of a program. Any step
// may fail; what is open then is closed nevertheless.
type session struct {
	ctx    context.Context
	driver *doca.Driver
	file   *os.File
	polled bool // as in doca.ChannelConfig
	opened []io.Closer

	host, dpu      *doca.Device
	representor    *doca.Representor
	source, target *doca.Region
	remote         *doca.Remote
	onHost, onDPU  *doca.Connection
	consumer       *doca.Consumer
	producer       *doca.Producer
}

const sessionBytes = 4096

func (s *session) run() error {
	steps := []func() error{
		s.openDevices, s.ask, s.shareMemory, s.shareFile, s.copy, s.connect, s.talk, s.openFastPath, s.sendFast,
		s.disconnect,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// keep records an object for closeAll.
func keep[T io.Closer](s *session, into *T, object T, err error) error {
	if err != nil {
		return err
	}
	*into = object
	s.opened = append(s.opened, object)
	return nil
}

func (s *session) openDevices() error {
	host, err := s.driver.OpenDevice("b1:00.0")
	if err := keep(s, &s.host, host, err); err != nil {
		return err
	}
	dpu, err := s.driver.OpenDevice("03:00.0")
	if err := keep(s, &s.dpu, dpu, err); err != nil {
		return err
	}
	representor, err := s.dpu.OpenRepresentor("b1:00.0")
	return keep(s, &s.representor, representor, err)
}

func (s *session) ask() error {
	_, devicesErr := s.driver.Devices()
	_, depthErr := s.dpu.MaxDepth()
	_, representorsErr := s.dpu.DescribeRepresentors()
	return errors.Join(devicesErr, depthErr, representorsErr)
}

func (s *session) shareMemory() error {
	source, err := s.host.Alloc(sessionBytes, doca.LocalWrite|doca.RemoteWrite)
	if err := keep(s, &s.source, source, err); err != nil {
		return err
	}
	target, err := s.dpu.Alloc(sessionBytes, doca.LocalWrite)
	if err := keep(s, &s.target, target, err); err != nil {
		return err
	}
	descriptor, err := s.source.Export()
	if err != nil {
		return err
	}
	remote, err := s.dpu.Import(descriptor, s.source.Address(), s.source.Len())
	return keep(s, &s.remote, remote, err)
}

func (s *session) shareFile() error {
	var mapped *doca.Region
	region, err := s.host.MapFile(s.file, sessionBytes, doca.RemoteRead)
	if err := keep(s, &mapped, region, err); err != nil {
		return err
	}
	_, err = mapped.Export()
	return err
}

func (s *session) copy() error {
	var engine *doca.Engine
	opened, err := s.dpu.NewEngine(4)
	if err := keep(s, &engine, opened, err); err != nil {
		return err
	}
	copy(s.source.Bytes(), "over the engine")
	task := doca.Copy{Source: s.remote, Target: s.target, Length: 64}
	gathering := task
	gathering.More = []doca.Range{{Offset: 100, Length: 7}, {Offset: 200, Length: 7}}
	tasks := []doca.Copy{task, gathering}
	for len(tasks) > 0 {
		n, err := engine.Submit(tasks)
		if err != nil && !errors.Is(err, doca.ErrQueueFull) {
			return err
		}
		tasks = tasks[n:]
		if err := reapAll(s.ctx, engine); err != nil {
			return err
		}
	}
	return mustHold(s.target.Bytes(), "over the engine")
}

func reapAll(ctx context.Context, engine *doca.Engine) error {
	into := make([]doca.Completion, engine.Depth())
	for {
		n, err := engine.Reap(ctx, into)
		if n == 0 || err != nil {
			return err
		}
		for _, completion := range into[:n] {
			if completion.Err != nil {
				return completion.Err
			}
		}
	}
}

func mustHold(got []byte, want string) error {
	if !bytes.HasPrefix(got, []byte(want)) {
		return fmt.Errorf("%q is missing", want)
	}
	return nil
}

func (s *session) connect() error {
	var server *doca.Server
	listening, err := s.dpu.Listen(s.representor, "closing", doca.ChannelConfig{Polled: s.polled})
	if err := keep(s, &server, listening, err); err != nil {
		return err
	}
	var client *doca.Client
	calling, err := s.host.NewClient("closing", doca.ChannelConfig{Polled: s.polled})
	if err := keep(s, &client, calling, err); err != nil {
		return err
	}
	if s.onHost, err = client.Connect(s.ctx); err != nil {
		return err
	}
	s.onDPU, err = server.Accept(s.ctx)
	return err
}

func (s *session) talk() error {
	for _, way := range [][2]*doca.Connection{{s.onHost, s.onDPU}, {s.onDPU, s.onHost}} {
		if err := way[0].Send(s.ctx, []byte("over the channel")); err != nil {
			return err
		}
		got, err := way[1].Recv(s.ctx)
		if err != nil {
			return err
		}
		if err := mustHold(got, "over the channel"); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) openFastPath() error {
	consumer, err := s.onHost.NewConsumer(s.ctx, s.source, doca.ConsumerConfig{Depth: 4, Immediate: 8})
	if err := keep(s, &s.consumer, consumer, err); err != nil {
		return err
	}
	producer, err := s.onDPU.NewProducer(4)
	return keep(s, &s.producer, producer, err)
}

func (s *session) sendFast() error {
	to, err := s.onDPU.AwaitPeerConsumers(s.ctx, 1)
	if err != nil {
		return err
	}
	if _, err := s.consumer.Post([]doca.Receive{{Offset: 1024, Length: 64}}); err != nil {
		return err
	}
	if _, err := s.consumer.Push(make([]doca.Received, 1)); err != nil {
		return err
	}
	copy(s.target.Bytes(), "over the fast path")
	message := doca.FastMessage{To: to[0], Source: s.target, Length: 64, Immediate: []byte("now")}
	if _, err := s.producer.SendWait(s.ctx, []doca.FastMessage{message}); err != nil {
		return err
	}
	return s.receiveFast()
}

func (s *session) receiveFast() error {
	sent, received := make([]doca.Completion, 1), make([]doca.Received, 1)
	if _, err := s.producer.Reap(s.ctx, sent); err != nil || sent[0].Err != nil {
		return errors.Join(err, sent[0].Err)
	}
	if _, err := s.consumer.Reap(s.ctx, received); err != nil || received[0].Err != nil {
		return errors.Join(err, received[0].Err)
	}
	return errors.Join(mustHold(received[0].Immediate, "now"), mustHold(s.source.Bytes()[1024:], "over the fast path"))
}

// disconnect ends the connection before its server and client, which closing in order does not test.
func (s *session) disconnect() error {
	for _, end := range []io.Closer{s.producer, s.consumer, s.onDPU} {
		if err := end.Close(); err != nil {
			return err
		}
	}
	return nil
}

// closeAll closes everything, in reverse order. A Close that fails must succeed when it is called again.
func (s *session) closeAll() (failed, stuck error) {
	for i := len(s.opened) - 1; i >= 0; i-- {
		if err := s.opened[i].Close(); err != nil {
			failed = errors.Join(failed, err)
		}
		if err := s.opened[i].Close(); err != nil {
			stuck = errors.Join(stuck, fmt.Errorf("closing %T again: %w", s.opened[i], err))
		}
	}
	return failed, stuck
}
