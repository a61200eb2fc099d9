/* SPDX-License-Identifier: BSD-3-Clause */
/* Options. The kernel's socket that the library keeps checks and stores all of those that have no
 * meaning here, so that a program finds what it has set. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "rs_priv.h"

static uint32_t
clamp(long v, long least, long most)
{
	return (uint32_t)(v < least ? least : v > most ? most : v);
}

static int
int_of(const void *val, socklen_t len, int *out)
{
	if (val == NULL || len < sizeof(*out))
		return EINVAL;
	memcpy(out, val, sizeof(*out));
	return 0;
}

static int
set_rdma(struct vb_rs *rs, int name, int v)
{
	if (name == RDMA_INLINE || name == RDMA_ROUTE)
		return 0; /* the device decides */
	if ((rs->state & (RS_NEW | RS_BOUND | RS_LISTENING)) == 0)
		return EISCONN;
	if (name == RDMA_SQSIZE)
		rs->slots_tx = clamp(v, RS_SLOTS_MIN, RS_SLOTS_MAX);
	else if (name == RDMA_RQSIZE)
		rs->slots_rx = clamp(v, RS_SLOTS_MIN, RS_SLOTS_MAX);
	else if (name == RDMA_IOMAPSIZE)
		rs->maps_max = clamp(v, 0, RS_IOMAPS);
	else
		return ENOPROTOOPT;
	return 0;
}

/* Applies an option that has a meaning here. */
static void
option_apply(struct vb_rs *rs, int level, int name, int v)
{
	if (level == SOL_SOCKET && name == SO_SNDBUF && (rs->state & (RS_NEW | RS_BOUND)) != 0)
		rs->slots_tx = clamp((v + RS_SLOT - 1L) / RS_SLOT, RS_SLOTS_MIN, RS_SLOTS_MAX);
	if (level == SOL_SOCKET && name == SO_RCVBUF && (rs->state & (RS_NEW | RS_BOUND)) != 0)
		rs->slots_rx = clamp((v + RS_SLOT - 1L) / RS_SLOT, RS_SLOTS_MIN, RS_SLOTS_MAX);
	if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY && rs->state == RS_NEW)
		rs->v6only = v != 0;
}

VB_EXPORT int
rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct vb_rs *rs = vb_rs_get(socket);
	int err, v = 0, isint;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	isint = int_of(optval, optlen, &v);
	if (level == SOL_RDMA)
		err = isint != 0 ? isint : set_rdma(rs, optname, v);
	else if (vb_rs_shadow(rs) < 0)
		err = errno;
	else
		err = setsockopt(rs->shadow, level, optname, optval, optlen) < 0 ? errno : 0;
	if (err == 0 && isint == 0)
		option_apply(rs, level, optname, v);
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_end(err);
}

/* Returns whether the library itself holds the value, in *v. */
static bool
option_own(struct vb_rs *rs, int level, int name, int *v)
{
	if (level == SOL_SOCKET && name == SO_ERROR) {
		*v = vb_rs_error_take(rs);
	} else if (level == SOL_SOCKET && name == SO_ACCEPTCONN) {
		*v = rs->state == RS_LISTENING;
	} else if (level == IPPROTO_TCP && name == TCP_MAXSEG) {
		*v = RS_SLOT - (int)sizeof(struct rs_hdr);
	} else if (level == SOL_RDMA && name == RDMA_SQSIZE) {
		*v = (int)rs->slots_tx;
	} else if (level == SOL_RDMA && name == RDMA_RQSIZE) {
		*v = (int)rs->slots_rx;
	} else if (level == SOL_RDMA && name == RDMA_IOMAPSIZE) {
		*v = (int)rs->maps_max;
	} else if (level == SOL_RDMA && name == RDMA_INLINE) {
		*v = 0;
	} else {
		return false;
	}
	return true;
}

VB_EXPORT int
rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct vb_rs *rs = vb_rs_get(socket);
	int err = 0, v;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	if (optval == NULL || optlen == NULL) {
		err = EFAULT;
	} else if (option_own(rs, level, optname, &v)) {
		if (*optlen > sizeof(v))
			*optlen = sizeof(v);
		memcpy(optval, &v, *optlen);
	} else if (level == SOL_RDMA) {
		err = ENOPROTOOPT;
	} else if (vb_rs_shadow(rs) < 0 ||
		   getsockopt(rs->shadow, level, optname, optval, optlen) < 0) {
		err = errno;
	}
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_end(err);
}
