/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * To be preloaded into perftest's clients. Over rdma_cm its two sides meet twice, and the server
 * asks for the second connection before it listens for it: a client that is the faster machine is
 * refused. This one takes its time from the second on.
 */
#include <dlfcn.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define PATIENCE_US 500000

int
rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout_ms)
{
	static int (*next)(struct rdma_cm_id *, struct sockaddr *, struct sockaddr *, int);

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "rdma_resolve_addr");
	else
		usleep(PATIENCE_US);
	return next(id, from, to, timeout_ms);
}
