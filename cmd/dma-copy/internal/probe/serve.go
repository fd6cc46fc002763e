package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// service is what a side does for the probes of the other one: the host all that the DPU asks for, the DPU the results.
// What the host has opened is closed at the question "end".
type service struct {
	trial
	memory   *doca.Region     // exported last
	last     *doca.Connection // dialed last
	received func(context.Context) ([]byte, error)
	kill     func() error
}

// maxNumber is more than the DPU of this program has in any question.
const maxNumber = 1 << 20

var errNothing = errors.New("there is nothing that this is about")

// answer is the exchange.Handler.
func (s *service) answer(ctx context.Context, question string) ([]byte, error) {
	if s.Side == negotiate.DPU {
		if question != "results" {
			return nil, fmt.Errorf("the DPU does not know %q", question)
		}
		return s.given()
	}
	word, argument, _ := strings.Cut(question, " ")
	number, err := strconv.ParseInt("0"+argument, 10, 64)
	if err != nil || number > maxNumber {
		return nil, fmt.Errorf("%q is no number up to %d", argument, maxNumber)
	}
	text, err := s.guarded(ctx, probeTime+returnTime, func(ctx context.Context) (string, error) {
		s.ctx = ctx
		return s.do(word, number)
	})
	return []byte(text), err
}

// do does what a question is about.
func (s *service) do(word string, number int64) (string, error) {
	switch word {
	case "end":
		err := s.close()
		s.memory, s.last, s.received, s.kill = nil, nil, nil, nil
		return "", err
	case "export-read":
		return s.export(number, doca.RemoteRead)
	case "export-write":
		return s.export(number, doca.RemoteWrite)
	case "dial":
		return "", s.dial(probeName)
	case "dial-victim":
		return "", s.dial(victimName)
	case "victim":
		kill, err := s.startVictim()
		s.kill = kill
		return "", err
	}
	switch {
	case word == "sum" && s.memory != nil:
		return sum(s.memory.Bytes()), nil
	case word == "unexport" && s.memory != nil:
		memory := s.memory
		s.memory = nil
		return "", memory.Close()
	case word == "kill" && s.kill != nil:
		return "", s.kill()
	case word == "consumed" && s.received != nil:
		bytes, err := s.received(s.ctx)
		return sum(bytes), err
	case s.last != nil:
		return "", s.doOnLink(word, number)
	}
	return "", fmt.Errorf("%q: %w", word, errNothing)
}

// doOnLink does what a question about the last connection is about.
func (s *service) doOnLink(word string, number int64) error {
	switch word {
	case "wait":
		return notices(s.ctx, s.last)
	case "hangup":
		return s.last.Close()
	case "echo":
		message, err := s.last.Recv(s.ctx)
		if err != nil {
			return err
		}
		return s.last.Send(s.ctx, message)
	case "take":
		return takeMessages(s.ctx, s.last, int(number))
	case "send":
		return sendMessages(s.ctx, s.last, int(number))
	case "produce":
		_, err := s.produce(s.ctx, s.last, number)
		return err
	case "consume":
		consumer, region, err := s.consume(s.last, number)
		s.received = func(ctx context.Context) ([]byte, error) { return consumed(ctx, consumer, region) }
		return err
	}
	return fmt.Errorf("%q: %w", word, errNothing)
}

// export registers memory for the DPU, with the bytes of hostsBytes.
func (s *service) export(size int64, access doca.Access) (string, error) {
	region, err := s.region(size, access)
	if err != nil {
		return "", err
	}
	fill(region.Bytes(), hostsSeed)
	descriptor, err := region.Export()
	if err != nil {
		return "", err
	}
	s.memory = region
	text, err := json.Marshal(exported{region.Address(), descriptor})
	return string(text), err
}

func (s *service) dial(name string) (err error) {
	ctx, cancel := context.WithTimeout(s.ctx, noticeTime)
	defer cancel()
	s.last, err = s.connect(ctx, name)
	return err
}
