/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether net_memif as client has a connection to its server. The driver reports a link only when
 * the two have agreed on their memory, and nothing before. The connection is a socket of this
 * process, whose peer has the name of the port's argument "socket".
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "device_priv.h"

#define MEMIF_SOCKET "/run/memif.sock" /* the driver's default */

/* Copies the name of the server's socket from the arguments of a port. */
static void
peer_name(const char *args, char *name, size_t len)
{
	static const char key[] = "socket=";
	const char *at = args;

	/* The key of another argument may end with these letters. */
	while ((at = strstr(at, key)) != NULL && at != args && at[-1] != ',')
		at++;
	snprintf(name, len, "%s", at != NULL ? at + sizeof(key) - 1 : MEMIF_SOCKET);
	name[strcspn(name, ",")] = '\0';
}

static bool
is_connected_to(int fd, const char *name)
{
	/* The name is that of a file, or an abstract one: a zero byte stands before it. */
	struct sockaddr_un un = {0};
	socklen_t len = sizeof(un);

	if (getpeername(fd, (struct sockaddr *)&un, &len) != 0 || un.sun_family != AF_UNIX)
		return false;
	return strncmp(un.sun_path + (un.sun_path[0] == '\0'), name, sizeof(un.sun_path) - 1) == 0;
}

bool
eng_device_peer_open(const char *args)
{
	char name[sizeof(((struct sockaddr_un *)0)->sun_path)];
	DIR *d = opendir("/proc/self/fd");
	struct dirent *entry;
	bool open = false;

	if (d == NULL)
		return false;
	peer_name(args, name, sizeof(name));
	while (!open && (entry = readdir(d)) != NULL)
		open = entry->d_name[0] != '.' && is_connected_to(atoi(entry->d_name), name);
	closedir(d);
	return open;
}
