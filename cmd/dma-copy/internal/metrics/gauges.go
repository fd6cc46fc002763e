package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dma-copy/dma-copy/internal/service"
)

// gauges are the metrics of one moment. They are read from the server, so that they are right also after a failure.
type gauges struct {
	status   func() service.Status
	software string
	info     *prometheus.Desc
	all      []gauge
}

type gauge struct {
	desc *prometheus.Desc
	of   func(service.Status) float64
}

func newGauges(software string, status func() service.Status) *gauges {
	g := &gauges{
		status: status, software: software,
		info: prometheus.NewDesc(namespace+"info", "1, with the name and version of the daemon.", []string{"software"},
			nil),
	}
	add := func(name, help string, of func(service.Status) float64) {
		g.all = append(g.all, gauge{prometheus.NewDesc(namespace+name, help, nil, nil), of})
	}
	add("start_time_seconds", "Start of the daemon, in seconds since 1970.", func(s service.Status) float64 {
		return float64(s.Started.UnixMilli()) / 1000
	})
	add("connections", "Authenticated connections.", func(s service.Status) float64 {
		return float64(len(s.Connections))
	})
	add("pending_connections", "Connections that are not yet authenticated.", func(s service.Status) float64 {
		return float64(s.Pending)
	})
	add("running_transfers", "Copies that are running.", func(s service.Status) float64 { return float64(s.Running) })
	add("waiting_transfers", "Copies in the queue.", func(s service.Status) float64 {
		return float64(s.Waiting)
	})
	add("memory_bytes", "Windows and buffers of all connections, in bytes.", func(s service.Status) float64 {
		return float64(s.Memory)
	})
	add("trusted_keys", "Keys that may use the daemon.", func(s service.Status) float64 {
		return float64(s.TrustedKeys)
	})
	add("draining", "1 while the daemon takes no new connections and requests.", func(s service.Status) float64 {
		if s.Draining {
			return 1
		}
		return 0
	})
	return g
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	to <- g.info
	for _, each := range g.all {
		to <- each.desc
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	status := g.status()
	to <- prometheus.MustNewConstMetric(g.info, prometheus.GaugeValue, 1, g.software)
	for _, each := range g.all {
		to <- prometheus.MustNewConstMetric(each.desc, prometheus.GaugeValue, each.of(status))
	}
}
