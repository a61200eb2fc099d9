/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be preloaded into perftest's clients. Over rdma_cm, perftest's two sides connect
 * twice, and the server requests the second connection before it listens for it: a client that is
 * faster by half a second is refused and exits. This library delays each connection from the second
 * on: by half a second, or by $LATE_MS.
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
