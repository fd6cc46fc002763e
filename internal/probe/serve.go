package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// service answers the questions of the other side: the host does what probes of the DPU need, and the DPU only returns
// its results. The question "end" closes all that the host has opened.
type service struct {
	trial
	memory   *doca.Region     // exported last
	last     *doca.Connection // dialed last
	received func() []byte
	kill     func() error
}

const maxUsed = 16

// answer is the ping.Handler.
func (s *service) answer(ctx context.Context, question string) ([]byte, error) {
	word, argument, _ := strings.Cut(question, " ")
	if s.Side == wire.DPU {
		if word != "results" {
			return nil, errors.New("the DPU has results only")
		}
		return json.Marshal(s.results)
	}
	text, err := s.guarded(ctx, answerTime, func() string { return s.serve(word, argument) })
	return []byte(text), err
}

// serve answers a question on the host, where no probe has more open than maxUsed. A number in a question is at most
// 2^20, more than this program has in any.
func (s *service) serve(word, argument string) string {
	if len(s.used) > maxUsed && word != "end" {
		s.need(errors.New("too much is open"))
	}
	number, err := strconv.ParseUint("0"+argument, 10, 20)
	s.need(err)
	switch word {
	case "end":
		s.memory, s.last, s.received, s.kill = nil, nil, nil, nil // some are closed even if it fails
		s.need(s.close())
	case "export-read":
		return s.share(doca.RemoteRead)
	case "export-write":
		return s.share(doca.RemoteWrite)
	case "dial":
		s.last = s.connect(probeName)
	case "dial-child":
		s.last = s.connect(childName)
	case "child":
		s.kill = s.startChild()
	default:
		return s.useOpened(word, int64(number))
	}
	return ""
}

// useOpened answers a question about something that an earlier one has opened.
func (s *service) useOpened(word string, number int64) string {
	switch {
	case word == "sum" && s.memory != nil:
		return sum(s.memory.Bytes())
	case word == "unexport" && s.memory != nil:
		memory := s.memory
		s.memory = nil
		s.need(memory.Close())
	case word == "kill" && s.kill != nil:
		s.need(s.kill())
	case word == "consumed" && s.received != nil:
		return sum(s.received())
	case s.last != nil:
		s.useConnection(word, number)
	default:
		s.need(fmt.Errorf("unknown question %q", word))
	}
	return ""
}

// useConnection answers a question about the last connection.
func (s *service) useConnection(word string, number int64) {
	switch word {
	case "wait":
		s.need(notices(s.ctx, s.last))
	case "hangup":
		s.need(s.last.Close())
	case "echo":
		message, err := s.last.Recv(s.ctx)
		s.need(err)
		s.need(s.last.Send(s.ctx, message))
	case "take":
		s.need(takeMessages(s.ctx, s.last, int(number)))
	case "send":
		s.need(sendMessages(s.ctx, s.last, int(number)))
	case "produce":
		s.produce(s.last, number)
	case "consume":
		s.received = s.consume(s.last, number)
	default:
		s.need(fmt.Errorf("unknown question %q", word))
	}
}

// share exports memory with the bytes of hostsBytes.
func (s *service) share(access doca.Access) string {
	s.memory = s.region(smallSize, access)
	fill(s.memory.Bytes(), hostsSeed)
	return s.export(s.memory)
}
