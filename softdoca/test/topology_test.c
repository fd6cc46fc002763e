/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual function and a scalable function in addition to the physical ones. */
#define _GNU_SOURCE
#include <string.h>

#include "setup.h"

static doca_error_t configure(const char *functions)
{
	struct soft_settings settings = {.dir = setup_dir(), .limits = "", .functions = functions};
	return soft_configure_all(&settings, NULL, 0);
}

/* Returns the kinds of the devices as letters, in the order of the list. */
static const char *kinds(void)
{
	static char text[16];
	struct doca_devinfo **list;
	uint32_t count;
	CHECK_OK(soft_doca_devinfo_create_list(&list, &count));
	for (uint32_t i = 0; i < count; i++) {
		enum doca_pci_func_type kind;
		CHECK_OK(soft_doca_devinfo_get_pci_func_type(list[i], &kind));
		text[i] = "PVS"[kind];
	}
	text[count] = '\0';
	CHECK_OK(soft_doca_devinfo_destroy_list(list));
	return text;
}

static struct doca_devinfo *find(enum doca_pci_func_type wanted)
{
	struct doca_devinfo **list, *found = NULL;
	uint32_t count;
	CHECK_OK(soft_doca_devinfo_create_list(&list, &count));
	for (uint32_t i = 0; i < count && found == NULL; i++) {
		enum doca_pci_func_type kind;
		CHECK_OK(soft_doca_devinfo_get_pci_func_type(list[i], &kind));
		found = kind == wanted ? list[i] : NULL;
	}
	CHECK_OK(soft_doca_devinfo_destroy_list(list));
	CHECK(found != NULL);
	return found;
}

/* Programs may have the addresses of their author's machine in their source. */
static void test_places(void)
{
	static const char *const refused[] = {"host=", "host=81:0", "dpu=81:00.0", "host=8g:00", "card=81:00"};
	char addr[DOCA_DEVINFO_PCI_ADDR_SIZE];
	uint8_t equal;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, configure(refused[i]));
	CHECK_OK(configure("host=81:00,vf,dpu=0001:E1:1f"));
	CHECK_OK(soft_doca_devinfo_get_pci_addr_str(find(DOCA_PCI_FUNC_TYPE_VF), addr));
	CHECK(strcmp(addr, "0000:81:00.2") == 0);
	struct doca_dev *dev = setup_open_dev("0001:e1:1f.1");
	struct doca_devinfo_rep **reps;
	uint32_t count;
	CHECK_OK(soft_doca_devinfo_rep_create_list(dev, DOCA_DEVINFO_REP_FILTER_NET, &reps, &count));
	CHECK_OK(soft_doca_devinfo_rep_is_equal_pci_addr(reps[0], "81:00.0", &equal));
	CHECK(equal == 1);
	CHECK_OK(soft_doca_devinfo_rep_destroy_list(reps));
	CHECK(strcmp(soft_comch_key("0000:81:00.0"), "0000:b1:00.0") ==
	      0); /* the same for a peer without the setting */
	CHECK_OK(soft_doca_dev_close(dev));
	CHECK_OK(configure(""));
	CHECK(strcmp(soft_comch_key("0000:b1:00.0"), "0000:b1:00.0") == 0);
}

static void test_settings(void)
{
	static const struct {
		const char *functions, *kinds; /* kinds NULL: refused */
	} cases[] = {
		{"", "PPPP"},           {"vf", "PPVPP"}, {"sf", "PPSPP"},   {"vf,sf", "PPVSPP"},
		{"sf,vf,sf", "PPVSPP"}, {"pf", NULL},    {"vf,", NULL},     {",sf", NULL},
		{"VF", NULL},           {"vf sf", NULL}, {"all,,vf", NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		doca_error_t result = configure(cases[i].functions);
		CHECK_RESULT(cases[i].kinds == NULL ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS, result);
		if (cases[i].kinds != NULL)
			CHECK(strcmp(kinds(), cases[i].kinds) == 0);
		else
			CHECK(strstr(soft_last_detail(), "vf") != NULL);
	}
	char many[1000];
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, configure(many));
	CHECK(strstr(soft_last_detail(), "it can be vf or sf") != NULL);
}

static void test_environment(void)
{
	CHECK(setenv("DMA_COPY_SOFT_FUNCTIONS", "sf", 1) == 0);
	setup_configure(NULL);
	CHECK(strcmp(kinds(), "PPSPP") == 0);
	CHECK(unsetenv("DMA_COPY_SOFT_FUNCTIONS") == 0);
	setup_configure(NULL);
	CHECK(strcmp(kinds(), "PPPP") == 0);
}

static void test_kinds(void)
{
	CHECK_OK(configure("vf,sf"));
	struct doca_devinfo *pf = find(DOCA_PCI_FUNC_TYPE_PF), *vf = find(DOCA_PCI_FUNC_TYPE_VF),
			    *sf = find(DOCA_PCI_FUNC_TYPE_SF);
	char addr[DOCA_DEVINFO_PCI_ADDR_SIZE];
	enum doca_pci_func_type kind;
	uint32_t index = 77;
	uint8_t equal;
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_devinfo_get_sf_index(pf, &index));
	CHECK_RESULT(DOCA_ERROR_NOT_SUPPORTED, soft_doca_devinfo_get_sf_index(vf, &index));
	CHECK(index == 77);
	CHECK_OK(soft_doca_devinfo_get_sf_index(sf, &index));
	CHECK(index == 4);
	CHECK_OK(soft_doca_devinfo_get_pci_addr_str(vf, addr));
	CHECK(strcmp(addr, "0000:b1:00.2") == 0);
	/* Its parent's. */
	CHECK_OK(soft_doca_devinfo_is_equal_pci_addr(sf, HOST_PCI, &equal));
	CHECK(equal == 1);
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_get_sf_index(sf, NULL));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_get_sf_index(NULL, &index));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_get_pci_func_type(NULL, &kind));
	CHECK_RESULT(DOCA_ERROR_INVALID_VALUE, soft_doca_devinfo_get_pci_func_type(sf, NULL));
}

static void test_representors(void)
{
	static const char *const vuids[] = {"SOFT00000000MLNXS0D0F0", "SOFT00000000MLNXS0D0F1",
					    "SOFT00000000MLNXS0D0F0VF1", "SOFT00000000CMLNXS0D0F0SF32768"};
	static const char *const names[] = {"pf0hpf", "pf1hpf", "pf0vf0", "en3f0c1pf0sf4"};
	CHECK_OK(configure("vf,sf"));
	struct doca_dev *dpu = setup_open_dev(DPU_PCI);
	struct doca_devinfo_rep **list;
	uint32_t count;
	CHECK_OK(soft_doca_devinfo_rep_create_list(dpu, DOCA_DEVINFO_REP_FILTER_ALL, &list, &count));
	CHECK(count == 4);
	for (uint32_t i = 0; i < count; i++) {
		enum doca_pci_func_type kind;
		char name[DOCA_DEVINFO_IFACE_NAME_SIZE];
		CHECK_OK(soft_doca_devinfo_rep_get_pci_func_type(list[i], &kind));
		CHECK("PPVS"[i] == "PVS"[kind]);
		CHECK_OK(soft_doca_devinfo_rep_get_iface_name(list[i], name, sizeof(name)));
		CHECK(strcmp(name, names[i]) == 0);
		CHECK_OK(soft_doca_devinfo_rep_get_vuid(list[i], name, sizeof(name)));
		CHECK(strcmp(name, vuids[i]) == 0);
	}
	CHECK_OK(soft_doca_devinfo_rep_destroy_list(list));
	CHECK_OK(soft_doca_dev_close(dpu));
}

/* ---- Comch ---- */

static unsigned connected[2];

static void on_connect(struct doca_comch_event_connection_status_changed *event,
		       struct doca_comch_connection *connection, uint8_t success)
{
	(void)event;
	(void)success;
	struct doca_ctx *ctx = soft_doca_comch_server_as_ctx(soft_doca_comch_server_get_server_ctx(connection));
	union doca_data which;
	CHECK_OK(soft_doca_ctx_get_user_data(ctx, &which));
	connected[which.u64]++;
}

static void on_disconnect(struct doca_comch_event_connection_status_changed *event,
			  struct doca_comch_connection *connection, uint8_t success)
{
	(void)event;
	(void)connection;
	(void)success;
}

static void on_message(struct doca_comch_event_msg_recv *event, uint8_t *bytes, uint32_t len,
		       struct doca_comch_connection *connection)
{
	(void)event;
	(void)bytes;
	(void)len;
	(void)connection;
}

static void on_sent(struct doca_comch_task_send *task, union doca_data task_data, union doca_data ctx_data)
{
	(void)task_data;
	(void)ctx_data;
	soft_doca_task_free(soft_doca_comch_task_send_as_task(task));
}

static struct doca_comch_server *serve(struct doca_pe *pe, struct doca_dev *dpu, struct doca_dev_rep *rep,
				       uint64_t which)
{
	struct doca_comch_server *server;
	CHECK_OK(soft_doca_comch_server_create(dpu, rep, "topology", &server));
	CHECK_OK(soft_doca_comch_server_task_send_set_conf(server, on_sent, on_sent, 1));
	CHECK_OK(soft_doca_comch_server_event_msg_recv_register(server, on_message));
	CHECK_OK(soft_doca_comch_server_event_connection_status_changed_register(server, on_connect, on_disconnect));
	struct doca_ctx *ctx = soft_doca_comch_server_as_ctx(server);
	CHECK_OK(soft_doca_ctx_set_user_data(ctx, (union doca_data){.u64 = which}));
	CHECK_OK(soft_doca_pe_connect_ctx(pe, ctx));
	CHECK_OK(soft_doca_ctx_start(ctx));
	return server;
}

static enum doca_ctx_states state_of(struct doca_ctx *ctx)
{
	enum doca_ctx_states state;
	CHECK_OK(soft_doca_ctx_get_state(ctx, &state));
	return state;
}

static void stop(struct doca_pe *pe, struct doca_ctx *ctx)
{
	soft_doca_ctx_stop(ctx);
	while (state_of(ctx) != DOCA_CTX_STATE_IDLE)
		soft_doca_pe_progress(pe);
}

/* A scalable function and its parent have one PCI address, and still each has its own server of the same name. */
static void test_clients_meet_their_own_server(void)
{
	CHECK_OK(configure("vf,sf"));
	struct doca_dev *dpu = setup_open_dev(DPU_PCI), *sf;
	struct doca_devinfo_rep **list;
	struct doca_dev_rep *reps[2];
	uint32_t count;
	CHECK_OK(soft_doca_devinfo_rep_create_list(dpu, DOCA_DEVINFO_REP_FILTER_NET, &list, &count));
	CHECK_OK(soft_doca_dev_rep_open(list[0], &reps[0]));
	CHECK_OK(soft_doca_dev_rep_open(list[3], &reps[1]));
	CHECK_OK(soft_doca_devinfo_rep_destroy_list(list));
	struct doca_pe *pe;
	CHECK_OK(soft_doca_pe_create(&pe));
	struct doca_comch_server *servers[2];
	for (unsigned i = 0; i < 2; i++)
		servers[i] = serve(pe, dpu, reps[i], i);

	struct doca_comch_client *client;
	CHECK_OK(soft_doca_dev_open(find(DOCA_PCI_FUNC_TYPE_SF), &sf));
	CHECK_OK(soft_doca_comch_client_create(sf, "topology", &client));
	CHECK_OK(soft_doca_comch_client_task_send_set_conf(client, on_sent, on_sent, 1));
	CHECK_OK(soft_doca_comch_client_event_msg_recv_register(client, on_message));
	struct doca_ctx *ctx = soft_doca_comch_client_as_ctx(client);
	CHECK_OK(soft_doca_pe_connect_ctx(pe, ctx));
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(ctx));
	while (state_of(ctx) == DOCA_CTX_STATE_STARTING)
		soft_doca_pe_progress(pe);
	CHECK(state_of(ctx) == DOCA_CTX_STATE_RUNNING && connected[0] == 0 && connected[1] == 1);

	stop(pe, ctx);
	CHECK_OK(soft_doca_comch_client_destroy(client));
	for (unsigned i = 0; i < 2; i++) {
		stop(pe, soft_doca_comch_server_as_ctx(servers[i]));
		CHECK_OK(soft_doca_comch_server_destroy(servers[i]));
		CHECK_OK(soft_doca_dev_rep_close(reps[i]));
	}
	CHECK_OK(soft_doca_pe_destroy(pe));
	CHECK_OK(soft_doca_dev_close(sf));
	CHECK_OK(soft_doca_dev_close(dpu));
}

int main(void)
{
	setup_configure(NULL);
	RUN(test_settings);
	RUN(test_places);
	RUN(test_environment);
	RUN(test_kinds);
	RUN(test_representors);
	RUN(test_clients_meet_their_own_server);
	return 0;
}
