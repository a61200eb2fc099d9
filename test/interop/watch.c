/* SPDX-License-Identifier: BSD-3-Clause */
/* See watch.h. Callbacks run on the thread that sends. Counters are atomic and the file is locked
 * for each frame, since two engines may send at the same time. */
#include <errno.h>
#include <stdbool.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "../../lib/wire/wire.h"
#include "watch.h"

static void
record(FILE *f, const struct rte_mbuf *m)
{
	struct timespec t;
	uint32_t head[4];

	clock_gettime(CLOCK_REALTIME, &t);
	head[0] = (uint32_t)t.tv_sec;
	head[1] = (uint32_t)t.tv_nsec;
	head[2] = head[3] = m->pkt_len;
	flockfile(f);
	fwrite(head, sizeof(head), 1, f);
	for (; m != NULL; m = m->next)
		fwrite(rte_pktmbuf_mtod(m, void *), m->data_len, 1, f);
	funlockfile(f);
}

/* Returns whether an FPDU's ULPDU is a Terminate (RFC 5040 4.8: untagged, queue 2, first and only
 * message). */
static bool
is_terminate(const uint8_t *p, uint32_t len, struct wire_terminate *t)
{
	struct wire_ddp d;
	int head = wire_ddp_parse(&d, p, len);

	return head > 0 && !d.tagged && d.last && d.dv == 1 && d.rv == 1 &&
	       d.opcode == RDMAP_TERMINATE && d.qn == 2 && d.msn == 1 && d.mo == 0 &&
	       wire_terminate_parse(t, p + head, len - (uint32_t)head) > 0;
}

/* Walks over the FPDUs of a segment. A segment begins with an FPDU, unless one had to be cut; in
 * that case the walk ends soon. */
static void
walk(struct watch *w, const uint8_t *p, uint32_t len)
{
	while (len > MPA_LEN_FIELD) {
		uint32_t ulpdu = wire_mpa_len_parse(p);
		uint32_t fpdu = (MPA_LEN_FIELD + ulpdu + 3) / 4 * 4 + MPA_CRC_LEN;
		struct wire_terminate t;

		if (fpdu > len)
			return;
		if (is_terminate(p + MPA_LEN_FIELD, ulpdu, &t)) {
			bool as_expected =
				t.layer == w->layer && t.etype == w->etype && t.code == w->code;

			__atomic_fetch_add(
				as_expected ? &w->as_expected : &w->others, 1, __ATOMIC_RELAXED);
		}
		p += fpdu;
		len -= fpdu;
	}
}

static uint16_t
on_send(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n, void *arg)
{
	struct watch *w = arg;

	for (uint16_t i = 0; i < n; i++) {
		static __thread uint8_t flat[65536];
		const uint8_t *p = rte_pktmbuf_read(m[i], 0, m[i]->pkt_len, flat);
		struct wire_pkt pkt;

		if (w->pcap != NULL)
			record(w->pcap, m[i]);
		if (p != NULL && wire_pkt_parse(&pkt, p, m[i]->pkt_len, m[i]->pkt_len) == 0 &&
			(pkt.eth.type == ETH_IPV4 || pkt.eth.type == ETH_IPV6) &&
			pkt.ip.proto == IP_TCP)
			walk(w, p + pkt.payload, pkt.payload_len);
	}
	return n;
}

int
watch_port(struct watch *w, uint16_t port)
{
	return rte_eth_add_tx_callback(port, 0, on_send, w) != NULL ? 0 : -1;
}

int
watch_pcap(struct watch *w, const char *path)
{
	/* magic (nanoseconds), version 2.4, zone, accuracy, snap length, Ethernet. */
	static const uint32_t head[6] = {0xa1b23c4d, 0x00040002, 0, 0, 262144, 1};

	w->pcap = fopen(path, "wb");
	if (w->pcap == NULL)
		return -errno;
	return fwrite(head, sizeof(head), 1, w->pcap) == 1 ? 0 : -EIO;
}
