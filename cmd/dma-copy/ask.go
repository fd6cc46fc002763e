package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// ask prints a question and reports whether the answer is yes. Until there is one it calls keepAlive, as the daemon
// does not wait for long for the next request.
func ask(ctx context.Context, from io.Reader, to io.Writer, question string, keepAlive func() error) (bool, error) {
	answers := make(chan bool, 1)
	go func() {
		fmt.Fprintf(to, "dma-copy: %s [y/N] ", question)
		answer, _ := bufio.NewReader(from).ReadString('\n') // the end of the input is no answer
		answer = strings.ToLower(strings.TrimSpace(answer))
		answers <- answer == "y" || answer == "yes"
	}()
	ticker := time.NewTicker(30 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case yes := <-answers:
			return yes, nil
		case <-ticker.C:
			if err := keepAlive(); err != nil {
				return false, err
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
