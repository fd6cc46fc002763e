/* SPDX-License-Identifier: Apache-2.0 */
/* On the DPU: receives the stream of one stream_send over Comch's fast path, and tells whether it was in order and whole. */
#include "stream_receive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <doca_log.h>

#include "device.h"
#include "flags.h"

DOCA_LOG_REGISTER(STREAM_RECEIVE);

struct config {
	char pci_addr[FLAG_SIZE];
	char rep_pci[FLAG_SIZE];
};

STRING_FLAG_CALLBACK(set_pci_addr, struct config, pci_addr)
STRING_FLAG_CALLBACK(set_rep_pci, struct config, rep_pci)

static doca_error_t judge(const struct tally *tally)
{
	printf("%" PRIu32 " blocks, %" PRIu64 " bytes", tally->blocks, tally->bytes);
	if (tally->ended && tally->blocks == tally->announced && tally->wrong == 0) {
		printf(", all in order and whole\n");
		return DOCA_SUCCESS;
	}
	printf(", %" PRIu32 " of them out of order or damaged", tally->wrong);
	if (tally->ended)
		printf(", %" PRIu32 " sent\n", tally->announced);
	else
		printf(", and no end\n");
	return DOCA_ERROR_IO_FAILED;
}

static doca_error_t receive_on(struct doca_dev *dev, struct doca_dev_rep *rep)
{
	struct receiver receiver = {.dev = dev};
	doca_error_t result = engines_create(&receiver.engines);
	if (result != DOCA_SUCCESS)
		return result;
	result = stream_serve(&receiver, rep);
	engines_destroy(&receiver.engines);
	doca_error_t verdict = judge(&receiver.tally);
	return result != DOCA_SUCCESS ? result : verdict;
}

static doca_error_t run(const struct config *config)
{
	struct doca_dev *dev;
	struct doca_dev_rep *rep;
	doca_error_t result = device_open(config->pci_addr, &dev);
	if (result != DOCA_SUCCESS)
		return result;
	result = representor_open(dev, config->rep_pci, &rep);
	if (result == DOCA_SUCCESS) {
		result = receive_on(dev, rep);
		doca_dev_rep_close(rep);
	}
	doca_dev_close(dev);
	return result;
}

static doca_error_t read_flags(int argc, char **argv, struct config *config)
{
	doca_error_t result = doca_argp_init("stream_receive", config);
	if (result == DOCA_SUCCESS)
		result = flag_register("p", "pci-addr", "<PCI-ADDR>", "Device of the DPU", set_pci_addr);
	if (result == DOCA_SUCCESS)
		result = flag_register("r", "rep-pci", "<PCI-ADDR>", "Function of the host", set_rep_pci);
	if (result == DOCA_SUCCESS)
		result = doca_argp_start(argc, argv);
	return result;
}

int main(int argc, char **argv)
{
	struct config config = {.pci_addr = "03:00.0", .rep_pci = "b1:00.0"};
	doca_error_t result = logs_open();
	if (result == DOCA_SUCCESS)
		result = read_flags(argc, argv, &config);
	if (result == DOCA_SUCCESS)
		result = run(&config);
	if (DOCA_IS_ERROR(result))
		DOCA_LOG_ERR("no stream: %s", doca_error_get_descr(result));
	doca_argp_destroy();
	return DOCA_IS_ERROR(result) ? EXIT_FAILURE : EXIT_SUCCESS;
}
