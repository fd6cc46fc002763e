package ucx

import (
	"slices"
	"strings"
)

// parseResources reads what ucp_context_print_info says: lines such as
//
//	#      resource 1  :  md 0  dev 1  flags -- tcp/eth0
func parseResources(text string) (resources []Resource) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[1] != "resource" {
			continue
		}
		if transport, device, found := strings.Cut(fields[len(fields)-1], "/"); found {
			resources = append(resources, Resource{Transport: transport, Device: device})
		}
	}
	return resources
}

// parseTransports reads what ucp_ep_print_info says of an endpoint: a line for each lane of UCX, such as
//
//	#                 lane[0]:  0:tcp/eth0.0 md[0]      -> md[0]/tcp/sysdev[255] am am_bw#0 wireup
//
// Lanes that only set up the connection are left out, unless there are no others.
func parseTransports(text string) string {
	var data, all []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 3 || !strings.HasPrefix(fields[1], "lane[") {
			continue
		}
		name := transportName(fields[2])
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
		carries := strings.Contains(line, " am") || strings.Contains(line, " rma")
		if carries && !slices.Contains(data, name) {
			data = append(data, name)
		}
	}
	if len(data) == 0 {
		data = all
	}
	return strings.Join(data, ",")
}

// transportName returns "tcp/eth0" for "0:tcp/eth0.0": the numbers of the resource and of the path are left out.
func transportName(field string) string {
	_, name, found := strings.Cut(field, ":")
	if !found {
		name = field
	}
	if dot := strings.LastIndexByte(name, '.'); dot > strings.LastIndexByte(name, '/') {
		name = name[:dot]
	}
	return name
}
