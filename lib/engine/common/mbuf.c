/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of mbufs, mbufs as records, slices and Falcon payloads, and checksums over chains of
 * mbufs. */
#include "mbuf.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "../../base/mem.h"
#include "../../wire/wire.h"
#include "turns.h"

#define CACHE_MAX        64u
#define BULK             32 /* mbufs that return to their pool together */
#define FPDU_TAGGED_HEAD 16 /* bytes: MPA length and DDP tagged header (RFC 5044, RFC 5041) */

/*
 * Pools of all instances that could not be freed yet: another instance may hold a frame that came
 * over a ring port long after the sending instance was destroyed.
 */
static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiting {
	struct waiting *next;
	struct rte_mempool *mp;
} * waiting;

/* Creates a pool. `ops` is the handler, or NULL for DPDK's own. */
static struct rte_mempool *
pool_create(const char *kind, unsigned instance, unsigned index, uint32_t count, uint32_t cache,
	uint32_t room, int socket, const char *ops)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	if (room > UINT16_MAX - RTE_PKTMBUF_HEADROOM)
		return NULL;
	snprintf(name, sizeof(name), "sk%u_%s%u", instance, kind, index);
	return rte_pktmbuf_pool_create_by_ops(name, count, cache, sizeof(union eng_mbuf_priv),
		(uint16_t)(room + RTE_PKTMBUF_HEADROOM), socket, ops);
}

struct rte_mempool *
eng_pool_create(const char *kind, unsigned instance, unsigned index, uint32_t count, uint32_t room,
	int socket)
{
	uint32_t cache = SK_MIN(count / 8, CACHE_MAX);
	struct rte_mempool *mp;

	/*
	 * "stack" is last in, first out: an mbuf that another lcore freed is allocated again while
	 * it is still in a processor cache. A ring would cycle through the whole pool, and each
	 * frame would begin with cache misses.
	 */
	mp = pool_create(kind, instance, index, count, cache, room, socket, "stack");
	if (mp == NULL && rte_errno == EINVAL) /* DPDK was built without "stack" */
		mp = pool_create(kind, instance, index, count, cache, room, socket, NULL);
	return mp;
}

struct rte_mempool *
eng_turns_create(const char *kind, unsigned instance, unsigned index, uint32_t count, uint32_t room,
	int socket)
{
	return pool_create(kind, instance, index, count, 0, room, socket, eng_turns_ops());
}

static unsigned
reap_waiting(void)
{
	struct waiting **link = &waiting, *w;
	unsigned left = 0;

	while ((w = *link) != NULL) {
		if (rte_mempool_full(w->mp)) {
			*link = w->next;
			rte_mempool_free(w->mp);
			free(w);
		} else {
			link = &w->next;
			left++;
		}
	}
	return left;
}

void
eng_pool_free(struct rte_mempool *mp)
{
	struct waiting *w;

	if (mp == NULL)
		return;
	pthread_mutex_lock(&waiting_lock);
	w = malloc(sizeof(*w));
	if (w != NULL) {
		*w = (struct waiting){waiting, mp};
		waiting = w;
	}
	reap_waiting();
	pthread_mutex_unlock(&waiting_lock);
}

unsigned
eng_pools_waiting(void)
{
	unsigned left;

	pthread_mutex_lock(&waiting_lock);
	left = reap_waiting();
	pthread_mutex_unlock(&waiting_lock);
	return left;
}

static struct tcp_rec *
mbuf_rec(struct rte_mbuf *m)
{
	struct tcp_rec *rec = &((union eng_mbuf_priv *)rte_mbuf_to_priv(m))->rec;

	*eng_rec_returned(rec) = NULL;
	rec->next = NULL;
	rec->data = rte_pktmbuf_mtod(m, uint8_t *);
	rec->len = 0;
	rec->sum = 0;
	rec->owner = m;
	return rec;
}

struct tcp_rec *
eng_rec_alloc(struct rte_mempool *mp)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(mp);

	if (m == NULL)
		return NULL;
	/* The payload of a tagged FPDU then begins at a cache line. */
	m->data_off = RTE_PKTMBUF_HEADROOM - FPDU_TAGGED_HEAD;
	return mbuf_rec(m);
}

static inline void
count_returned(struct eng_returned *to)
{
	if (to != NULL)
		__atomic_store_n(&to->n, to->n + 1, __ATOMIC_RELAXED);
}

void
eng_rec_free(struct tcp_rec *chain)
{
	while (chain != NULL) {
		struct rte_mbuf *m = chain->owner;

		count_returned(*eng_rec_returned(chain));
		chain = chain->next;
		rte_pktmbuf_free_seg(m);
	}
}

struct tcp_rec *
eng_rec_split(struct rte_mempool *mp, struct tcp_rec *rec, uint32_t at)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(mp);
	struct tcp_rec *rest;

	if (m == NULL)
		return NULL;
	rte_pktmbuf_attach(m, rec->owner);
	rest = mbuf_rec(m);
	rest->data = rec->data + at;
	rest->len = rec->len - at;
	rec->len = at;
	rec->sum = 0;
	return rest;
}

/* Makes the slice of `len` bytes at offset `off` of an mbuf. */
static inline struct tcp_slice *
slice_of(struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	struct tcp_slice *s = &((union eng_mbuf_priv *)rte_mbuf_to_priv(m))->slice;

	s->next = NULL;
	s->data = rte_pktmbuf_mtod_offset(m, const uint8_t *, off);
	s->len = len;
	s->owner = m;
	s->crc_len = 0;
	return s;
}

struct tcp_slice *
eng_slices(struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	struct tcp_slice *first = NULL, **link = &first;
	/* m->next is on a second cache line, which this function reads for chained mbufs only. */
	bool chained = m->nb_segs > 1;

	if (!chained && len > 0 && off < m->data_len)
		return slice_of(m, off, RTE_MIN(m->data_len - off, len));
	while (m != NULL) {
		struct rte_mbuf *next = NULL;
		uint32_t here = m->data_len;

		if (chained) {
			next = m->next;
			m->next = NULL;
			m->nb_segs = 1;
		}
		if (off >= here || len == 0) {
			off -= RTE_MIN(off, here);
			rte_pktmbuf_free_seg(m);
		} else {
			struct tcp_slice *s = slice_of(m, off, RTE_MIN(here - off, len));

			len -= s->len;
			off = 0;
			*link = s;
			link = &s->next;
		}
		m = next;
	}
	return first;
}

void
eng_slice_free(struct tcp_slice *chain)
{
	while (chain != NULL) {
		struct rte_mbuf *m = chain->owner;

		chain = chain->next;
		rte_pktmbuf_free_seg(m);
	}
}

struct fa_buf *
eng_fbuf_alloc(struct rte_mempool *mp)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(mp);

	return m == NULL ? NULL : eng_fbuf_of(m, 0, 0);
}

void
eng_fbuf_free(struct fa_buf *buf)
{
	count_returned(*eng_fbuf_returned(buf));
	rte_pktmbuf_free_seg(buf->owner);
}

void
eng_fbufs_free(struct fa_buf *chain)
{
	struct rte_mbuf *m[BULK];
	unsigned n = 0;

	if (chain->next == NULL) {
		eng_fbuf_free(chain);
		return;
	}
	for (struct fa_buf *b = chain, *next; b != NULL; b = next) {
		struct rte_mbuf *one;

		/* The buffer is a part of the mbuf: when its last reference is given away, another
		 * lcore may free it and allocate it again. */
		next = b->next;
		count_returned(*eng_fbuf_returned(b));
		one = rte_pktmbuf_prefree_seg(b->owner);
		if (one == NULL)
			continue;
		if (n == BULK || (n > 0 && one->pool != m[0]->pool)) {
			rte_mempool_put_bulk(m[0]->pool, (void **)m, n);
			n = 0;
		}
		m[n++] = one;
	}
	if (n > 0)
		rte_mempool_put_bulk(m[0]->pool, (void **)m, n);
}

/* Frees the segments before byte *off, and makes *off relative to the first one left. */
static struct rte_mbuf *
skip(struct rte_mbuf *m, uint32_t *off)
{
	while (m != NULL && *off >= m->data_len) {
		struct rte_mbuf *next = m->next;

		*off -= m->data_len;
		rte_pktmbuf_free_seg(m);
		m = next;
	}
	return m;
}

static struct fa_buf *
mbuf_gather(struct rte_mempool *mp, struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	struct fa_buf *b = eng_fbuf_alloc(mp);

	/* eng_mbuf_sum() reads the length from the mbuf. */
	if (b != NULL && rte_pktmbuf_append(b->owner, (uint16_t)len) == NULL) {
		eng_fbuf_free(b);
		b = NULL;
	}
	for (const struct rte_mbuf *at = m; b != NULL && b->len < len; at = at->next) {
		uint32_t n = RTE_MIN(at->data_len - off, len - b->len);

		memcpy(b->data + b->len, rte_pktmbuf_mtod_offset(at, const uint8_t *, off), n);
		b->len += n;
		off = 0;
	}
	rte_pktmbuf_free(m);
	if (b != NULL)
		b->data_len = b->len;
	return b;
}

struct fa_buf *
eng_fbuf(struct rte_mempool *mp, struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	if (m->nb_segs > 1)
		m = skip(m, &off);
	if (m == NULL || len == 0) {
		rte_pktmbuf_free(m);
		return eng_fbuf_alloc(mp);
	}
	if (off + len > m->data_len)
		return mbuf_gather(mp, m, off, len);
	if (m->next != NULL)
		rte_pktmbuf_free(m->next); /* padding behind the payload */
	m->next = NULL;
	m->nb_segs = 1;
	return eng_fbuf_of(m, off, len);
}

uint32_t
eng_mbuf_sum(uint32_t sum, const struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	bool odd = false;

	for (; m != NULL && len > 0; m = m->next) {
		uint32_t here = m->data_len, piece;
		const void *at;

		if (off >= here) {
			off -= here;
			continue;
		}
		piece = RTE_MIN(here - off, len);
		at = rte_pktmbuf_mtod_offset(m, const void *, off);
		if (odd) {
			/* A segment that begins at an odd byte of the frame has its bytes in the
			 * other halves of the 16-bit words. */
			uint16_t part = (uint16_t)~wire_sum_fold(wire_sum(0, at, piece));

			part = __builtin_bswap16(part);
			sum = wire_sum(sum, &part, sizeof(part));
		} else {
			sum = wire_sum(sum, at, piece);
		}
		odd ^= piece & 1;
		len -= piece;
		off = 0;
	}
	return sum;
}
