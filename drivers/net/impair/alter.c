/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Corruption and ECN marks. One kind of corruption changes one 16-bit word, which the Internet
 * checksum always detects. The other kind changes two words so that their sum stays the same, which
 * only a CRC detects. ECN marks do no damage, but are set here, too.
 */
#include "impair_priv.h"

#include <errno.h>
#include <netinet/in.h>

#define CE 3 /* RFC 3168 5 */

static int
own(struct rte_mbuf **m, struct rte_mempool *pool)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(*m, pool, 0, UINT32_MAX);

	if (copy == NULL)
		return -ENOMEM;
	/* The lower port's checksum flags describe the bytes before the change. */
	copy->ol_flags &= ~(RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK);
	rte_pktmbuf_free(*m);
	*m = copy;
	return 1;
}

static uint16_t
get_word(struct rte_mbuf *m, uint32_t at)
{
	return (uint16_t)(*impair_frame_byte(m, at) << 8 | *impair_frame_byte(m, at + 1));
}

static void
alter_set_word(struct rte_mbuf *m, uint32_t at, uint16_t w)
{
	*impair_frame_byte(m, at) = (uint8_t)(w >> 8);
	*impair_frame_byte(m, at + 1) = (uint8_t)w;
}

/* Returns the ones' complement sum of two words (RFC 1071). */
static uint16_t
add_word(uint16_t a, uint16_t b)
{
	uint32_t sum = (uint32_t)a + b;

	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

int
impair_alter_word(struct rte_mbuf **m, struct rte_mempool *pool, uint64_t random)
{
	uint16_t flip = (uint16_t)(random >> 48), w;
	struct frame f;
	uint32_t l4, words, at;
	int rc;

	if (!impair_frame_find(*m, &f))
		return 0;
	l4 = f.l2_len + f.l3_len;
	/* A UDP datagram without a checksum is left alone, because nothing would detect the
	 * change. */
	if (f.proto == IPPROTO_UDP && get_word(*m, l4 + 6) == 0)
		return 0;
	words = (f.end - l4) / 2;
	at = l4 + 2 * ((uint32_t)random % words);
	rc = own(m, pool);
	if (rc < 0)
		return rc;
	w = get_word(*m, at);
	/* All ones and all zeros are the same number to the checksum. A UDP checksum must not
	 * become 0 either, because 0 means that the datagram has none. */
	if (flip == 0 || (flip == 0xffff && (w == 0 || w == 0xffff)) ||
		(f.proto == IPPROTO_UDP && at == l4 + 6 && flip == w))
		flip = w == 1 ? 2 : 1;
	alter_set_word(*m, at, w ^ flip);
	return 1;
}

int
impair_alter_neutral(struct rte_mbuf **m, struct rte_mempool *pool, uint64_t random)
{
	uint16_t d = (uint16_t)(random >> 48);
	uint32_t start, words, i, j;
	struct frame f;
	int rc;

	if (!impair_frame_find(*m, &f) || f.proto != IPPROTO_TCP)
		return 0;
	start = (uint32_t)f.l2_len + f.l3_len + f.l4_len;
	words = (f.end - start) / 2;
	if (words < 2)
		return 0;
	if (d == 0 || d == 0xffff)
		d = 1;
	i = (uint32_t)(random & 0xffffff) % words;
	j = (i + 1 + (uint32_t)(random >> 24 & 0xffffff) % (words - 1)) % words;
	rc = own(m, pool);
	if (rc < 0)
		return rc;
	alter_set_word(*m, start + 2 * i, add_word(get_word(*m, start + 2 * i), d));
	alter_set_word(*m, start + 2 * j, add_word(get_word(*m, start + 2 * j), (uint16_t)~d));
	return 1;
}

int
impair_alter_ecn(struct rte_mbuf **m, struct rte_mempool *pool)
{
	struct frame f;
	uint16_t before, sum;
	uint8_t shift, ecn;
	uint32_t at;
	int rc;

	if (!impair_frame_find(*m, &f))
		return 0;
	at = f.l2_len;
	shift = f.v6 ? 4 : 0;
	before = get_word(*m, at);
	ecn = (uint8_t)(before >> shift & CE);
	if (ecn == 0 || ecn == CE)
		return 0;
	rc = own(m, pool);
	if (rc < 0)
		return rc;
	alter_set_word(*m, at, (uint16_t)(before | CE << shift));
	if (!f.v6) {
		/* RFC 1624, equation 3 */
		sum = (uint16_t)~get_word(*m, at + 10);
		sum = add_word(sum, (uint16_t)~before);
		sum = add_word(sum, (uint16_t)(before | CE));
		alter_set_word(*m, at + 10, (uint16_t)~sum);
	}
	return 1;
}
