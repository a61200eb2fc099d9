/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that name and connect sockets. They decide which sockets are Saker's. */
#include <netinet/in.h>
#include <string.h>

#include "../../../lib/base/addr.h"
#include "sockets_priv.h"

/* ---- Which sockets are Saker's ---- */

static bool
address_of(const struct sockaddr *addr, socklen_t len, struct sk_addr *a)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (addr == NULL || len < sizeof(addr->sa_family))
		return false;
	if (addr->sa_family == AF_INET && len >= sizeof(in)) {
		memcpy(&in, addr, sizeof(in));
		*a = sk_addr_v4((const uint8_t *)&in.sin_addr);
		return true;
	}
	if (addr->sa_family == AF_INET6 && len >= sizeof(in6)) {
		memcpy(&in6, addr, sizeof(in6));
		memcpy(a->b, &in6.sin6_addr, sizeof(a->b));
		return true;
	}
	return false;
}

static int
so_option(int fd, int name)
{
	int v = -1;
	socklen_t len = sizeof(v);

	return vb_so_genuine()->getsockopt(fd, SOL_SOCKET, name, &v, &len) == 0 ? v : -1;
}

/* Returns whether the descriptor is a TCP socket of the kernel without an address. */
static bool
is_fresh_tcp(int fd)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);
	int domain = so_option(fd, SO_DOMAIN);

	if ((domain != AF_INET && domain != AF_INET6) || so_option(fd, SO_TYPE) != SOCK_STREAM ||
		so_option(fd, SO_PROTOCOL) != IPPROTO_TCP)
		return false;
	if (vb_so_genuine()->getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return false;
	return ((struct sockaddr_in *)&ss)->sin_port == 0;
}

static bool
is_of_saker(const struct sk_addr *a)
{
	const struct saker_device *d = vb_saker_device();

	for (unsigned i = 0; d != NULL && i < d->naddrs && i < 8; i++)
		if (sk_addr_eq(a, &d->addrs[i]))
			return true;
	return false;
}

/* Returns whether the library serves the socket from now on: 1 or 0, or -1 with errno. `local`: the
 * address is one to bind to. */
static int
so_claim(int fd, const struct sockaddr *addr, socklen_t len, bool local)
{
	int saved = errno, err;
	struct sk_addr a;

	if (vb_rs_known(fd))
		return 1;
	if (!address_of(addr, len, &a) || sk_is_loopback(&a) || !is_fresh_tcp(fd) ||
		(local && !sk_addr_is_any(&a) && !is_of_saker(&a))) {
		errno = saved;
		return 0;
	}
	err = vb_rs_convert(fd);
	errno = err != 0 ? err : saved;
	return err != 0 ? -1 : 1;
}

/* ---- The calls ---- */

VB_EXPORT int
bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	int ours = so_claim(fd, addr, len, true);

	if (ours <= 0)
		return ours < 0 ? -1 : vb_so_genuine()->bind(fd, addr, len);
	return rbind(fd, addr, len);
}

VB_EXPORT int
connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	int ours = so_claim(fd, addr, len, false);

	if (ours <= 0)
		return ours < 0 ? -1 : vb_so_genuine()->connect(fd, addr, len);
	return rconnect(fd, addr, len);
}

VB_EXPORT __attribute__((alias("connect"))) int __connect(
	int fd, const struct sockaddr *addr, socklen_t len);

VB_EXPORT int
listen(int fd, int backlog)
{
	struct sockaddr_storage any = {.ss_family = AF_INET6};
	int ours = so_claim(fd, (struct sockaddr *)&any, sizeof(any), true);

	if (ours <= 0)
		return ours < 0 ? -1 : vb_so_genuine()->listen(fd, backlog);
	return rlisten(fd, backlog);
}

VB_EXPORT int
accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return vb_rs_known(fd) ? vb_rs_accept(fd, addr, len, 0)
			       : vb_so_genuine()->accept(fd, addr, len);
}

VB_EXPORT int
accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	return vb_rs_known(fd) ? vb_rs_accept(fd, addr, len, flags)
			       : vb_so_genuine()->accept4(fd, addr, len, flags);
}

VB_EXPORT int
shutdown(int fd, int how)
{
	return vb_rs_known(fd) ? rshutdown(fd, how) : vb_so_genuine()->shutdown(fd, how);
}

VB_EXPORT int
getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return vb_rs_known(fd) ? rgetpeername(fd, addr, len)
			       : vb_so_genuine()->getpeername(fd, addr, len);
}

VB_EXPORT int
getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return vb_rs_known(fd) ? rgetsockname(fd, addr, len)
			       : vb_so_genuine()->getsockname(fd, addr, len);
}

/* A stream of Saker has no urgent data. */
VB_EXPORT int
sockatmark(int fd)
{
	return vb_rs_known(fd) ? 0 : vb_so_genuine()->sockatmark(fd);
}

VB_EXPORT int
setsockopt(int fd, int level, int name, const void *val, socklen_t len)
{
	return vb_rs_known(fd) ? rsetsockopt(fd, level, name, val, len)
			       : vb_so_genuine()->setsockopt(fd, level, name, val, len);
}

VB_EXPORT int
getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	return vb_rs_known(fd) ? rgetsockopt(fd, level, name, val, len)
			       : vb_so_genuine()->getsockopt(fd, level, name, val, len);
}
