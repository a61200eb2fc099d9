/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates the engines of the embedded form: ports, configuration, and a flat client. */
#include <errno.h>
#include <rte_eth_ring.h>
#include <rte_bus_vdev.h>
#include <rte_ethdev.h>
#include <rte_ring.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/base/mem.h"
#include "../../lib/rof/exchange.h"
#include "../../lib/wire/falcon.h"
#include "perf.h"

#define RING_SIZE 1024
#define MBUFS     8192u

static int
ring_pair(uint16_t ports[2])
{
	struct rte_ring *r[2];

	for (int i = 0; i < 2; i++) {
		char name[32];

		snprintf(name, sizeof(name), "perf_wire%d", i);
		r[i] = rte_ring_create(
			name, RING_SIZE, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (r[i] == NULL)
			return perf_fail("creating the ring between the two ends", -ENOMEM);
	}
	for (int i = 0; i < 2; i++) {
		char name[32];
		int port;

		snprintf(name, sizeof(name), "perf_end%d", i);
		port = rte_eth_from_rings(name, &r[i], 1, &r[1 - i], 1, SOCKET_ID_ANY);
		if (port < 0)
			return perf_fail("creating a ring port", -rte_errno);
		ports[i] = (uint16_t)port;
	}
	return 0;
}

static int
vdev_port(const char *name, const char *args, uint16_t *port)
{
	int rc = rte_vdev_init(name, args);

	if (rc < 0)
		return perf_fail(name, rc);
	return rte_eth_dev_get_port_by_name(name, port) < 0 ? perf_fail(name, -ENODEV) : 0;
}

static int
memif_pair(uint16_t ports[2])
{
	static const char *const roles[] = {"server", "client"};

	for (int i = 0; i < 2; i++) {
		char name[32], args[160];

		snprintf(name, sizeof(name), "net_memif_perf%d", i);
		snprintf(args, sizeof(args), "role=%s,socket=/tmp/saker-perf-%d.sock,zero-copy=no",
			roles[i], (int)getpid());
		if (vdev_port(name, args, &ports[i]))
			return -1;
	}
	return 0;
}

/* Creates a net_impair port on top of each port. */
static int
impair_pair(const char *how, uint16_t ports[2])
{
	for (int i = 0; i < 2; i++) {
		char lower[RTE_ETH_NAME_MAX_LEN], name[32], args[256];

		if (rte_eth_dev_get_name_by_port(ports[i], lower) < 0)
			return perf_fail("finding the port below net_impair", -ENODEV);
		snprintf(name, sizeof(name), "net_impair_perf%d", i);
		snprintf(args, sizeof(args), "port=%s,%s", lower, how);
		if (vdev_port(name, args, &ports[i]))
			return -1;
	}
	return 0;
}

int
perf_ports_pair(const struct perf_options *o, uint16_t ports[2])
{
	if (strcmp(o->port, "ring") == 0 ? ring_pair(ports) : memif_pair(ports))
		return -1;
	return o->impair != NULL ? impair_pair(o->impair, ports) : 0;
}

static int
parse_address(const char *text, struct eng_if_config *out)
{
	char addr[SK_ADDR_STRLEN + 1];
	const char *slash = strchr(text, '/');
	size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);

	if (len >= sizeof(addr))
		return -1;
	memcpy(addr, text, len);
	addr[len] = 0;
	if (sk_addr_parse(addr, &out->addr) < 0)
		return -1;
	out->prefix = slash != NULL               ? (unsigned)atoi(slash + 1)
		      : sk_addr_is_v4(&out->addr) ? 32
						  : 128;
	out->vlan = ETH_NO_VLAN;
	return 0;
}

/* Returns the pre-shared key of both ends, which is fixed and exists until the end of the program,
 * or NULL when OpenSSL cannot use it. */
static struct rofx_tls *
perf_engine_tls(void)
{
	static struct rofx_tls *made;
	uint8_t key[32];
	const struct rofx_tls_config cfg = {.psk = key, .psk_len = sizeof(key)};
	char err[128];

	memset(key, 'k', sizeof(key));
	if (made == NULL)
		made = rofx_tls_create(&cfg, err, sizeof(err));
	return made;
}

/* Configures Falcon. Both ends use the same fixed pre-shared key. */
static void
falcon_config(const struct perf_options *o, struct eng_falcon_config *f)
{
	static const uint8_t psps[] = {
		PSP_NO_CRYPTO, PSP_AES_GCM_128, PSP_AES_GCM_256, PSP_GMAC_128, PSP_GMAC_256};

	f->enabled = true;
	f->mtu = ROF_MTU_MAX;
	f->ordering = (uint8_t)o->ordering;
	f->errors = (uint8_t)o->errors;
	f->tunnel = f->pcid = o->tunnel;
	f->psps = (uint16_t)(1u << psps[o->psp]);
	if (psps[o->psp] == PSP_NO_CRYPTO)
		return;
	f->tls = perf_engine_tls();
}

/* Sets limits that suffice for all QPs of one client. */
static void
limits_config(const struct perf_options *o, struct eng_config *cfg)
{
	uint32_t qps = o->qps + o->idle_qps;
	struct eng_limits *l = &cfg->limits;

	l->rx_mbufs = l->tx_mbufs = MBUFS;
	l->qps = l->client_qps = SK_MAX(l->qps, qps + 16);
	l->conns = cfg->tcp.max_conns = SK_MAX(l->conns, qps + 64);
	l->user_min = 0; /* there is one client: nothing is reserved for others */
}

struct eng *
perf_engine(const struct perf_options *o, uint16_t port, const char *const *address, unsigned n)
{
	struct eng_config cfg;
	struct eng *e;
	char err[256];

	eng_config_default(&cfg);
	snprintf(cfg.name, sizeof(cfg.name), "perf%u", port);
	cfg.nports = 1;
	cfg.nifs = n;
	cfg.ports[0].port_id = port;
	cfg.ports[0].mtu = o->mtu;
	cfg.ports[0].offload_cksum = cfg.ports[0].offload_tso = o->offload;
	for (unsigned i = 0; i < n; i++) {
		if (parse_address(address[i], &cfg.ifs[i])) {
			fprintf(stderr, "saker-perf: --address %s is not ADDR/LEN\n", address[i]);
			return NULL;
		}
	}
	cfg.mpa_crc = o->crc;
	if (o->transport == SAKER_FALCON)
		falcon_config(o, &cfg.falcon);
	cfg.mpa_markers = o->markers;
	limits_config(o, &cfg);
	e = eng_create(&cfg, err, sizeof(err));
	if (e == NULL)
		fprintf(stderr, "saker-perf: %s\n", err);
	return e;
}

int
perf_attach(struct perf_end *e)
{
	uint64_t qps = e->o->qps + e->o->idle_qps;
	uint64_t mem = 2ull * e->o->size_last + e->o->qps * sizeof(struct perf_words) + (1u << 20);
	uint64_t entry = 512ull + e->o->inline_max, slots = (uint64_t)e->o->depth * e->o->qps;
	uint64_t rings = (16u << 20) + slots * entry + qps * 8192;
	uint64_t size = (mem + rings + 4095) / 4096 * 4096;
	void *home = sk_mem_alloc(size);
	struct saker *s;
	int rc;

	if (home == NULL) {
		fprintf(stderr, "saker-perf: no memory for %u QPs of depth %u: %lu MiB\n",
			e->o->qps, e->o->depth, (unsigned long)(size >> 20));
		return -1;
	}
	rc = eng_attach_flat(e->engine, "saker-perf", home, size, (mem + 4095) / 4096 * 4096);
	if (rc < 0)
		return perf_fail("attaching to the engine", rc);
	e->client = rc;
	/* The engine writes the header in one of its next turns. */
	while (__atomic_load_n(&((struct shm_header *)home)->magic, __ATOMIC_ACQUIRE) != SHM_MAGIC)
		perf_idle(e);
	rc = saker_open_flat(home, size, perf_idle, e, &s);
	if (rc < 0)
		return perf_fail("opening the client", rc);
	return perf_end_open(e, s);
}
