/* SPDX-License-Identifier: BSD-3-Clause */
/* The pools of the control stage: a table of their sizes and quotas, and the taking of units. */
#include "share.h"

#include <errno.h>
#include <stdio.h>

#include "../../common/spans.h"
#include "core.h"

/* Host connections take at most this part of the QPs. */
#define SHARE_HOSTS 4
/* Mappings of this process that are no regions of clients. */
#define SHARE_OWN_MAPS 4096

static uint32_t
size_hosts(const struct eng_limits *l)
{
	return SK_MAX(l->qps / SHARE_HOSTS, 1u);
}

static uint32_t
size_messages(const struct eng_limits *l)
{
	return l != NULL ? CTL_POOL - CTL_RESERVE : 0;
}

/* Returns how many regions this process can map. Each takes an entry of the SIGBUS handler's table
 * and a mapping of the kernel's. */
static uint32_t
size_regions(const struct eng_limits *l)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned maps;

	if (f == NULL)
		return ENG_SPANS;
	if (fscanf(f, "%u", &maps) != 1)
		maps = ENG_SPANS;
	fclose(f);
	return SK_MIN(maps > SHARE_OWN_MAPS ? maps - SHARE_OWN_MAPS : 1, ENG_SPANS);
}

#define LIMIT(member) .limit = offsetof(struct eng_limits, member)
#define TABLE(member) .quota = true, .table = offsetof(struct ctl_client, member)

static const struct share_row {
	const char *what; /* a plural */
	/* The number of units: a member of struct eng_limits, or the result of `size`. */
	size_t limit;
	uint32_t (*size)(const struct eng_limits *l);
	bool quota;   /* the capacity of the client's `table` is the client's quota */
	size_t table; /* offset in struct ctl_client */
} share_rows[CTL_POOLS] = {
	[CTL_POOL_QP] = {"QPs", LIMIT(qps), TABLE(qps)},
	[CTL_POOL_OPENED] = {"opened QPs", LIMIT(qps), TABLE(qps)},
	[CTL_POOL_CQ] = {"completion queues", LIMIT(cqs), TABLE(cqs)},
	[CTL_POOL_PD] = {"protection domains", LIMIT(pds), TABLE(pds)},
	[CTL_POOL_MR] = {"memory regions", LIMIT(mrs), TABLE(mrs)},
	[CTL_POOL_MW] = {"memory windows", LIMIT(mws), TABLE(mws)},
	[CTL_POOL_SRQ] = {"shared receive queues", LIMIT(srqs), TABLE(srqs)},
	[CTL_POOL_AH] = {"address handles", LIMIT(qps), TABLE(ahs)},
	[CTL_POOL_HOST] = {"host connections", .size = size_hosts},
	[CTL_POOL_XRCD] = {"XRC domains", LIMIT(pds), TABLE(xrcds)},
	[CTL_POOL_LISTENER] = {"listeners", LIMIT(listeners), TABLE(listeners)},
	[CTL_POOL_REQUEST] = {"connect requests", LIMIT(conns), TABLE(requests)},
	[CTL_POOL_MESSAGE] = {"messages", .size = size_messages},
	[CTL_POOL_REGION] = {"mapped regions", .size = size_regions},
};

static uint32_t
pool_size(const struct share_row *row, const struct eng_limits *l)
{
	uint32_t size;

	if (row->size != NULL)
		return row->size(l);
	memcpy(&size, (const uint8_t *)l + row->limit, sizeof(size));
	return size;
}

/* Initializes the share of the messages: the minimum of a user is at least enough for one command
 * to all stages. */
static int
messages_init(struct eng_control *c, struct sk_share *s, uint32_t size)
{
	uint32_t percent = c->cfg->limits.user_min, n = c->cfg->limits.users + 1;

	return sk_share_init(s, size, c->cfg->limits.clients + 1, n,
		SK_MAX(size * percent / 100, ctl_command_messages(c)), 0);
}

int
ctl_shares_init(struct eng_control *c)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < CTL_POOLS; i++) {
		uint32_t size = pool_size(&share_rows[i], &c->cfg->limits);

		rc = i == CTL_POOL_MESSAGE ? messages_init(c, &c->share[i], size)
					   : eng_share_init(&c->share[i], &c->cfg->limits, size, 1);
	}
	return rc;
}

void
ctl_shares_fini(struct eng_control *c)
{
	for (unsigned i = 0; i < CTL_POOLS; i++)
		sk_share_fini(&c->share[i]);
}

static const struct ctl_table *
pool_table(const struct share_row *row, const struct ctl_client *cl)
{
	return (const struct ctl_table *)((const uint8_t *)cl + row->table);
}

int
ctl_take_shared(struct eng_control *c, struct ctl_client *cl, enum ctl_pool pool, struct shm_msg *m)
{
	const struct share_row *row = &share_rows[pool];
	struct sk_share *s = &c->share[pool];
	enum sk_share_result rc = sk_share_take(s, cl->eng.user, 1);

	if (rc == SK_SHARE_OK)
		return 0;
	if (rc == SK_SHARE_MOST && s->most < s->size)
		return ctl_refuse_quota(c, m, -EDQUOT, "no more than %u %s are allowed to one user",
			s->most, row->what);
	return ctl_refuse_quota(c, m, -ENOSPC,
		s->held == s->size ? "no more than %u %s are allowed to all clients together"
				   : "the free ones of %u %s are reserved for other users",
		s->size, row->what);
}

int
ctl_take(struct eng_control *c, struct ctl_client *cl, enum ctl_pool pool, struct shm_msg *m)
{
	const struct share_row *row = &share_rows[pool];
	const struct ctl_table *t = pool_table(row, cl);

	if (row->quota && t->used == t->cap)
		return ctl_refuse_quota(c, m, -EDQUOT,
			"no more than %u %s are allowed to one client", t->cap, row->what);
	return ctl_take_shared(c, cl, pool, m);
}

void
ctl_give(struct eng_control *c, const struct ctl_client *cl, enum ctl_pool pool)
{
	sk_share_give(&c->share[pool], cl->eng.user, 1);
}

bool
ctl_share_take(struct eng_control *c, enum ctl_pool pool, uint16_t user)
{
	return sk_share_take(&c->share[pool], user, 1) == SK_SHARE_OK;
}

void
ctl_share_give(struct eng_control *c, enum ctl_pool pool, uint16_t user)
{
	sk_share_give(&c->share[pool], user, 1);
}

uint32_t
ctl_most(const struct eng_control *c, const struct ctl_client *cl, enum ctl_pool pool)
{
	const struct share_row *row = &share_rows[pool];
	uint32_t most = c->share[pool].most;

	return row->quota ? SK_MIN(most, pool_table(row, cl)->cap) : most;
}
