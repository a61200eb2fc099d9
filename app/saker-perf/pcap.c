/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures the frames of one port, in both directions, in the classic pcap format with ns.
 * Callbacks of the port get each burst on the lcore that polls the port. Only this lcore writes, so
 * there is no lock.
 */
#include <rte_ethdev.h>
#include <time.h>

#include "perf.h"

static FILE *file;

static void
record(const struct rte_mbuf *m)
{
	struct timespec t;
	uint32_t head[4];

	clock_gettime(CLOCK_REALTIME, &t);
	head[0] = (uint32_t)t.tv_sec;
	head[1] = (uint32_t)t.tv_nsec;
	head[2] = head[3] = m->pkt_len;
	fwrite(head, sizeof(head), 1, file);
	for (; m != NULL; m = m->next)
		fwrite(rte_pktmbuf_mtod(m, void *), m->data_len, 1, file);
}

static uint16_t
on_rx(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n, uint16_t max, void *arg)
{
	for (uint16_t i = 0; i < n; i++)
		record(m[i]);
	return n;
}

static uint16_t
on_tx(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n, void *arg)
{
	for (uint16_t i = 0; i < n; i++)
		record(m[i]);
	return n;
}

int
perf_pcap_open(uint16_t port, const char *path)
{
	/* magic (nanoseconds), version 2.4, zone, accuracy, snap length, Ethernet */
	static const uint32_t head[6] = {0xa1b23c4d, 0x00040002, 0, 0, 262144, 1};

	file = fopen(path, "wb");
	if (file == NULL) {
		perror(path);
		return -1;
	}
	fwrite(head, sizeof(head), 1, file);
	if (rte_eth_add_rx_callback(port, 0, on_rx, NULL) == NULL ||
		rte_eth_add_tx_callback(port, 0, on_tx, NULL) == NULL) {
		fprintf(stderr, "saker-perf: port %u does not support capture callbacks\n", port);
		return -1;
	}
	return 0;
}

void
perf_pcap_close(void)
{
	if (file != NULL)
		fclose(file);
	file = NULL;
}
