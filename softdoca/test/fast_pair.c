/* SPDX-License-Identifier: Apache-2.0 */
#include "fast_pair.h"

struct pair pair;

void settle_pair(void)
{
	settle_fast(&pair.client, &pair.server, &pair.consumer, &pair.producer);
}

void pair_open(void)
{
	open_both(&pair.client, &pair.server);
	consumer_open(&pair.consumer, &pair.client);
	producer_open(&pair.producer, &pair.server);
	CHECK_RESULT(DOCA_ERROR_IN_PROGRESS, soft_doca_ctx_start(pair.consumer.ctx));
	CHECK_OK(soft_doca_ctx_start(pair.producer.ctx));
	settle_pair();
	CHECK(fast_state(&pair.consumer) == DOCA_CTX_STATE_RUNNING && pair.server.new_consumers == 1);
}

void pair_close(void)
{
	fast_close(&pair.consumer);
	fast_close(&pair.producer);
	close_both(&pair.client, &pair.server);
}
