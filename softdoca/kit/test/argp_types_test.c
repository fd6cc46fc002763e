/* SPDX-License-Identifier: Apache-2.0 */
/* Types of values that came with DOCA 3.3: numbers with a fraction, devices and representors; and lenient JSON. */
#include <string.h>
#include <unistd.h>

#include <doca_dev.h>

#include "argp_program.h"
#include "capture.h"
#include "check.h"

static double ratio;
static unsigned opened;

static doca_error_t on_ratio(void *value, void *config)
{
	(void)config;
	ratio = *(double *)value;
	return DOCA_SUCCESS;
}

static void note_device(const struct doca_argp_device_ctx *device)
{
	char address[DOCA_DEVINFO_PCI_ADDR_SIZE];
	EXPECT(DOCA_SUCCESS, doca_devinfo_get_pci_addr_str(doca_dev_as_devinfo(device->dev), address));
	note("%s %s", address, device->devargs == NULL ? "none" : device->devargs);
}

static doca_error_t on_device(void *value, void *config)
{
	const struct doca_argp_device_ctx *device = (const struct doca_argp_device_ctx *)value;
	(void)config;
	note_device(device);
	EXPECT(DOCA_SUCCESS, doca_dev_close(device->dev));
	return DOCA_SUCCESS;
}

static doca_error_t on_rep(void *value, void *config)
{
	const struct doca_argp_device_rep_ctx *rep = (const struct doca_argp_device_rep_ctx *)value;
	(void)config;
	note_device(&rep->dev_ctx);
	EXPECT(DOCA_SUCCESS, doca_dev_rep_close(rep->dev_rep));
	EXPECT(DOCA_SUCCESS, doca_dev_close(rep->dev_ctx.dev));
	return DOCA_SUCCESS;
}

static doca_error_t open_counted(struct doca_devinfo *info, void *context, struct doca_dev **dev)
{
	(*(unsigned *)context)++;
	return doca_dev_open(info, dev);
}

static const struct parameter parameters[] = {
	{"r", "ratio", DOCA_ARGP_TYPE_DOUBLE, on_ratio, {NULL}},
	{"a", "device", DOCA_ARGP_TYPE_DEVICE, on_device, {NULL}},
	{"p", "rep", DOCA_ARGP_TYPE_DEVICE_REP, on_rep, {NULL}},
};

static void open_parser(void)
{
	record[0] = '\0';
	EXPECT(DOCA_SUCCESS, doca_argp_init("types", record));
	for (size_t i = 0; i < COUNT(parameters); i++)
		EXPECT(DOCA_SUCCESS, doca_argp_register_param(make_param(&parameters[i])));
}

/* Parses "flag value" and compares what was noted. */
static void check_flag(const char *flag, const char *value, doca_error_t result, const char *noted)
{
	char *argv[] = {(char *)"types", (char *)flag, (char *)value, NULL};
	open_parser();
	EXPECT(result, doca_argp_start(3, argv));
	if (strcmp(record, noted) != 0) {
		fprintf(stderr, "%s %s: noted \"%s\", not \"%s\"\n", flag, value, record, noted);
		exit(1);
	}
	EXPECT(DOCA_SUCCESS, doca_argp_destroy());
}

static int numbers_have_a_fraction(const void *argument)
{
	(void)argument;
	check_flag("-r", "0.25", DOCA_SUCCESS, "");
	CHECK(ratio > 0.24 && ratio < 0.26);
	check_flag("--ratio", "-1e3", DOCA_SUCCESS, "");
	CHECK(ratio < -999 && ratio > -1001);
	check_flag("-r", "1,5", DOCA_ERROR_INVALID_VALUE, "");
	check_flag("-r", "nan", DOCA_ERROR_INVALID_VALUE, "");
	check_flag("-r", "1e999", DOCA_ERROR_INVALID_VALUE, "");
	return 0;
}

static int devices_are_opened(const void *argument)
{
	(void)argument;
	check_flag("-a", "pci/0000:03:00.1", DOCA_SUCCESS, "0000:03:00.1 none");
	check_flag("-a", "03:00.0,dv_flow_en=2,x", DOCA_SUCCESS, "0000:03:00.0 dv_flow_en=2,x");
	check_flag("-a", "pci/0000:04:00.0", DOCA_ERROR_NOT_FOUND, "");
	check_flag("-a", "", DOCA_ERROR_NOT_FOUND, "");
	return 0;
}

/* A device whose representor is not found is closed. */
static int representors_are_opened(const void *argument)
{
	(void)argument;
	CHECK(setenv("DMA_COPY_SOFT_FUNCTIONS", "vf,sf", 1) == 0);
	check_flag("-p", "pci/0000:03:00.0,pf0vf0", DOCA_SUCCESS, "0000:03:00.0 none");
	check_flag("-p", "pci/0000:03:00.0,pf0sf4,a=1", DOCA_SUCCESS, "0000:03:00.0 a=1");
	check_flag("-p", "pci/0000:03:00.0,pf0sf5", DOCA_ERROR_NOT_FOUND, "");
	check_flag("-p", "pci/0000:03:00.0", DOCA_ERROR_NOT_FOUND, "");
	check_flag("-p", "pci/0000:03:00.0,", DOCA_ERROR_NOT_FOUND, "");
	return 0;
}

static int the_program_may_open_devices(const void *argument)
{
	char *argv[] = {(char *)"types", (char *)"-a", (char *)"pci/03:00.0", NULL};
	(void)argument;
	open_parser();
	EXPECT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_dev_open_callback(NULL, NULL));
	EXPECT(DOCA_SUCCESS, doca_argp_register_dev_open_callback(open_counted, &opened));
	EXPECT(DOCA_SUCCESS, doca_argp_start(3, argv));
	CHECK(opened == 1 && strcmp(record, "0000:03:00.0 none") == 0);
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_register_dev_open_callback(open_counted, NULL));
	EXPECT(DOCA_SUCCESS, doca_argp_destroy());
	return 0;
}

/* Unknown keys and groups are ignored; wrong values are not. */
static void check_json(const char *text, bool lenient, doca_error_t result, const char *noted)
{
	char path[] = "/tmp/argp_types_XXXXXX";
	char *argv[] = {(char *)"types", (char *)"-j", path, NULL};
	int fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
	open_parser();
	if (lenient)
		EXPECT(DOCA_SUCCESS, doca_argp_disable_pedantic_config_parsing());
	EXPECT(result, doca_argp_start(3, argv));
	EXPECT(DOCA_ERROR_BAD_STATE, doca_argp_disable_pedantic_config_parsing());
	CHECK(strcmp(record, noted) == 0);
	EXPECT(DOCA_SUCCESS, doca_argp_destroy());
	CHECK(unlink(path) == 0);
}

static int files_have_them_too(const void *argument)
{
	static const char *const unknown = "{\"mine\": 1, \"doca_program_flags\": {\"other\": 1, \"ratio\": 3}}";
	(void)argument;
	check_json("{\"doca_program_flags\": {\"ratio\": 0.5, \"device\": \"pci/03:00.1,a\"}}", false, DOCA_SUCCESS,
		   "0000:03:00.1 a");
	CHECK(ratio > 0.4 && ratio < 0.6);
	check_json("{\"doca_program_flags\": {\"ratio\": \"1\"}}", true, DOCA_ERROR_INVALID_VALUE, "");
	check_json("{\"doca_program_flags\": {\"device\": 1}}", true, DOCA_ERROR_INVALID_VALUE, "");
	check_json(unknown, false, DOCA_ERROR_NOT_SUPPORTED, "");
	check_json(unknown, true, DOCA_SUCCESS, "");
	CHECK(ratio > 2.9 && ratio < 3.1);
	return 0;
}

static const struct capture_case cases[] = {
	{"numbers have a fraction", numbers_have_a_fraction},
	{"devices are opened", devices_are_opened},
	{"representors are opened", representors_are_opened},
	{"the program may open devices", the_program_may_open_devices},
	{"files have them too", files_have_them_too},
};

int main(void)
{
	return report("argp types", COUNT(cases), check_cases(cases, COUNT(cases)));
}
