/* SPDX-License-Identifier: BSD-3-Clause */
/* In the place of the control stage: the test speaks for it, over the same rings. */
#include <stdlib.h>
#include <string.h>

#include "fake_control.h"

static uint64_t counters[eng_reason_count];

struct eng_control *
eng_control_create(const struct eng_control_args *args, char *err, size_t errlen)
{
	struct eng_control *c = calloc(1, sizeof(*c));

	(void)err;
	(void)errlen;
	if (c != NULL)
		c->args = *args;
	return c;
}

void
eng_control_destroy(struct eng_control *c)
{
	free(c);
}

bool
eng_control_poll(struct eng_control *c, uint64_t now)
{
	(void)c;
	(void)now;
	return false;
}

uint64_t
eng_control_deadline(const struct eng_control *c)
{
	(void)c;
	return UINT64_MAX;
}

const uint64_t *
eng_control_counters(const struct eng_control *c)
{
	(void)c;
	return counters;
}

void
eng_control_totals(const struct eng_control *c, struct eng_totals *out)
{
	(void)c;
	(void)out;
}

int
eng_control_attach_flat(
	struct eng_control *c, const char *name, void *base, size_t size, size_t mem_len)
{
	(void)c;
	(void)name;
	(void)base;
	(void)size;
	(void)mem_len;
	return -1;
}

int
eng_control_detach(struct eng_control *c, int client)
{
	(void)c;
	(void)client;
	return -1;
}

bool
eng_control_client_gone(struct eng_control *c, int client)
{
	(void)c;
	(void)client;
	return true;
}

int
eng_control_qps(struct eng_control *c, struct eng_qp_view *out, int max)
{
	(void)c;
	(void)out;
	(void)max;
	return 0;
}

int
eng_control_neighbors(
	struct eng_control *c, unsigned transport, struct net_neighbor_view *out, int max)
{
	(void)c;
	(void)transport;
	(void)out;
	(void)max;
	return 0;
}
