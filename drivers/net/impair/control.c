/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of impair.h for a running vdev: change and read its configuration and its state. */
#include <errno.h>

#include "pmd_priv.h"

static struct impair *ports[RTE_MAX_ETHPORTS];

void
impair_register(struct impair *im, bool present)
{
	ports[im->port] = present ? im : NULL;
}

/* Returns the vdev with this port number, or NULL. */
static struct impair *
impair_of_port(uint16_t port_id)
{
	return port_id < RTE_MAX_ETHPORTS ? ports[port_id] : NULL;
}

/* Gives the present configuration to all queues and restarts their generators. */
void
impair_apply(struct impair *im)
{
	for (unsigned i = 0; i < IMPAIR_MAX_QUEUES; i++) {
		if (im->tx[i] != NULL)
			impair_lane_set(&im->tx[i]->lane, &im->args.cfg, true, i);
		if (im->rx[i] != NULL)
			impair_lane_set(&im->rx[i]->lane, &im->args.cfg, false, i);
	}
}

int
impair_set(uint16_t port_id, const struct impair_cfg *cfg)
{
	struct impair *im = impair_of_port(port_id);

	if (im == NULL)
		return -ENODEV;
	if (!impair_cfg_is_valid(cfg))
		return -EINVAL;
	im->args.cfg = *cfg;
	impair_apply(im);
	return 0;
}

int
impair_get(uint16_t port_id, struct impair_cfg *cfg)
{
	const struct impair *im = impair_of_port(port_id);

	if (im == NULL)
		return -ENODEV;
	*cfg = im->args.cfg;
	return 0;
}

int
impair_flush(uint16_t port_id)
{
	struct impair *im = impair_of_port(port_id);

	if (im == NULL)
		return -ENODEV;
	for (unsigned i = 0; i < IMPAIR_MAX_QUEUES; i++) {
		if (im->tx[i] != NULL)
			impair_lane_flush(&im->tx[i]->lane);
		if (im->rx[i] != NULL)
			impair_lane_flush(&im->rx[i]->lane);
	}
	return 0;
}

uint64_t
impair_count(uint16_t port_id, bool tx, enum impair_reason reason)
{
	const struct impair *im = impair_of_port(port_id);

	return im != NULL ? impair_sum(im, tx, reason) : 0;
}

static uint32_t
held(const struct impair_queue *q)
{
	return q != NULL ? q->lane.count + q->lane.naside + q->lane.nready : 0;
}

uint32_t
impair_held(uint16_t port_id)
{
	const struct impair *im = impair_of_port(port_id);
	uint32_t sum = 0;

	for (unsigned i = 0; im != NULL && i < IMPAIR_MAX_QUEUES; i++)
		sum += held(im->tx[i]) + held(im->rx[i]);
	return sum;
}
