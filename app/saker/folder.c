/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of the default sockets, /run/saker, which a start of the machine empties. */
#include <string.h>
#include <sys/stat.h>

#include "../../lib/shm/shm_sock.h"
#include "saker.h"

void
folder_make(const char *path)
{
	char folder[sizeof(SHM_SOCKET_DEFAULT)] = SHM_SOCKET_DEFAULT;
	size_t n = (size_t)(strrchr(folder, '/') - folder);

	folder[n] = '\0';
	if (strncmp(path, folder, n) != 0 || path[n] != '/')
		return;
	/* The sockets' own modes control the access; umask could keep all clients out. */
	if (mkdir(folder, 0755) == 0)
		chmod(folder, 0755);
}
