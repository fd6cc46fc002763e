package docatest

import (
	"github.com/dma-copy/dma-copy/internal/doca"
)

var closedCases = []testCase{
	{"devices", closedDevice},
	{"memory", closedMemory},
	{"engines", closedEngine},
	{"clients and representors", closedChannel},
	{"consumers and producers", closedFastPath},
}

func closedDevice(b *bench) {
	device := b.dpu()
	b.must(device.Close())
	uses := map[string]func() error{
		"MaxDepth":        func() error { _, err := device.MaxDepth(); return err },
		"Representors":    func() error { _, err := device.Representors(); return err },
		"OpenRepresentor": func() error { _, err := device.OpenRepresentor("b1:00.0"); return err },
		"Alloc":           func() error { _, err := device.Alloc(page, doca.LocalWrite); return err },
		"MapFile":         func() error { _, err := device.MapFile(b.file(page), page, doca.LocalRead); return err },
		"Import":          func() error { _, err := device.Import([]byte("descriptor"), page, page); return err },
		"NewEngine":       func() error { _, err := device.NewEngine(1); return err },
	}
	for name, use := range uses {
		b.Log(name)
		b.mustBe(use(), doca.ErrClosed)
	}
}

func closedMemory(b *bench) {
	host, dpu := b.host(), b.dpu()
	exported, local := b.alloc(host, page, doca.RemoteRead), b.alloc(dpu, page, doca.LocalWrite)
	remote := b.imported(dpu, exported)
	b.must(remote.Close())
	engine := b.engine(dpu, 1)
	_, err := engine.Submit([]doca.Copy{{Source: remote, Target: local, Length: 1}})
	b.mustBe(err, doca.ErrClosed)
	b.must(exported.Close())
	_, err = exported.Export()
	b.mustBe(err, doca.ErrClosed)
	other := b.alloc(dpu, page, doca.LocalRead)
	b.must(local.Close())
	_, err = engine.Submit([]doca.Copy{{Source: other, Target: local, Length: 1}})
	b.mustBe(err, doca.ErrClosed)
}

func closedEngine(b *bench) {
	dpu := b.dpu()
	source, target := b.alloc(dpu, page, doca.LocalRead), b.alloc(dpu, page, doca.LocalWrite)
	engine := b.engine(dpu, 1)
	b.must(engine.Close())
	_, err := engine.Submit(batch(source, target, 1))
	b.mustBe(err, doca.ErrClosed)
	_, err = engine.Reap(b.context(), make([]doca.Completion, 1))
	b.mustBe(err, doca.ErrClosed)
	if engine.Inflight() != 0 {
		b.Errorf("a closed engine has %d copies in flight", engine.Inflight())
	}
}

func closedChannel(b *bench) {
	gone := b.host()
	b.must(gone.Close())
	_, err := gone.NewClient(serverName, doca.ChannelConfig{})
	b.mustBe(err, doca.ErrClosed)
	s := b.sides()
	client := b.client(s, doca.ChannelConfig{})
	b.must(client.Close())
	_, err = client.Connect(b.context())
	b.mustBe(err, doca.ErrClosed)
	b.must(s.rep.Close())
	_, err = s.dpu.Listen(s.rep, serverName, doca.ChannelConfig{})
	b.mustBe(err, doca.ErrClosed)
}

func closedFastPath(b *bench) {
	host, dpu := b.bothSides()
	l := b.lane(dpu, host, doca.ConsumerConfig{Depth: 1})
	b.must(l.consumer.Close())
	b.must(l.producer.Close())
	message := []doca.FastMessage{{To: l.consumer.ID(), Source: l.source, Length: 1}}
	uses := map[string]func() error{
		"Post":          func() error { _, err := l.consumer.Post([]doca.Receive{{Length: 1}}); return err },
		"Push":          func() error { _, err := l.consumer.Push(make([]doca.Received, 1)); return err },
		"consumer Reap": func() error { _, err := l.consumer.Reap(b.context(), make([]doca.Received, 1)); return err },
		"Send":          func() error { _, err := l.producer.Send(message); return err },
		"SendWait":      func() error { _, err := l.producer.SendWait(b.context(), message); return err },
		"producer Reap": func() error {
			_, err := l.producer.Reap(b.context(), make([]doca.Completion, 1))
			return err
		},
	}
	for name, use := range uses {
		b.Log(name)
		b.mustBe(use(), doca.ErrClosed)
	}
	if l.consumer.Inflight() != 0 || l.producer.Inflight() != 0 {
		b.Errorf("closed, yet %d and %d in flight", l.consumer.Inflight(), l.producer.Inflight())
	}
}
