/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange on libsaker: `saker_peer SOCKET listen ANY PORT` or `saker_peer SOCKET connect ADDR
 * PORT`, followed by any of `quick`, `rev1` or `rev2` (the first MPA revision to try), `nocrc`,
 * `markers`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange_saker.h"

int
main(int argc, char **argv)
{
	static struct ex_saker b;
	bool quick = false, connects;
	int rc;

	if (argc < 5) {
		fprintf(stderr, "usage: saker_peer SOCKET listen|connect ADDR PORT [quick] "
				"[rev1|rev2] [nocrc] [markers]\n");
		return 2;
	}
	connects = strcmp(argv[2], "connect") == 0;
	rc = peer_open(&b.p, argv[1], "saker_peer", EX_BUF_LEN);
	for (int i = 5; i < argc && rc == 0; i++) {
		quick = quick || strcmp(argv[i], "quick") == 0;
		if (strncmp(argv[i], "rev", 3) == 0)
			b.p.param.revision = (uint8_t)atoi(argv[i] + 3);
		if (strcmp(argv[i], "nocrc") == 0)
			b.p.param.crc = 0;
		if (strcmp(argv[i], "markers") == 0)
			b.p.param.markers = 1;
	}
	if (rc == 0) {
		exchange_saker_init(&b);
		rc = exchange_saker(&b, connects ? argv[3] : NULL, (uint16_t)atoi(argv[4]), quick);
	}
	peer_close(&b.p);
	printf("%s\n", rc == 0 ? "PASS" : "FAIL");
	return rc != 0;
}
