/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's side of the control socket. */
#include "server.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/sock.h"

#define ANSWER_STEP 65536 /* bytes by which the memory of an answer grows at least */

/* A server that refuses a long line may close the connection before it has read all of it. */
static int
client_send(int fd, const char *mode, const char *line)
{
	size_t len = strlen(mode) + strlen(line) + 2, sent = 0;
	char *request = malloc(len + 1);
	ssize_t n = 0;

	if (request == NULL)
		return -ENOMEM;
	snprintf(request, len + 1, "%s %s\n", mode, line);
	while (sent < len && n >= 0) {
		n = send(fd, request + sent, len - sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			n = 0;
		sent += n > 0 ? (size_t)n : 0;
	}
	free(request);
	return n >= 0 || errno == EPIPE ? 0 : -errno;
}

/* Reads until the server closes the connection. */
static int
client_read(int fd, struct cmd_answer *a)
{
	size_t room = 0;
	ssize_t n = 1;
	char *more;

	while (n > 0 || (n < 0 && errno == EINTR)) {
		if (room - a->bytes < ANSWER_STEP) {
			room = 2 * room + 2 * ANSWER_STEP;
			more = realloc(a->text, room);
			if (more == NULL)
				return -ENOMEM;
			a->text = more;
		}
		n = read(fd, a->text + a->bytes, room - a->bytes - 1);
		a->bytes += n > 0 ? (size_t)n : 0;
		a->text[a->bytes] = '\0';
	}
	return n < 0 && a->bytes == 0 ? -errno : 0;
}

/* Takes the header off the answer. */
static int
client_unpack(struct cmd_answer *a)
{
	char *end = a->text;
	unsigned long long bytes;
	unsigned long status;
	size_t header;

	if (!isdigit((unsigned char)*end))
		return -EPROTO;
	status = strtoul(end, &end, 10);
	if (*end++ != ' ' || !isdigit((unsigned char)*end))
		return -EPROTO;
	bytes = strtoull(end, &end, 10);
	if (*end++ != '\n')
		return -EPROTO;
	header = (size_t)(end - a->text);
	if (status > 1 || bytes != a->bytes - header)
		return -EPROTO;
	a->status = (int)status;
	a->bytes -= header;
	memmove(a->text, end, a->bytes + 1);
	return 0;
}

int
cmd_ask(const char *path, const char *mode, const char *line, struct cmd_answer *a)
{
	int fd = sk_sock_connect(path, SOCK_STREAM, 0), rc;

	*a = (struct cmd_answer){0};
	if (fd < 0)
		return fd;
	rc = client_send(fd, mode, line);
	if (rc == 0)
		rc = client_read(fd, a);
	close(fd);
	if (rc == 0)
		rc = client_unpack(a);
	if (rc < 0) {
		free(a->text);
		a->text = NULL;
	}
	return rc;
}
