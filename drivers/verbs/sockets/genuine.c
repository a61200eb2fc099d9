/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the functions of the C library that this library replaces. */
#include <dlfcn.h>
#include <string.h>

#include "sockets_priv.h"

static struct so_genuine genuine;
static bool found;

#define FIND(name)                                                                                 \
	{                                                                                          \
#name, offsetof(struct so_genuine, name)                                           \
	}

static const struct {
	const char *name;
	size_t at;
} names[] = {FIND(bind), FIND(listen), FIND(connect), FIND(accept), FIND(accept4), FIND(shutdown),
	FIND(getpeername), FIND(getsockname), FIND(setsockopt), FIND(getsockopt), FIND(sockatmark),
	FIND(recv), FIND(recvfrom), FIND(recvmsg), FIND(send), FIND(sendto), FIND(sendmsg),
	FIND(read), FIND(readv), FIND(write), FIND(writev), FIND(preadv2), FIND(pwritev2),
	FIND(recvmmsg), FIND(sendmmsg), FIND(sendfile), FIND(splice), FIND(vdprintf),
	FIND(__vdprintf_chk), FIND(close), FIND(close_range), FIND(closefrom), FIND(dup),
	FIND(dup2), FIND(dup3), FIND(fcntl), FIND(ioctl), FIND(fdopen)};

/* Other libraries may call before the constructors of this one have run. Two threads that get here
 * write the same values. */
__attribute__((constructor)) static void
genuine_find(void)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *f = dlsym(RTLD_NEXT, names[i].name);

		memcpy((uint8_t *)&genuine + names[i].at, &f, sizeof(f));
	}
	__atomic_store_n(&found, true, __ATOMIC_RELEASE);
}

const struct so_genuine *
vb_so_genuine(void)
{
	if (!__atomic_load_n(&found, __ATOMIC_ACQUIRE))
		genuine_find();
	return &genuine;
}
