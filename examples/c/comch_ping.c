/* SPDX-License-Identifier: Apache-2.0 */
/* Says "ping" to the other end of a control channel, both ways. The device tells whether we are the server or the client. */
#include <stdlib.h>

#include <doca_log.h>
#include <doca_pe.h>

#include "device.h"
#include "flags.h"
#include "ping.h"

DOCA_LOG_REGISTER(COMCH_PING);

struct config {
	char pci_addr[FLAG_SIZE];
	char rep_pci[FLAG_SIZE];
};

STRING_FLAG_CALLBACK(set_pci_addr, struct config, pci_addr)
STRING_FLAG_CALLBACK(set_rep_pci, struct config, rep_pci)

static doca_error_t serve(struct ping *ping, struct doca_dev *dev, const struct config *config)
{
	struct doca_dev_rep *rep;
	doca_error_t result = representor_open(dev, config->rep_pci, &rep);
	if (result != DOCA_SUCCESS)
		return result;
	ping->own_name = "DPU";
	result = ping_serve(ping, dev, rep);
	doca_dev_rep_close(rep);
	return result;
}

static doca_error_t play_role(struct doca_dev *dev, const struct config *config)
{
	struct ping ping = {.own_name = "host"};
	doca_error_t result = doca_pe_create(&ping.pe);
	if (result != DOCA_SUCCESS)
		return result;
	if (doca_comch_cap_server_is_supported(doca_dev_as_devinfo(dev)) == DOCA_SUCCESS)
		result = serve(&ping, dev, config);
	else
		result = ping_call(&ping, dev);
	doca_pe_destroy(ping.pe);
	return result;
}

static doca_error_t run(const struct config *config)
{
	struct doca_dev *dev;
	doca_error_t result = device_open(config->pci_addr, &dev);
	if (result != DOCA_SUCCESS)
		return result;
	result = play_role(dev, config);
	doca_dev_close(dev);
	return result;
}

static doca_error_t read_flags(int argc, char **argv, struct config *config)
{
	doca_error_t result = doca_argp_init("comch_ping", config);
	if (result == DOCA_SUCCESS)
		result = flag_register("p", "pci-addr", "<PCI-ADDR>", "Device to talk over", set_pci_addr);
	if (result == DOCA_SUCCESS)
		result = flag_register("r", "rep-pci", "<PCI-ADDR>", "Function of the host, for the DPU", set_rep_pci);
	if (result == DOCA_SUCCESS)
		result = doca_argp_start(argc, argv);
	return result;
}

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "b1:00.0", .rep_pci = "b1:00.0"};
	doca_error_t result = logs_open();
	if (result == DOCA_SUCCESS)
		result = read_flags(argc, argv, &config);
	if (result == DOCA_SUCCESS)
		result = run(&config);
	if (DOCA_IS_ERROR(result))
		DOCA_LOG_ERR("no ping: %s", doca_error_get_descr(result));
	doca_argp_destroy();
	return DOCA_IS_ERROR(result) ? EXIT_FAILURE : EXIT_SUCCESS;
}
