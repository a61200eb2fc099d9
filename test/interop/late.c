/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * To be preloaded into perftest's clients. Over rdma_cm its two sides meet twice, and the server
 * asks for the second connection before it listens for it: a client that is faster is refused (and
 * dies of it). This one takes its time from the second on: half a second, or $LATE_MS.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

int
rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout_ms)
{
	static int (*next)(struct rdma_cm_id *, struct sockaddr *, struct sockaddr *, int);
	const char *patience = getenv("LATE_MS");

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "rdma_resolve_addr");
	else
		usleep((patience != NULL ? (unsigned)atoi(patience) : 500) * 1000);
	return next(id, from, to, timeout_ms);
}
