/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_getaddrinfo(3): converts the result of getaddrinfo(3) into rdma_cm's structure. The fields
 * for routes and connection data stay empty, because neither device uses them.
 */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "cm_priv.h"

#define HINT_FLAGS (RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY)

static void *
addrinfo_copy(const void *from, size_t len)
{
	void *p = malloc(len);

	if (p != NULL)
		memcpy(p, from, len);
	return p;
}

static int
set_dst(struct rdma_addrinfo *rai, const struct sockaddr *sa, socklen_t len, const char *name)
{
	rai->ai_dst_addr = addrinfo_copy(sa, len);
	if (rai->ai_dst_addr == NULL)
		return EAI_MEMORY;
	rai->ai_dst_len = len;
	if (name != NULL && (rai->ai_dst_canonname = strdup(name)) == NULL)
		return EAI_MEMORY;
	return 0;
}

static int
set_src(struct rdma_addrinfo *rai, const struct sockaddr *sa, socklen_t len, const char *name)
{
	rai->ai_src_addr = addrinfo_copy(sa, len);
	if (rai->ai_src_addr == NULL)
		return EAI_MEMORY;
	rai->ai_src_len = len;
	if (name != NULL && (rai->ai_src_canonname = strdup(name)) == NULL)
		return EAI_MEMORY;
	return 0;
}

/* Sets the port space and the type of QP. Each follows from the other if the program gives one; the
 * default is TCP and RC. Returns 0, or EAI_SOCKTYPE if the two do not match. */
static int
settle_type(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints)
{
	int ps = hints != NULL ? hints->ai_port_space : 0;
	int type = hints != NULL ? hints->ai_qp_type : 0;

	if (ps == 0)
		ps = type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (type == 0)
		type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
	if (ps != RDMA_PS_IB && (ps == RDMA_PS_UDP) != (type == IBV_QPT_UD))
		return EAI_SOCKTYPE;
	rai->ai_port_space = ps;
	rai->ai_qp_type = type;
	return 0;
}

static void
lookup_hints(const struct rdma_addrinfo *hints, struct addrinfo *out)
{
	memset(out, 0, sizeof(*out));
	out->ai_socktype = SOCK_STREAM;
	if (hints == NULL)
		return;
	if ((hints->ai_flags & RAI_PASSIVE) != 0)
		out->ai_flags |= AI_PASSIVE;
	if ((hints->ai_flags & RAI_NUMERICHOST) != 0)
		out->ai_flags |= AI_NUMERICHOST;
	if ((hints->ai_flags & RAI_FAMILY) != 0)
		out->ai_family = hints->ai_family;
}

static int
from_names(struct rdma_addrinfo *rai, const char *node, const char *service,
	const struct rdma_addrinfo *hints)
{
	struct addrinfo want, *ai;
	int rc;

	lookup_hints(hints, &want);
	rc = getaddrinfo(node, service, &want, &ai);
	if (rc != 0)
		return rc;
	rai->ai_family = ai->ai_family;
	if ((rai->ai_flags & RAI_PASSIVE) != 0)
		rc = set_src(rai, ai->ai_addr, ai->ai_addrlen, ai->ai_canonname);
	else
		rc = set_dst(rai, ai->ai_addr, ai->ai_addrlen, ai->ai_canonname);
	freeaddrinfo(ai);
	return rc;
}

/* Adds the addresses in the hints. Returns 0 or EAI_MEMORY. */
static int
from_hints(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints)
{
	int rc = 0;

	if (rai->ai_src_addr == NULL && hints->ai_src_addr != NULL && hints->ai_src_len > 0)
		rc = set_src(rai, hints->ai_src_addr, hints->ai_src_len, NULL);
	if (rc == 0 && rai->ai_dst_addr == NULL && hints->ai_dst_addr != NULL &&
		hints->ai_dst_len > 0 && (rai->ai_flags & RAI_PASSIVE) == 0)
		rc = set_dst(rai, hints->ai_dst_addr, hints->ai_dst_len, NULL);
	if (rai->ai_family == 0 && rai->ai_dst_addr != NULL)
		rai->ai_family = rai->ai_dst_addr->sa_family;
	if (rai->ai_family == 0 && rai->ai_src_addr != NULL)
		rai->ai_family = rai->ai_src_addr->sa_family;
	return rc;
}

static int
addrinfo_fill(struct rdma_addrinfo *rai, const char *node, const char *service,
	const struct rdma_addrinfo *hints)
{
	int rc = 0;

	rai->ai_flags = hints != NULL ? hints->ai_flags : 0;
	if ((rai->ai_flags & ~HINT_FLAGS) != 0)
		return EAI_BADFLAGS;
	rc = settle_type(rai, hints);
	if (rc == 0 && (node != NULL || service != NULL))
		rc = from_names(rai, node, service, hints);
	if (rc == 0 && hints != NULL)
		rc = from_hints(rai, hints);
	return rc;
}

VB_EXPORT int
rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
	struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *rai;
	int rc;

	if (node == NULL && service == NULL && hints == NULL)
		return vb_cm_end(EINVAL);
	rai = calloc(1, sizeof(*rai));
	if (rai == NULL)
		return EAI_MEMORY;
	rc = addrinfo_fill(rai, node, service, hints);
	if (rc != 0) {
		rdma_freeaddrinfo(rai);
		return rc;
	}
	*res = rai;
	return 0;
}

VB_EXPORT void
rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res != NULL) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}
