/* SPDX-License-Identifier: BSD-3-Clause */
/* The check of the messages of the Unix socket and their descriptors. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "socket.h"

int
ctl_socket_parse(const void *buf, size_t len, unsigned nfds, bool attached,
	struct shm_sock_msg *out, const char **why)
{
	*why = "the message does not belong to this protocol";
	if (len != sizeof(*out))
		return -EPROTO;
	memcpy(out, buf, sizeof(*out));
	if (out->magic != SHM_MAGIC)
		return -EPROTO;
	*why = "the client speaks another version of the protocol";
	if (out->version != SHM_VERSION)
		return -EPROTONOSUPPORT;
	if (out->op == SHM_HELLO) {
		*why = attached ? "a client says HELLO once" : "a HELLO brings no descriptor";
		if (attached || nfds != 0)
			return -EINVAL;
		out->text[SHM_NAME_MAX - 1] = '\0';
		for (char *p = out->text; *p; p++)
			if (!isgraph((unsigned char)*p))
				*p = '_';
		return 0;
	}
	*why = "a client says HELLO, and then REGION";
	if (out->op != SHM_REGION || !attached)
		return -EINVAL;
	*why = "a REGION brings one descriptor and a size";
	return nfds == 1 && out->size != 0 ? 0 : -EINVAL;
}
