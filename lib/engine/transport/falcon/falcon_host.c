/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs of hosts, and their connections. All Falcon connections of this stage with a peer's address
 * send the frames of their exchanges over the carriers to that address (falcon_lanes.c), which come
 * and go without an effect on them (falcon_sweep.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../base/mem.h"
#include "../../../base/secret.h"
#include "falcon_priv.h"

#define STARTING_MOST 4096 /* exchanges that a host may have begun and not completed */
#define PREFIX_PART   8    /* of all connections: what a source prefix may have begun */
#define PREFIX_LEAST  16

/* ---- Hosts ---- */

void
eng_falcon_hosts_init(struct eng_falcon *f, uint64_t now)
{
	TAILQ_INIT(&f->turns);
	sk_wheel_init(&f->host_wheel, now);
	sk_random(&f->host_key, sizeof(f->host_key));
	f->hosts_due = SK_NEVER;
}

static struct eng_falcon_hosts *
host_bucket_of(struct eng_falcon *f, const struct sk_addr *laddr, const struct sk_addr *raddr)
{
	const struct sk_addr both[2] = {*laddr, *raddr};

	return &f->hosts[sk_siphash(&f->host_key, both, sizeof(both)) % ENG_FALCON_HOSTS];
}

/* Returns the counter of the network of an address. */
static uint16_t *
falcon_host_prefix(struct eng_falcon *f, const struct sk_addr *raddr)
{
	uint64_t hash = sk_siphash(&f->host_key, raddr, sk_network_len(raddr));

	return &f->per_prefix[hash % ENG_FALCON_HOSTS];
}

static struct eng_falcon_host *
falcon_host_create(const struct eng_falcon *f, const struct tcp_tuple *ends)
{
	struct eng_falcon_host *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->laddr = ends->laddr;
	h->raddr = ends->raddr;
	h->vlan = ends->vlan;
	h->port = ends->port;
	h->next_stage = f->index;
	h->lost_at = SK_NEVER;
	TAILQ_INIT(&h->carriers);
	TAILQ_INIT(&h->live);
	TAILQ_INIT(&h->asking);
	TAILQ_INIT(&h->parked);
	for (unsigned i = 0; i < ENG_FALCON_BUCKETS; i++)
		TAILQ_INIT(&h->starting[i]);
	for (unsigned i = 0; i < ENG_FALCON_LANES; i++)
		TAILQ_INIT(&h->lanes[i]);
	return h;
}

struct eng_falcon_host *
eng_falcon_host_get(struct eng_falcon *f, const struct tcp_tuple *ends)
{
	struct eng_falcon_hosts *bucket = host_bucket_of(f, &ends->laddr, &ends->raddr);
	struct eng_falcon_host *h;

	LIST_FOREACH (h, bucket, bucket)
		if (sk_addr_eq(&h->laddr, &ends->laddr) && sk_addr_eq(&h->raddr, &ends->raddr))
			return h;
	h = falcon_host_create(f, ends);
	if (h != NULL)
		LIST_INSERT_HEAD(bucket, h, bucket);
	return h;
}

static void
falcon_host_free(struct eng_falcon *f, struct eng_falcon_host *h)
{
	if (h->in_turn)
		TAILQ_REMOVE(&f->turns, h, turn);
	sk_timer_stop(&f->host_wheel, &h->timer);
	LIST_REMOVE(h, bucket);
	free(h);
}

void
eng_falcon_host_put(struct eng_falcon *f, struct eng_falcon_host *h)
{
	if (TAILQ_EMPTY(&h->carriers) && h->nlive == 0 && h->nstarting == 0 &&
		TAILQ_EMPTY(&h->asking) && h->norphans == 0)
		falcon_host_free(f, h);
}

void
eng_falcon_host_wake(struct eng_falcon *f, struct eng_falcon_host *h)
{
	if (h->in_turn)
		return;
	TAILQ_INSERT_TAIL(&f->turns, h, turn);
	h->in_turn = true;
}

void
eng_falcon_hosts_free(struct eng_falcon *f)
{
	struct eng_falcon_host *h;

	for (unsigned i = 0; i < ENG_FALCON_HOSTS; i++) {
		while ((h = LIST_FIRST(&f->hosts[i])) != NULL) {
			eng_falcon_orphans_free(h);
			falcon_host_free(f, h);
		}
	}
}

/* ---- Connections ---- */

/* Returns the bucket of a name, which the peer chooses. */
static unsigned
starting_bucket(const struct eng_falcon *f, uint32_t peer_id)
{
	return sk_siphash(&f->host_key, &peer_id, sizeof(peer_id)) % ENG_FALCON_BUCKETS;
}

static struct eng_falcon_members *
host_list(const struct eng_falcon *f, struct eng_falcon_host *h, const struct eng_falcon_conn *fc)
{
	if (fc->list == ENG_FALCON_STARTING)
		return &h->starting[starting_bucket(f, rofx_peer_id(fc->out.x))];
	return fc->list == ENG_FALCON_LIVE ? &h->live : &h->asking;
}

static void
host_remove(struct eng_falcon *f, struct eng_falcon_conn *fc)
{
	struct eng_falcon_host *h = fc->host;

	TAILQ_REMOVE(host_list(f, h, fc), fc, of_host);
	if (fc->list == ENG_FALCON_STARTING) {
		h->nstarting--;
		--*falcon_host_prefix(f, &h->raddr);
	} else if (fc->list == ENG_FALCON_LIVE) {
		h->nlive--;
	} else {
		h->nasking--;
	}
	fc->host = NULL;
}

bool
eng_falcon_join(struct eng_falcon *f, struct eng_falcon_host *h, struct eng_falcon_conn *fc,
	enum eng_falcon_list list)
{
	uint32_t most = SK_MAX(f->nconns / PREFIX_PART, PREFIX_LEAST);
	uint16_t *prefix = falcon_host_prefix(f, &h->raddr);

	if (list == ENG_FALCON_STARTING &&
		(h->nstarting >= STARTING_MOST || *prefix >= SK_MIN(most, UINT16_MAX)))
		return false;
	if (fc->host != NULL)
		host_remove(f, fc);
	fc->host = h;
	fc->list = (uint8_t)list;
	TAILQ_INSERT_TAIL(host_list(f, h, fc), fc, of_host);
	if (list == ENG_FALCON_STARTING) {
		h->nstarting++;
		++*prefix;
	} else if (list == ENG_FALCON_LIVE) {
		h->nlive++;
	} else {
		fc->mark = f->carriers;
		h->nasking++;
	}
	return true;
}

void
eng_falcon_leave(struct eng_falcon *f, struct eng_falcon_conn *fc)
{
	struct eng_falcon_host *h = fc->host;

	if (h == NULL) {
		rofx_destroy(fc->out.x);
		return;
	}
	host_remove(f, fc);
	eng_falcon_sender_leave(h, &fc->out);
	if (fc->out.x != NULL)
		eng_falcon_orphan_create(h, fc);
	eng_falcon_host_wake(f, h); /* which may free it */
}

struct eng_falcon_conn *
eng_falcon_starting(const struct eng_falcon *f, const struct eng_falcon_host *h, uint32_t peer_id)
{
	struct eng_falcon_conn *fc;

	TAILQ_FOREACH (fc, &h->starting[starting_bucket(f, peer_id)], of_host)
		if (rofx_peer_id(fc->out.x) == peer_id)
			return fc;
	return NULL;
}
