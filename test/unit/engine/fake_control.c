/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces the control stage: the test sends and receives its messages, over the same rings. */
#include <stdlib.h>
#include <string.h>

#include "fake_control.h"

static uint64_t counters[eng_reason_count];

struct eng_control *
eng_control_create(const struct eng_control_args *args, char *err, size_t errlen)
{
	struct eng_control *c = calloc(1, sizeof(*c));

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
	return false;
}

uint64_t
eng_control_deadline(const struct eng_control *c)
{
	return UINT64_MAX;
}

const uint64_t *
eng_control_counters(const struct eng_control *c)
{
	return counters;
}

void
eng_control_totals(const struct eng_control *c, struct eng_totals *out)
{
}

int
eng_control_attach_flat(struct eng_control *c, const char *name, void *base, size_t size,
	size_t mem_len, int wake_fd)
{
	return -1;
}

int
eng_control_detach(struct eng_control *c, int client)
{
	return -1;
}

bool
eng_control_client_gone(struct eng_control *c, int client)
{
	return true;
}

int
eng_control_clients(struct eng_control *c, struct eng_client_view *out, int max)
{
	return 0;
}

int
eng_control_socket_start(struct eng_control *c, const char *path, char *err, size_t errlen)
{
	return -1;
}

void
eng_control_socket_stop(struct eng_control *c)
{
}

size_t
eng_control_qp_size(void)
{
	return 0;
}

int
eng_control_qps(struct eng_control *c, struct eng_qp_view *out, int max)
{
	return 0;
}

int
eng_control_neighbors(
	struct eng_control *c, unsigned transport, struct net_neighbor_view *out, int max)
{
	return 0;
}

int
eng_control_change(struct eng_control *c, const struct eng_config *next, struct eng_changed *out,
	char *err, size_t errlen)
{
	return -1;
}

int
eng_control_events(struct eng_control *c, uint32_t qpn, struct eng_flight *out)
{
	return 0;
}

int
eng_control_failed(struct eng_control *c, unsigned transport, struct eng_flight *out, int max)
{
	return 0;
}
