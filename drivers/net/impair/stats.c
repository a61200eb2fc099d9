/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters as ethdev presents them: the reasons of impair.h, for each direction. */
#include <ctype.h>
#include <stdio.h>

#include "pmd_priv.h"

#define PER_DIRECTION (impair_reason_count - 1) /* without "none" */

static const struct impair_queue *
queue_of(const struct impair *im, bool tx, unsigned i)
{
	return tx ? im->tx[i] : im->rx[i];
}

uint64_t
impair_sum(const struct impair *im, bool tx, enum impair_reason reason)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < IMPAIR_MAX_QUEUES; i++)
		if (queue_of(im, tx, i) != NULL)
			sum += queue_of(im, tx, i)->lane.counters[reason];
	return sum;
}

static uint64_t
sum_bytes(const struct impair *im, bool tx)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < IMPAIR_MAX_QUEUES; i++)
		if (queue_of(im, tx, i) != NULL)
			sum += queue_of(im, tx, i)->lane.bytes;
	return sum;
}

int
impair_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	const struct impair *im = dev->data->dev_private;

	stats->ipackets = impair_sum(im, false, IMPAIR_PASSED);
	stats->opackets = impair_sum(im, true, IMPAIR_PASSED);
	stats->ibytes = sum_bytes(im, false);
	stats->obytes = sum_bytes(im, true);
	stats->imissed = impair_sum(im, false, IMPAIR_QUEUE_FULL);
	stats->ierrors = impair_sum(im, false, IMPAIR_CKSUM_BAD);
	stats->oerrors = impair_sum(im, true, IMPAIR_OFFLOAD_ERROR);
	stats->rx_nombuf = impair_sum(im, false, IMPAIR_NO_MBUF);
	return 0;
}

static void
reset(struct impair_queue *q)
{
	if (q == NULL)
		return;
	rte_spinlock_lock(&q->lane.lock);
	memset(q->lane.counters, 0, sizeof(q->lane.counters));
	q->lane.bytes = 0;
	rte_spinlock_unlock(&q->lane.lock);
}

int
impair_stats_reset(struct rte_eth_dev *dev)
{
	struct impair *im = dev->data->dev_private;

	for (unsigned i = 0; i < IMPAIR_MAX_QUEUES; i++) {
		reset(im->rx[i]);
		reset(im->tx[i]);
	}
	return 0;
}

int
impair_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xstats, unsigned n)
{
	const struct impair *im = dev->data->dev_private;

	if (n < 2 * PER_DIRECTION || xstats == NULL)
		return 2 * PER_DIRECTION;
	for (unsigned i = 0; i < 2 * PER_DIRECTION; i++) {
		xstats[i].id = i;
		xstats[i].value = impair_sum(
			im, i < PER_DIRECTION, (enum impair_reason)(i % PER_DIRECTION + 1));
	}
	return 2 * PER_DIRECTION;
}

/* Derives the names from the reasons: IMPAIR_QUEUE_FULL becomes tx_queue_full. */
int
impair_xstats_get_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned n)
{
	if (n < 2 * PER_DIRECTION || names == NULL)
		return 2 * PER_DIRECTION;
	for (unsigned i = 0; i < 2 * PER_DIRECTION; i++) {
		const char *name = impair_reasons.reasons[i % PER_DIRECTION + 1].name;

		snprintf(names[i].name, sizeof(names[i].name), "%s_%s",
			i < PER_DIRECTION ? "tx" : "rx", name + strlen("IMPAIR_"));
		for (char *c = names[i].name; *c != '\0'; c++)
			*c = (char)tolower((unsigned char)*c);
	}
	return 2 * PER_DIRECTION;
}
