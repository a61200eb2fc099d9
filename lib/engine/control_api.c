/* SPDX-License-Identifier: BSD-3-Clause */
/* The public functions of an instance that are its control stage's business. */
#include "control_priv.h"
#include "sigbus_priv.h"
#include "socket_priv.h"

int
eng_attach_flat(struct eng *e, const char *name, void *base, size_t size, size_t mem_len)
{
	return eng_control_attach_flat(eng_control_of(e), name, base, size, mem_len);
}

int
eng_detach(struct eng *e, int client)
{
	return eng_control_detach(eng_control_of(e), client);
}

bool
eng_client_gone(struct eng *e, int client)
{
	return eng_control_client_gone(eng_control_of(e), client);
}

int
eng_guard(void *base, size_t len, bool *flag)
{
	int rc = sigbus_install();

	return rc < 0 ? rc : sigbus_guard(base, len, flag);
}

void
eng_unguard(int guard)
{
	sigbus_unguard(guard);
}

int
eng_qps(struct eng *e, struct eng_qp_view *out, int max)
{
	return eng_control_qps(eng_control_of(e), out, max);
}

int
eng_neighbors(struct eng *e, unsigned transport, struct net_neighbor_view *out, int max)
{
	return eng_control_neighbors(eng_control_of(e), transport, out, max);
}

int
eng_socket_start(struct eng *e, const char *path, char *err, size_t errlen)
{
	return socket_start(eng_control_of(e), path, err, errlen);
}

void
eng_socket_stop(struct eng *e)
{
	socket_stop(eng_control_of(e));
}
