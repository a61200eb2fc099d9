/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the Unix socket: whatever the input is, an accepted message must be a HELLO with a
 * printable name or a REGION with one descriptor. */
#include <ctype.h>

#include "../../lib/engine/control/attach/socket.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shm_sock_msg m;
	const char *why = NULL;
	bool attached;
	unsigned nfds;
	uint8_t *copy;

	if (size < 1)
		return 0;
	attached = data[0] & 1;
	nfds = data[0] >> 1 & 3;
	copy = exact_copy(data + 1, size - 1);
	if (ctl_socket_parse(copy, size - 1, nfds, attached, &m, &why) < 0) {
		CLAIM(why != NULL && strlen(why) > 10 && strlen(why) < sizeof(m.text));
	} else if (m.op == SHM_HELLO) {
		CLAIM(!attached && nfds == 0);
		CLAIM(memchr(m.text, 0, SHM_NAME_MAX) != NULL);
		for (const char *p = m.text; *p; p++)
			CLAIM(isgraph((unsigned char)*p));
	} else {
		CLAIM(m.op == SHM_REGION && attached && nfds == 1 && m.size > 0);
	}
	free(copy);
	return 0;
}
