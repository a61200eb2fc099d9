/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One page over HTTP/1.1, for a reader of metrics on this machine: GET /metrics, one request for
 * each connection, without a body. The bounds are those of the control socket (server.h): 16
 * connections, 10 seconds each, and requests of at most 4 KiB. Functions of server.h poll and close
 * the server.
 */
#ifndef SAKER_COMMAND_HTTP_H
#define SAKER_COMMAND_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CMD_HTTP_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct cmd_server;

/* Writes the page. */
typedef void cmd_http_page(void *arg, FILE *to);

/* Checks a place to listen: the path of a Unix socket (/...), or a loopback address with its port
 * (127.0.0.1:9115, [::1]:9115). Returns 0, or -EINVAL with the end of a sentence in `why` that
 * begins with the place. */
int cmd_http_check(const char *place, char *why, size_t len);
/* Listens there. `group` and `mode` are as for sk_listen(). Returns NULL, with one sentence in
 * `err`, when this fails. */
struct cmd_server *cmd_http_open(const char *place, const char *group, uint32_t mode,
	cmd_http_page *page, void *arg, char *err, size_t errlen);

#endif
