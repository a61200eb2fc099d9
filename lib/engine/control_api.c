/* SPDX-License-Identifier: BSD-3-Clause */
/* The public functions that pass their arguments to the control stage of the instance. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/instance.h"
#include "control/control.h"

int
eng_attach_flat(struct eng *e, const char *name, void *base, size_t size, size_t mem_len)
{
	return eng_attach_woken(e, name, base, size, mem_len, -1);
}

int
eng_attach_woken(
	struct eng *e, const char *name, void *base, size_t size, size_t mem_len, int wake_fd)
{
	__atomic_store_n(&e->flat, true, __ATOMIC_RELAXED);
	return eng_control_attach_flat(e->control, name, base, size, mem_len, wake_fd);
}

int
eng_detach(struct eng *e, int client)
{
	return eng_control_detach(e->control, client);
}

bool
eng_client_gone(struct eng *e, int client)
{
	return eng_control_client_gone(e->control, client);
}

int
eng_qps(struct eng *e, struct eng_qp_view *out, int max)
{
	return eng_control_qps(e->control, out, max);
}

int
eng_clients(struct eng *e, struct eng_client_view *out, int max)
{
	return eng_control_clients(e->control, out, max);
}

int
eng_neighbors(struct eng *e, unsigned transport, struct net_neighbor_view *out, int max)
{
	return eng_control_neighbors(e->control, transport, out, max);
}

int
eng_events(struct eng *e, uint32_t qpn, struct eng_flight *out)
{
	return eng_control_events(e->control, qpn, out);
}

int
eng_failed(struct eng *e, unsigned transport, struct eng_flight *out, int max)
{
	return eng_control_failed(e->control, transport, out, max);
}

int
eng_change(struct eng *e, const struct eng_config *next, struct eng_changed *out, char *err,
	size_t errlen)
{
	struct eng_config *merged = malloc(sizeof(*merged));
	int rc;

	if (merged == NULL) {
		snprintf(err, errlen, "memory is exhausted");
		return -ENOMEM;
	}
	/* Members that do not change have the values of the instance. */
	*merged = *next;
	memcpy(merged->ports, e->cfg.ports, sizeof(merged->ports));
	merged->nports = e->cfg.nports;
	rc = eng_config_check(merged, err, errlen);
	if (rc == 0)
		rc = eng_control_change(e->control, merged, out, err, errlen);
	free(merged);
	return rc;
}

int
eng_socket_start(struct eng *e, const char *path, char *err, size_t errlen)
{
	return eng_control_socket_start(e->control, path, err, errlen);
}

void
eng_socket_stop(struct eng *e)
{
	eng_control_socket_stop(e->control);
}
