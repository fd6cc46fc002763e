package contest

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk"
)

// The tools that copy between machines, besides those of copies within one.
const (
	toolIperf = "iperf3"
	toolUCX   = "ucx_perftest"
)

// The candidates of a tool that can do it in two ways.
const (
	candidateRsyncDaemon = "rsync daemon"
	candidateSocatTLS    = "socat openssl"
)

// networkTools are the tools for copies between machines. Ratios are to the first one, too.
var networkTools = []string{toolCp, toolRsync, toolSocat, toolIperf, toolUCX, toolLimit}

// loopback is the address at which all servers listen, and under which they are reached.
const loopback = "127.0.0.1"

// networkEntries returns the candidates of a tool that copy the source, a file, over loopback TCP, or in the case of cp
// without a network.
func (w *workspace) networkEntries(tool string, t fileTask, durability string) []networkEntry {
	served := func(name string, tool servedTool, result NetworkResult) networkEntry {
		c := &servedCopy{task: t, servedTool: tool, size: t.size, storing: !result.NoFiles}
		if c.storing {
			c.after = w.syncFile(durability)
		}
		return networkEntry{copyEntry{c, CopyResult{Contender: name, Bytes: t.size}}, result}
	}
	unserved := func(stages [][]child, result NetworkResult) networkEntry {
		c := &toolCopy{task: t, stages: append(stages, w.syncFile(durability)...)}
		return networkEntry{copyEntry{c, CopyResult{Contender: tool, Bytes: t.size}}, result}
	}
	tcp := NetworkResult{Network: networkTCP}
	encrypted := NetworkResult{Network: networkTCP, Encrypted: true}
	memory := NetworkResult{Network: networkTCP, NoFiles: true}
	switch tool {
	case toolRsync:
		return []networkEntry{served(candidateRsyncDaemon, w.rsyncDaemon("source", w.target()), tcp)}
	case toolSocat:
		return []networkEntry{
			served(toolSocat, w.socatTCP(), tcp), served(candidateSocatTLS, w.socatTLS(), encrypted),
		}
	case toolIperf:
		return []networkEntry{served(toolIperf, iperf(t.size), memory)}
	case toolUCX:
		return []networkEntry{served(toolUCX, activeMessages(t.size), memory)}
	case toolLimit:
		return []networkEntry{unserved(w.limitStages("--tcp"), tcp)}
	default:
		return []networkEntry{unserved(w.fileStages(tool), NetworkResult{Network: networkNone})}
	}
}

// rsyncDaemon copies a file or a tree of the workspace to a target. A source with a slash at its end is a tree.
func (w *workspace) rsyncDaemon(source, target string) servedTool {
	return servedTool{
		server: func(port int) child {
			return child{argv: []string{
				toolRsync, "--daemon", "--no-detach", "--address", loopback, "--port", strconv.Itoa(port),
				"--config", w.rsyncConfig(),
			}}
		},
		client: func(port int) child {
			return child{argv: []string{
				toolRsync, "-a", fmt.Sprintf("rsync://%s:%d/%s/%s", loopback, port, shareName, source), target,
			}}
		},
	}
}

func (w *workspace) rsyncConfig() string { return disk.Join(w.folder, "rsyncd.conf") }
func (w *workspace) keyFile() string     { return disk.Join(w.folder, "key.pem") }

// writeServerFiles writes what the servers of the tools need in the workspace. It is repeated after a reset.
func (w *workspace) writeServerFiles() error {
	config := fmt.Sprintf("use chroot = no\nlog file = /dev/null\n[%s]\npath = %s\nread only = yes\n",
		shareName, w.folder)
	if os.Getuid() == 0 { // a daemon of root would become nobody, who has no access to the workspace
		config += "uid = 0\ngid = 0\n"
	}
	key, err := newCertificate()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(w.rsyncConfig(), []byte(config), 0o600), os.WriteFile(w.keyFile(), key, 0o600))
}

// socatTCP copies the source to the target without encryption.
func (w *workspace) socatTCP() servedTool {
	return w.socatOver(
		func(port int) string { return fmt.Sprintf("TCP-LISTEN:%d,bind=%s,reuseaddr", port, loopback) },
		func(port int) string { return fmt.Sprintf("TCP:%s:%d", loopback, port) })
}

// socatTLS copies the source to the target over TLS, without a check of the certificate.
func (w *workspace) socatTLS() servedTool {
	return w.socatOver(
		func(port int) string {
			return fmt.Sprintf("OPENSSL-LISTEN:%d,bind=%s,reuseaddr,cert=%s,verify=0", port, loopback, w.keyFile())
		},
		func(port int) string { return fmt.Sprintf("OPENSSL:%s:%d,verify=0", loopback, port) })
}

func (w *workspace) socatOver(listen, connect func(port int) string) servedTool {
	return servedTool{
		server: func(port int) child { return socatChild(listen(port), "CREATE:"+w.target()) },
		client: func(port int) child { return socatChild("OPEN:"+w.source()+",rdonly", connect(port)) },
		ends:   true,
	}
}

// iperf moves bytes from memory to memory. It reports a rate.
func iperf(size int64) servedTool {
	return servedTool{
		server: func(port int) child {
			return child{argv: []string{toolIperf, "-s", "-1", "-B", loopback, "-p", strconv.Itoa(port)}}
		},
		client: func(port int) child {
			return child{argv: []string{
				toolIperf, "-c", loopback, "-p", strconv.Itoa(port), "-n", strconv.FormatInt(size, 10), "-J",
			}}
		},
		ends: true, copyTime: iperfTime,
	}
}

// iperfTime returns the seconds of a report in JSON, at the rate at which the sender has sent.
func iperfTime(output []byte, size int64) (float64, error) {
	var report struct {
		End struct {
			Sent struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_sent"`
		} `json:"end"`
	}
	if err := json.Unmarshal(output, &report); err != nil {
		return 0, fmt.Errorf("the report of %s: %w", toolIperf, err)
	}
	return timeAt(toolIperf, report.End.Sent.Rate/8, size)
}

// messageSize is that of ucx_perftest, and about that of a chunk.
const messageSize = 512 << 10

// activeMessages moves bytes from memory to memory by active messages of UCX, over TCP.
func activeMessages(size int64) servedTool {
	environment := append(os.Environ(), "UCX_TLS=tcp", "UCX_NET_DEVICES=lo")
	return servedTool{
		server: func(port int) child {
			return child{argv: []string{toolUCX, "-p", strconv.Itoa(port)}, environment: environment}
		},
		client: func(port int) child {
			return child{
				argv: []string{
					toolUCX, loopback, "-p", strconv.Itoa(port), "-t", "ucp_am_bw", "-w", "1", "-f", "-v",
					"-s", strconv.FormatInt(min(size, messageSize), 10),
					"-n", strconv.FormatInt(max(1, size/messageSize), 10),
				},
				environment: environment,
			}
		},
		ends: true, copyTime: activeMessageTime,
	}
}

// activeMessageTime returns the seconds of a report in CSV, whose last line has the overall rate in MiB/s.
func activeMessageTime(output []byte, size int64) (float64, error) {
	reader := csv.NewReader(bytes.NewReader(output))
	reader.FieldsPerRecord = -1
	head, last, err := headAndLast(reader)
	if err != nil {
		return 0, fmt.Errorf("the report of %s: %w", toolUCX, err)
	}
	for i, name := range head {
		if name != "overall_bw" || i >= len(last) {
			continue
		}
		rate, err := strconv.ParseFloat(strings.TrimSpace(last[i]), 64)
		if err != nil {
			return 0, fmt.Errorf("the report of %s: %w", toolUCX, err)
		}
		return timeAt(toolUCX, rate*(1<<20), size)
	}
	return timeAt(toolUCX, 0, size)
}

// headAndLast returns the first and the last line.
func headAndLast(reader *csv.Reader) (head, last []string, err error) {
	for {
		line, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return head, last, nil
		case err != nil:
			return nil, nil, err
		case head == nil:
			head = line
		}
		last = line
	}
}

// timeAt returns how long size bytes take at a rate, in seconds.
func timeAt(tool string, rate float64, size int64) (float64, error) {
	if rate <= 0 {
		return 0, fmt.Errorf("%s reports no rate", tool)
	}
	return float64(size) / rate, nil
}
