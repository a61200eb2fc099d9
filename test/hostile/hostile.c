/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile ATTACK WHERE [NUMBER [ADDR PORT]]: one hostile client. WHERE is the path of saker's
 * socket, or "bar:PATH:SLOT" for a program of a virtual machine. ADDR is an address of saker's.
 *
 * hostile share WHERE-A ADDR-A QPS-A WHERE-B ADDR-B QPS-B PORT MS: two clients within their rights.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"

static void
on_term(int sig)
{
	hostile_stop = sig != 0;
}

int
main(int argc, char **argv)
{
	const struct sigaction sa = {.sa_handler = on_term};
	static struct hostile h;
	int rc = -ENOENT;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	if (argc == 10 && strcmp(argv[1], "share") == 0)
		return share_main(argc, argv);
	if (argc >= 3) {
		h.where = argv[2];
		h.number = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 0;
		h.addr = argc > 4 ? argv[4] : NULL;
		h.port = (uint16_t)(argc > 5 ? atoi(argv[5]) : 7900);
		h.user = geteuid();
		rc = hostile_run(&h, argv[1]);
	}
	if (rc == -ENOENT) {
		fprintf(stderr,
			"usage: hostile ATTACK WHERE [NUMBER [ADDR PORT]]\n"
			"       hostile share WHERE-A ADDR-A QPS-A WHERE-B ADDR-B QPS-B PORT MS\n"
			"attacks:");
		hostile_names();
		return 2;
	}
	printf("%s: %llu done, %llu refused, status %d\n", argv[1], (unsigned long long)h.done,
		(unsigned long long)h.refused, rc);
	return rc != 0;
}
