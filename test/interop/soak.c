/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak [EAL options] -- [options]: a seeded random mix of operations over a hostile wire. Every
 * byte is verified, every request must complete exactly once, and at the end every mbuf must have
 * been freed. With --corrupt-crc, streams must end in the Terminate that RFC 5044 8 requires, and
 * no wrong byte may be placed.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "../../drivers/net/impair/impair.h"
#include "../../lib/base/mem.h"
#include "../../lib/wire/wire.h"
#include "soak.h"

#define PORT     7471
#define STALL_NS 60000000000ull /* generous; reached only when something is broken */
#define QUIET_NS 500000000ull   /* without progress, before links with damaged FPDUs are flooded */

void
soak_fail(struct soak *s, const struct side *at, const char *fmt, ...)
{
	va_list ap;

	if (s->failed++ > 20)
		return;
	if (at != NULL)
		printf("client %d, QP %06x: ", at->at, at->qp != NULL ? saker_qp_num(at->qp) : 0);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

uint64_t
soak_random(struct soak *s)
{
	uint64_t x = s->rng += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* The options, with the place and type of each value. */
enum { BYTES, CHANCE, NUMBER, FLAG, TEXT };
static const struct word {
	const char *name;
	int kind;
	size_t at;
} words[] = {
#define WORD(name, kind, field)                                                                    \
	{                                                                                          \
		name, kind, offsetof(struct soak_options, field)                                   \
	}
	WORD("bytes", BYTES, bytes),
	WORD("seed", BYTES, seed),
	WORD("drop", CHANCE, drop),
	WORD("dup", CHANCE, dup),
	WORD("reorder", CHANCE, reorder),
	WORD("corrupt", CHANCE, corrupt),
	WORD("corrupt-crc", CHANCE, corrupt_crc),
	WORD("mtu", NUMBER, mtu),
	WORD("vlan", NUMBER, vlan),
	WORD("split", FLAG, split),
	WORD("one", FLAG, one),
	WORD("v6", FLAG, v6),
	WORD("nic", FLAG, nic),
	WORD("pcap", TEXT, pcap),
};

static uint64_t
bytes_of(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	switch (*end) {
	case 'K':
		return n << 10;
	case 'M':
		return n << 20;
	case 'G':
		return n << 30;
	default:
		return n;
	}
}

static void
take_option(struct soak_options *o, const struct word *w)
{
	void *at = (char *)o + w->at;

	if (w->kind == BYTES)
		*(uint64_t *)at = bytes_of(optarg);
	else if (w->kind == CHANCE)
		*(double *)at = atof(optarg);
	else if (w->kind == NUMBER)
		*(uint32_t *)at = (uint32_t)atoi(optarg);
	else if (w->kind == FLAG)
		*(bool *)at = true;
	else
		*(const char **)at = optarg;
}

static int
options(struct soak_options *o, int argc, char **argv)
{
	struct option list[SK_ARRAY_LEN(words) + 1] = {{0}};
	int c;

	for (size_t i = 0; i < SK_ARRAY_LEN(words); i++)
		list[i] = (struct option){words[i].name, words[i].kind != FLAG, NULL, (int)i};
	*o = (struct soak_options){.bytes = 16 << 20, .seed = 1, .mtu = 1500, .vlan = ETH_NO_VLAN};
	while ((c = getopt_long(argc, argv, "", list, NULL)) != -1) {
		if (c == '?')
			return -1;
		take_option(o, &words[c]);
	}
	return optind == argc ? 0 : -1;
}

/* Enables checksum-neutral corruption only while no MPA start-up frame is on the wire, since those
 * have no CRC. */
static void
switch_corruption(struct soak *s)
{
	bool on = true;

	for (int i = 0; i < LINKS; i++)
		on = on && s->link[i].state >= LINK_UP && s->link[i].state <= LINK_DYING;
	on = on && s->moved < s->o.bytes;
	if (s->o.corrupt_crc == 0 || on == s->corrupting)
		return;
	s->corrupting = on;
	for (int i = 0; i < 2; i++) {
		struct impair_cfg cfg;

		if (impair_get(s->rig.port[i], &cfg))
			soak_fail(s, NULL, "impair_get failed");
		cfg.corrupt_crc = on ? s->o.corrupt_crc : 0;
		cfg.seed = s->o.seed + 2 * ++s->noise;
		if (impair_set(s->rig.port[i], &cfg))
			soak_fail(s, NULL, "impair_set failed");
	}
}

static int
open_client(struct soak *s, int at)
{
	struct saker *k = s->rig.end[at].s;
	struct saker_listener *l;
	struct saker_pd *pd;
	int rc = saker_pd_create(k, &pd);

	for (int i = 0; i < 2 && rc == 0; i++)
		rc = saker_cq_create(k, LINKS * (FIFO + RECVS), NULL, &s->cq[at][i]);
	if (rc == 0)
		rc = saker_cq_create(k, LINKS * RECVS, NULL, &s->recv_cq[at]);
	if (rc == 0)
		rc = saker_listen(k, NULL, (uint16_t)(PORT + at), 16, NULL, &l);
	for (uint8_t i = 0; i < LINKS && rc == 0; i++) {
		struct side *sd = &s->link[i].side[at];

		s->link[i].index = i;
		sd->soak = s;
		sd->at = at;
		sd->far = &s->link[i].side[1 - at];
		sd->pd = pd;
		sd->mem = saker_alloc(k, SIDE_LEN);
		rc = sd->mem != NULL ? saker_mr_create(pd, sd->mem, SIDE_LEN,
					       RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE |
						       RD_ACC_REMOTE_READ,
					       &sd->mr)
				     : -12;
	}
	if (rc)
		soak_fail(s, NULL, "client %d: %s", at, saker_error());
	return rc;
}

static struct side *
side_of(struct soak *s, int at, uint32_t qpn)
{
	for (int i = 0; i < LINKS; i++) {
		struct side *sd = &s->link[i].side[at];

		if (s->link[i].state != LINK_CLOSED && sd->qp != NULL &&
			saker_qp_num(sd->qp) == qpn)
			return sd;
	}
	return NULL;
}

static void
take_completions(struct soak *s, int at, struct saker_cq *cq)
{
	struct rd_wc wc[16];
	int n = saker_cq_poll(cq, wc, (int)SK_ARRAY_LEN(wc));

	if (n < 0)
		soak_fail(s, NULL, "saker_cq_poll: %s", saker_error());
	for (int i = 0; i < n; i++) {
		struct side *sd = side_of(s, at, wc[i].qpn);

		if (sd != NULL)
			side_completion(sd, &wc[i]);
		else
			soak_fail(s, NULL, "a completion of QP %06x, which is not", wc[i].qpn);
		s->progress = eng_clock();
	}
}

static void
turn(struct soak *s)
{
	struct saker_event ev;

	for (int at = 0; at < 2; at++) {
		/* Takes events first: when the event of a stream's end arrives, the flushed
		 * requests are in the CQs already. */
		while (saker_event(s->rig.end[at].s, &ev) == 1) {
			link_event(s, at, &ev);
			s->progress = eng_clock();
		}
		take_completions(s, at, s->cq[at][0]);
		take_completions(s, at, s->cq[at][1]);
		take_completions(s, at, s->recv_cq[at]);
	}
	for (int i = 0; i < LINKS; i++)
		if (link_step(&s->link[i]))
			soak_fail(s, NULL, "link %d: %s", i, saker_error());
	switch_corruption(s);
	rig_turn(&s->rig.hand[0]);
}

static bool
over(const struct soak *s)
{
	for (int i = 0; i < LINKS; i++)
		if (s->link[i].state != LINK_CLOSED)
			return false;
	return true;
}

static void
say_side(const struct side *sd, enum link_state state)
{
	printf("client %d, QP %06x, link state %d: %u requests and %u receives without completion,"
	       " %u messages to come, %s%s'%s'\n",
		sd->at, sd->qp != NULL ? saker_qp_num(sd->qp) : 0, state, sd->sq_in - sd->sq_out,
		sd->recv_in - sd->recv_out, sd->coming_in - sd->coming_out,
		sd->up ? "established, " : "", sd->gone ? "disconnected, " : "", sd->reason);
}

static void
traffic(struct soak *s)
{
	s->progress = eng_clock();
	while (!over(s) && s->failed == 0) {
		uint64_t quiet;

		turn(s);
		quiet = eng_clock() - s->progress;
		/* A length field that grew leaves its receiver waiting for bytes that nobody sends;
		 * RFC 5044 has no timer for it. */
		for (int i = 0; i < LINKS && quiet >= QUIET_NS && s->o.corrupt_crc > 0; i++)
			link_flood(&s->link[i]);
		if (quiet < STALL_NS)
			continue;
		for (int i = 0; i < LINKS; i++) {
			say_side(&s->link[i].side[0], s->link[i].state);
			say_side(&s->link[i].side[1], s->link[i].state);
		}
		soak_fail(s, NULL, "nothing happens any more");
	}
}

/* Checks that no event was counted that healthy peers never cause. */
static void
no_warnings(void *arg, const char *layer, const char *name, enum sk_severity sev, const char *help,
	uint64_t value)
{
	static const char *const layers[] = {"eng", "iw", "mpa", "rdma"};

	for (size_t i = 0; i < SK_ARRAY_LEN(layers); i++)
		if (strcmp(layer, layers[i]) == 0 && sev >= SK_WARNING && value != 0 &&
			strcmp(name, "ENG_RX_OFFLOAD_BAD") != 0)
			soak_fail(arg, NULL, "%s: %" PRIu64 " (%s)", name, value, help);
}

/* Checks that the wire impaired frames as configured, and that each impairment was detected as what
 * it was. */
static void
check_counters(struct soak *s)
{
	const struct soak_options *o = &s->o;
	const struct {
		double p;
		enum impair_reason reason;
	} did[] = {{o->drop, IMPAIR_DROP}, {o->dup, IMPAIR_DUP}, {o->reorder, IMPAIR_REORDER},
		{o->corrupt, IMPAIR_CORRUPT}, {o->corrupt_crc, IMPAIR_CORRUPT_CRC}};

	for (size_t i = 0; i < SK_ARRAY_LEN(did); i++)
		if (did[i].p > 0 && impair_count(s->rig.port[0], true, did[i].reason) == 0)
			soak_fail(s, NULL, "the wire was not hostile (%s)",
				impair_reasons.reasons[did[i].reason].name);
	if (o->corrupt_crc == 0) {
		for (unsigned i = 0; i < s->rig.neng; i++)
			eng_counters(s->rig.eng[i], no_warnings, s);
		if (s->watch.as_expected || s->watch.others)
			soak_fail(s, NULL, "a Terminate was sent");
		return;
	}
	if (s->deaths == 0 || s->watch.as_expected < s->deaths || s->watch.others > 0)
		soak_fail(s, NULL,
			"%u links broke, with %" PRIu64 " Terminates for a wrong CRC and %" PRIu64
			" others",
			s->deaths, s->watch.as_expected, s->watch.others);
}

static void
report(struct soak *s)
{
	uint64_t again = 0, dropped = 0;

	for (unsigned i = 0; i < s->rig.neng; i++)
		again += rig_count(s->rig.eng[i], "tcp", "TCP_RETRANSMIT");
	for (int i = 0; i < 2 && !s->o.one; i++)
		dropped += impair_count(s->rig.port[i], true, IMPAIR_DROP) +
			   impair_count(s->rig.port[i], false, IMPAIR_DROP);
	printf("%" PRIu64 " bytes verified: %" PRIu64 " Sends, %" PRIu64
	       " with solicited event, %" PRIu64 " with invalidate, %" PRIu64 " with both, %" PRIu64
	       " Writes, %" PRIu64 " Reads; %" PRIu64 " frames dropped, %" PRIu64
	       " segments sent again, %u links broken\n",
		s->moved, s->count[SEND], s->count[SEND_SE], s->count[SEND_INV],
		s->count[SEND_SE_INV], s->count[WRITE], s->count[READ], dropped, again, s->deaths);
}

static int
set_up(struct soak *s)
{
	const struct soak_options *o = &s->o;
	struct rig_options ro = {
		.split = o->split,
		.one = o->one,
		.v6 = o->v6,
		.vlan = (uint16_t)o->vlan,
		.mtu = o->mtu,
		.mem_len = LINKS * (SIDE_LEN + 4096),
		.ring_len = 16 << 20,
	};
	char impair[256];

	/* Each end impairs half of the frames, in the sending direction only, so that each frame is
	 * impaired once. */
	snprintf(impair, sizeof(impair),
		"dir=tx,drop=%g,dup=%g,reorder=%g,corrupt=%g,seed=%" PRIu64 ",nic=%d", o->drop,
		o->dup, o->reorder, o->corrupt, o->seed, o->nic);
	ro.impair = o->one ? NULL : impair;
	if (rig_open(&s->rig, &ro))
		return -1;
	s->watch.layer = 2; /* LLP: MPA */
	s->watch.etype = 0;
	s->watch.code = 2; /* CRC error: RFC 5044 8 */
	if (o->pcap != NULL && watch_pcap(&s->watch, o->pcap)) {
		printf("%s cannot be written\n", o->pcap);
		return -1;
	}
	for (unsigned i = 0; i < s->rig.neng; i++)
		if (watch_port(&s->watch, s->rig.port[i])) {
			printf("port %u takes no callback\n", s->rig.port[i]);
			return -1;
		}
	return 0;
}

static int
soak(struct soak *s)
{
	if (set_up(s))
		return -1;
	if (s->rig.nhands == 2)
		rte_eal_remote_launch(rig_serve, &s->rig, rte_get_next_lcore(-1, 1, 0));
	if (rig_attach(&s->rig, 0, &s->rig.hand[0]) || rig_attach(&s->rig, 1, &s->rig.hand[0]) ||
		open_client(s, 0) || open_client(s, 1))
		return -1;
	traffic(s);
	if (s->failed == 0)
		check_counters(s);
	report(s);
	if (rig_detach(&s->rig, 0) || rig_detach(&s->rig, 1) || rig_all_home(&s->rig))
		s->failed++;
	__atomic_store_n(&s->rig.stop, true, __ATOMIC_RELEASE);
	rte_eal_mp_wait_lcore();
	rig_close(&s->rig);
	if (s->watch.pcap != NULL)
		fclose(s->watch.pcap);
	return s->failed ? -1 : 0;
}

int
main(int argc, char **argv)
{
	static struct soak s;
	int n = rte_eal_init(argc, argv), rc;

	if (n < 0 || options(&s.o, argc - n, argv + n)) {
		printf("usage: soak [EAL options] -- [--bytes N] [--seed N] [--drop P] [--dup P]"
		       " [--reorder P] [--corrupt P]"
		       " [--corrupt-crc P] [--mtu N] [--vlan N] [--v6] [--split] [--one] [--nic]"
		       " [--pcap FILE]\n");
		return 2;
	}
	s.rng = s.o.seed;
	rc = soak(&s);
	printf("%s\n", rc == 0 ? "PASS" : "FAIL");
	fflush(stdout);
	/* After a failure, threads remain for which rte_eal_cleanup() would wait. */
	if (rc)
		_exit(1);
	rte_eal_cleanup();
	return 0;
}
