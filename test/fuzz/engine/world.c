/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <stdio.h>

#include <openssl/rand.h>
#include <sanitizer/lsan_interface.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../../../lib/base/log.h"
#include "../../../lib/base/mem.h"
#include "../../../lib/rof/exchange.h"

#define MBUFS     512u
#define WIRE_RING 1024u
#define HAND      1024u /* mbufs of the frames that the wire itself makes */
#define MS        1000000ull

/* Limits of world_settle(): the longest step, and the number of turns. */
#define SETTLE_STEP  (100 * MS)
#define SETTLE_TURNS 20000u

#define ETH_TYPE_AT 12
#define TYPE_IP4    0x0800
#define TYPE_IP6    0x86dd
#define TYPE_VLAN   0x8100

static struct world worlds[WORLD_ALL_KINDS], *w;
static world_observer *observer;
static struct rte_mempool *hand;
static uint64_t now;
static struct {
	uint8_t b[WORLD_FRAME_MAX];
	size_t len;
} kept[WORLD_KEPT];
static unsigned nkept;

void
world_eal(void)
{
	char *args[] = {"fuzz", "--no-huge", "--no-shconf", "--no-pci", "-m", "192", "-l", "0",
		"--no-telemetry", "--log-level=error"};
	uint8_t byte;

	CLAIM(rte_eal_init(SK_ARRAY_LEN(args), args) >= 0);
	sk_log_set(SK_LOG_ERR, NULL);
	hand = rte_pktmbuf_pool_create(
		"hand", HAND, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	CLAIM(hand != NULL);
	/* OpenSSL puts the state of a random generator into its secure arena if that exists, which
	 * LeakSanitizer does not search for pointers. rofx_tls_create() makes the arena, so the
	 * generators start before it. */
	CLAIM(RAND_bytes(&byte, 1) == 1 && RAND_priv_bytes(&byte, 1) == 1);
}

static uint64_t
world_clock(void)
{
	return now;
}

static struct sk_addr
addr_of(const char *text)
{
	struct sk_addr a;

	CLAIM(sk_addr_parse(text, &a) == 0);
	return a;
}

/* ---- Memory ---- */

/* The linker replaces sk_mem_alloc() and sk_mem_free() by these functions. LeakSanitizer does not
 * search mapped memory, in which the tables of an instance have their pointers, unless it is a root
 * region. */
void *__real_sk_mem_alloc(size_t len);
void __real_sk_mem_free(void *p, size_t len);
void *__wrap_sk_mem_alloc(size_t len);
void __wrap_sk_mem_free(void *p, size_t len);

void *
__wrap_sk_mem_alloc(size_t len)
{
	void *p = __real_sk_mem_alloc(len);

	if (p != NULL)
		__lsan_register_root_region(p, len);
	return p;
}

void
__wrap_sk_mem_free(void *p, size_t len)
{
	if (p != NULL)
		__lsan_unregister_root_region(p, len);
	__real_sk_mem_free(p, len);
}

/* ---- Configurations ---- */

static void
common(struct eng_config *cfg, int side)
{
	eng_config_default(cfg);
	cfg->nports = cfg->nifs = 1;
	cfg->ifs[0] = (struct eng_if_config){.vlan = ETH_NO_VLAN,
		.addr = addr_of(side == 0 ? "10.0.0.1" : "10.0.0.2"),
		.prefix = 24};
	cfg->limits = (struct eng_limits){.clients = 4,
		.qps = 48,
		.cqs = 48,
		.mrs = 48,
		.mws = 32,
		.pds = 16,
		.srqs = 16,
		.listeners = 16,
		.conns = 48,
		.rx_mbufs = MBUFS,
		.tx_mbufs = MBUFS,
		.client_qps = 16,
		.client_cqs = 16,
		.client_mrs = 16,
		.client_mws = 16,
		.client_regions = 4,
		.sq_depth = 64,
		.rq_depth = 64,
		.cq_depth = 128,
		.ird = 8,
		.ord = 8};
	cfg->tcp.max_half_open = 16;
	cfg->tcp.max_time_wait = cfg->tcp.max_left = 32;
	cfg->tcp.ooo_slices = 32;
	cfg->tcp.ooo_slices_total = 64;
	cfg->tcp.msl_ns = MS / 2;
	cfg->tcp.rto_max_ns = 100 * MS;
	cfg->tcp.syn_retries = 3;
	cfg->tcp.data_retries = 4;
	cfg->tcp.keepalive_idle_ns = 2000 * MS;
	cfg->tcp.keepalive_interval_ns = 100 * MS;
	cfg->mpa_crc = false;
	cfg->falcon.enabled = true;
	cfg->falcon.keepalive_ns = 500 * MS;
	cfg->falcon.patience_ns = 200 * MS;
	cfg->falcon.stack.conn_requests = 16;
}

/* Returns the pre-shared key of both ends, which exists until the end of the program. */
static struct rofx_tls *
key_of_all(void)
{
	static struct rofx_tls *made;
	static uint8_t key[32] = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk";
	const struct rofx_tls_config cfg = {.psk = key, .psk_len = sizeof(key)};
	char err[128];

	if (made == NULL)
		made = rofx_tls_create(&cfg, err, sizeof(err));
	return made;
}

static void
keyed(struct eng_config *cfg, int side)
{
	struct eng_falcon_config *f = &cfg->falcon;

	cfg->ntransports = cfg->nstages = 2;
	f->psps = ROFX_PSP(PSP_AES_GCM_128) | ROFX_PSP(PSP_AES_GCM_256) | ROFX_PSP(PSP_GMAC_256) |
		  ROFX_PSP(PSP_NO_CRYPTO);
	f->tls = key_of_all();
	f->tunnel = f->pcid = true;
	f->function = 0x010203u + (uint32_t)side;
	f->flows = FA_FLOWS_MAX;
	f->rekey_packets = 64;
	f->rekey_ns = 300 * MS;
	f->device_key_ns = 900 * MS;
	cfg->tcp.cc = "dctcp";
}

static void
markers(struct eng_config *cfg, int side)
{
	cfg->nstages = 2;
	cfg->nifs = 3;
	cfg->ifs[1] = (struct eng_if_config){.vlan = ETH_NO_VLAN,
		.addr = addr_of(side == 0 ? "fd00::1" : "fd00::2"),
		.prefix = 64};
	cfg->ifs[2] = (struct eng_if_config){
		.vlan = 7, .addr = addr_of(side == 0 ? "10.7.0.1" : "10.7.0.2"), .prefix = 24};
	cfg->mpa_crc = cfg->mpa_markers = true;
	cfg->mpa_fall_back = cfg->draft_ext = true;
	cfg->mpa_first_fpdu_ns = 5 * MS;
	cfg->falcon.ordering = ROF_ORDER_STRONG;
}

/* Sizes that let many messages travel at a time. */
static void
fast(struct eng_config *cfg, int side)
{
	cfg->limits.cq_depth = 512;
}

static void
fast_crc(struct eng_config *cfg, int side)
{
	fast(cfg, side);
	cfg->mpa_crc = true;
	cfg->falcon.ordering = ROF_ORDER_STRONG;
}

static void
without_fast_paths(struct eng_config *cfg)
{
	cfg->general_tcp = cfg->general_iwarp = cfg->tcp.general = true;
	cfg->falcon.general_rx = cfg->falcon.stack.general = true;
}

static void
general(struct eng_config *cfg, int side)
{
	fast(cfg, side);
	without_fast_paths(cfg);
}

static void
general_crc(struct eng_config *cfg, int side)
{
	fast_crc(cfg, side);
	without_fast_paths(cfg);
}

/* ---- Creation ---- */

static void
make_ports(enum world_kind kind)
{
	struct rte_ring *r[2];
	char name[32];

	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "wire%d_%d", kind, i);
		r[i] = rte_ring_create(
			name, WIRE_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		CLAIM(r[i] != NULL);
		w->to[i] = r[i];
	}
	for (int i = 0; i < 2; i++) {
		int port;

		snprintf(name, sizeof(name), "port%d_%d", kind, i);
		port = rte_eth_from_rings(name, &r[i], 1, &r[!i], 1, 0);
		CLAIM(port >= 0);
		w->cfg[i].ports[0] = (struct eng_port_config){
			.port_id = (uint16_t)port, .mtu = 1500, .rxd = 256, .txd = 256};
	}
}

/* Returns whether fuzz_fast compares runs in this world. */
static bool
is_compared(enum world_kind kind)
{
	return kind == WORLD_FAST || kind == WORLD_FAST_CRC || kind == WORLD_GENERAL ||
	       kind == WORLD_GENERAL_CRC;
}

static void
world_create(enum world_kind kind)
{
	static void (*const tweak[WORLD_ALL_KINDS])(struct eng_config * cfg, int side) = {
		[WORLD_KEYED] = keyed,
		[WORLD_MARKERS] = markers,
		[WORLD_FAST] = fast,
		[WORLD_GENERAL] = general,
		[WORLD_FAST_CRC] = fast_crc,
		[WORLD_GENERAL_CRC] = general_crc,
	};
	char err[256];

	for (int i = 0; i < 2; i++) {
		common(&w->cfg[i], i);
		if (tweak[kind] != NULL)
			tweak[kind](&w->cfg[i], i);
	}
	make_ports(kind);
	for (int i = 0; i < 2; i++) {
		w->e[i] = eng_create(&w->cfg[i], err, sizeof(err));
		if (w->e[i] == NULL)
			fprintf(stderr, "%s\n", err);
		CLAIM(w->e[i] != NULL);
		w->e[i]->clock = world_clock;
		if (is_compared(kind))
			w->e[i]->bounds = (struct eng_bounds){UINT32_MAX, UINT32_MAX, UINT32_MAX};
		/* The control stage runs in each turn, not in one of 16. */
		w->e[i]->loops[0].look = true;
		w->addr[i] = w->cfg[i].ifs[w->cfg[i].nifs > 1].addr;
	}
}

struct world *
world_enter(enum world_kind kind)
{
	uint64_t clock = eng_clock();

	w = &worlds[kind];
	if (w->e[0] == NULL)
		world_create(kind);
	now = SK_MAX(now, clock); /* the instances have started with this clock */
	nkept = 0;
	w->fates = 0;
	return w;
}

/* ---- The wire ---- */

static void
keep(int to, const struct rte_mbuf *m)
{
	unsigned i = nkept++ % WORLD_KEPT;
	const void *p;

	kept[i].len = SK_MIN((size_t)m->pkt_len, sizeof(kept[i].b));
	p = rte_pktmbuf_read(m, 0, (uint32_t)kept[i].len, kept[i].b);
	if (p != NULL && p != kept[i].b)
		memcpy(kept[i].b, p, kept[i].len);
	world_observed("a frame to", to, kept[i].b, kept[i].len);
}

static void
put(int to, struct rte_mbuf *m)
{
	if (m != NULL && rte_ring_enqueue(w->to[to], m) != 0)
		rte_pktmbuf_free(m);
}

static void
one_frame(int to, struct rte_mbuf *m)
{
	enum world_fate fate = w->fates & 3u;
	struct rte_mbuf *before = w->late[to];

	w->fates >>= 2;
	keep(to, m);
	w->late[to] = NULL;
	if (fate == FATE_DROP) {
		rte_pktmbuf_free(m);
	} else if (fate == FATE_LATE && before == NULL) {
		w->late[to] = m;
	} else {
		if (fate == FATE_DOUBLE)
			put(to, rte_pktmbuf_copy(m, hand, 0, UINT32_MAX));
		put(to, m);
	}
	put(to, before);
}

static void
wire(int to)
{
	unsigned n = rte_ring_count(w->to[to]);
	void *m;

	for (unsigned i = 0; i < n; i++) {
		CLAIM(rte_ring_dequeue(w->to[to], &m) == 0);
		one_frame(to, m);
	}
}

bool
world_turn(uint64_t ns)
{
	bool work = false;

	now += ns;
	for (int i = 0; i < 2; i++) {
		wire(i);
		work |= eng_poll(w->e[i], 0, now);
	}
	return work;
}

uint64_t
world_now(void)
{
	return now;
}

void
world_set_now(uint64_t ns)
{
	now = ns;
}

void
world_observe(world_observer *o)
{
	observer = o;
}

void
world_observed(const char *what, int side, const void *p, size_t len)
{
	if (observer != NULL)
		observer(what, side, p, len);
}

void
world_fates(uint32_t pattern)
{
	w->fates = pattern;
}

void
world_inject(int to, const uint8_t *frame, size_t len, size_t cut)
{
	struct rte_mbuf *first = NULL;

	for (size_t at = 0, n; at < len; at += n) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(hand);

		n = SK_MIN(len - at, cut > 0 ? cut : len);
		if (m == NULL)
			break;
		n = SK_MIN(n, (size_t)rte_pktmbuf_tailroom(m));
		memcpy(rte_pktmbuf_append(m, (uint16_t)n), frame + at, n);
		if (first == NULL) {
			first = m;
		} else if (rte_pktmbuf_chain(first, m) != 0) {
			rte_pktmbuf_free(m);
			break;
		}
	}
	put(to, first);
}

size_t
world_kept(unsigned back, uint8_t *out)
{
	unsigned have = SK_MIN(nkept, WORLD_KEPT), i;

	if (have == 0)
		return 0;
	i = (nkept - 1 - back % have) % WORLD_KEPT;
	memcpy(out, kept[i].b, kept[i].len);
	return kept[i].len;
}

/* ---- Checksums ---- */

static unsigned
be16(const uint8_t *p)
{
	return (unsigned)(p[0] << 8 | p[1]);
}

static void
l4_checksum(uint8_t *l4, size_t len, uint8_t proto, const uint8_t *addrs, size_t addrs_len)
{
	uint8_t tail[4] = {0, proto, (uint8_t)(len >> 8), (uint8_t)len};
	size_t at = proto == IP_TCP ? 16 : 6;
	uint16_t sum;

	if ((proto != IP_TCP && proto != IP_UDP) || len < at + 2)
		return;
	if (proto == IP_UDP && be16(l4 + at) == 0)
		return;
	memset(l4 + at, 0, 2);
	sum = wire_sum_fold(
		wire_sum(wire_sum(wire_sum(0, addrs, addrs_len), tail, sizeof(tail)), l4, len));
	memcpy(l4 + at, &sum, 2);
}

/* The inner packet of a tunnel has checksums, too, but PSP protects it. */
void
world_checksums(uint8_t *f, size_t len)
{
	size_t at = ETH_LEN, hl;
	unsigned type;
	uint16_t sum;

	if (len < ETH_LEN + 4)
		return;
	type = be16(f + ETH_TYPE_AT);
	if (type == TYPE_VLAN) {
		type = be16(f + ETH_LEN + 2);
		at += 4;
	}
	if (type == TYPE_IP4 && len >= at + IP4_LEN) {
		hl = (f[at] & 15u) * 4u;
		if (hl < IP4_LEN || at + hl > len)
			return;
		memset(f + at + 10, 0, 2);
		sum = wire_sum_fold(wire_sum(0, f + at, hl));
		memcpy(f + at + 10, &sum, 2);
		if (be16(f + at + 2) >= hl && be16(f + at + 2) <= len - at)
			l4_checksum(f + at + hl, be16(f + at + 2) - hl, f[at + 9], f + at + 12, 8);
	} else if (type == TYPE_IP6 && len >= at + IP6_LEN &&
		   be16(f + at + 4) <= len - at - IP6_LEN) {
		l4_checksum(f + at + IP6_LEN, be16(f + at + 4), f[at + 6], f + at + 8, 32);
	}
}

/* ---- Packets of a hostile Falcon peer ---- */

static void
put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void
add32(uint8_t *p, uint32_t n)
{
	n += (uint32_t)be16(p) << 16 | be16(p + 2);
	put16(p, n >> 16);
	put16(p + 2, n & 0xffff);
}

size_t
world_later(uint8_t *f, size_t len, unsigned ahead, size_t payload)
{
	const size_t ip = ETH_LEN, udp = ip + IP4_LEN, psp = udp + UDP_LEN, fa = psp + PSP_LEN;
	size_t head = FALCON_BASE_LEN;
	unsigned type;

	if (ahead == 0 || len < fa + FALCON_PULL_REQUEST_LEN || be16(f + ETH_TYPE_AT) != TYPE_IP4 ||
		f[ip] != 0x45 || f[ip + 9] != IP_UDP)
		return len;
	type = f[fa + 7] >> 1 & 15;
	if (type == FALCON_PUSH_DATA)
		head = FALCON_PUSH_DATA_LEN;
	else if (type == FALCON_PULL_REQUEST)
		head = FALCON_PULL_REQUEST_LEN;
	add32(f + psp + 12, ahead); /* IV */
	add32(f + fa + 16, ahead);  /* PSN */
	add32(f + fa + 20, ahead);  /* RSN */
	if (head != FALCON_BASE_LEN)
		put16(f + fa + 26, payload); /* request length */
	head += fa + payload;
	if (head > len)
		memset(f + len, 0, head - len);
	put16(f + ip + 2, head - ip);
	put16(f + udp + 4, head - udp);
	return head;
}

/* ---- The end of an input ---- */

static bool
empty(const struct eng *e)
{
	struct eng_totals t;

	eng_totals(e, &t);
	return t.conns + t.clients + t.qps + t.cqs + t.mrs + t.mws + t.pds + t.srqs + t.listeners +
			       t.regions ==
		       0 &&
	       t.rx_mbufs_free == t.rx_mbufs && t.tx_mbufs_free == t.tx_mbufs;
}

static void
show(const struct eng *e)
{
	struct eng_totals t;

	eng_totals(e, &t);
	fprintf(stderr,
		"left at the end: clients %u qps %u cqs %u mrs %u mws %u pds %u srqs %u "
		"listeners %u conns %u regions %u; free mbufs: rx %u of %u, tx %u of %u\n",
		t.clients, t.qps, t.cqs, t.mrs, t.mws, t.pds, t.srqs, t.listeners, t.conns,
		t.regions, t.rx_mbufs_free, t.rx_mbufs, t.tx_mbufs_free, t.tx_mbufs);
}

void
world_settle(void)
{
	uint64_t step = TURN_NS;

	w->fates = 0;
	for (int i = 0; i < 2; i++) {
		put(i, w->late[i]);
		w->late[i] = NULL;
	}
	for (unsigned i = 0; i < SETTLE_TURNS; i++) {
		world_turn(step);
		if (i % 8 == 7)
			step = SK_MIN(2 * step, (uint64_t)SETTLE_STEP);
		if (i % 4 == 3 && empty(w->e[0]) && empty(w->e[1]) && rte_mempool_full(hand))
			return;
	}
	show(w->e[0]);
	show(w->e[1]);
	CLAIM(!"an instance does not return to its first state");
}
