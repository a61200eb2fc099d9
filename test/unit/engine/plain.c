/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The predicted path of received TCP segments against the general one. The same work runs twice in
 * virtual time, with the same random numbers, over a wire that loses, delays, cuts and changes
 * frames: once with eng_config.general_tcp. Both runs put the same bytes on the wire, and have the
 * same completions and counters.
 */
#include <criterion/criterion.h>
#include <rte_mbuf.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/wire/plain.h"
#include "falcon_rig.h"

#define ROUNDS   600
#define START_NS 1000000000000ull
#define COUNTERS 512

struct outcome {
	uint64_t wire[2], frames[2]; /* a hash of the frames to each node, and their number */
	uint64_t completions;
	uint64_t parsed;   /* calls of wire_pkt_parse() */
	uint64_t segments; /* plain frames among those to both nodes, as the wire delivers them */
	uint64_t counter[2][COUNTERS];
	unsigned ncounters[2];
};

static struct outcome out;
static uint64_t chance;
static bool general;

/* ---- Functions in the place of those of the libraries: the linker's option --wrap ---- */

int __real_wire_pkt_parse(struct wire_pkt *pkt, const uint8_t *head, size_t head_len, size_t len);
int __wrap_wire_pkt_parse(struct wire_pkt *pkt, const uint8_t *head, size_t head_len, size_t len);
uint64_t __wrap_eng_clock(void);
void __wrap_sk_random(void *buf, size_t len);

int
__wrap_wire_pkt_parse(struct wire_pkt *pkt, const uint8_t *head, size_t head_len, size_t len)
{
	out.parsed++;
	return __real_wire_pkt_parse(pkt, head, head_len, len);
}

uint64_t
__wrap_eng_clock(void)
{
	return START_NS;
}

void
__wrap_sk_random(void *buf, size_t len)
{
	static uint8_t next;

	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = next = (uint8_t)(next * 5 + 113);
}

/* ---- The wire ---- */

static unsigned
one_of(unsigned n)
{
	chance = chance * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(chance >> 33) % n;
}

static void
hash(uint64_t *h, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		*h = (*h ^ p[i]) * 0x100000001b3ull;
}

/* Changes a field that ends no connection, and corrects the checksums. */
static void
change_field(uint8_t *p, size_t len)
{
	static const struct {
		uint8_t at, mask;
	} fields[] = {{15, 0x03}, {15, 0xfc}, {18, 0xff}, {20, 0x40}, {22, 0xff}, {46, 0x0f},
		{47, TCP_PSH}, {47, TCP_URG}, {47, TCP_CWR}, {53, 0xff}, {54, 0x01}, {65, 0xff}};
	unsigned k = one_of(SK_ARRAY_LEN(fields));
	struct wire_pkt pkt;
	uint16_t sum;

	if (__real_wire_pkt_parse(&pkt, p, len, len) < 0 || pkt.eth.type != ETH_IPV4 ||
		pkt.ip.proto != IP_TCP || pkt.payload < PLAIN_LEN)
		return;
	p[fields[k].at] ^= fields[k].mask & (1 + one_of(255));
	memset(p + ETH_LEN + 10, 0, 2);
	sum = wire_sum_fold(wire_sum(0, p + ETH_LEN, IP4_LEN));
	memcpy(p + ETH_LEN + 10, &sum, 2);
	memset(p + PLAIN_L4 + TCP_CKSUM_OFFSET, 0, 2);
	sum = wire_sum_fold(
		wire_sum(wire_pseudo_sum(&pkt.ip.src, &pkt.ip.dst, IP_TCP, pkt.ip.payload_len),
			p + PLAIN_L4, pkt.ip.payload_len));
	memcpy(p + PLAIN_L4 + TCP_CKSUM_OFFSET, &sum, 2);
}

/* Cuts a frame behind its first `at` bytes. */
static void
cut_frame(struct rte_mbuf *m, uint32_t at)
{
	uint32_t rest = m->pkt_len - at;
	struct rte_mbuf *tail = rte_pktmbuf_alloc(frig.pool);

	cr_assert_not_null(tail);
	memcpy(rte_pktmbuf_append(tail, (uint16_t)rest), rte_pktmbuf_mtod_offset(m, char *, at),
		rest);
	cr_assert_eq(rte_pktmbuf_trim(m, (uint16_t)rest), 0);
	cr_assert_eq(rte_pktmbuf_chain(m, tail), 0);
}

static void
on_wire(struct rte_mbuf *m, int node)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	struct wire_plain plain;

	out.frames[node]++;
	for (const struct rte_mbuf *s = m; s != NULL; s = s->next)
		hash(&out.wire[node], rte_pktmbuf_mtod(s, uint8_t *), s->data_len);
	if (m->nb_segs == 1 && one_of(20) == 0)
		p[one_of(SK_MIN(m->data_len, 90u))] ^= (uint8_t)(1u << one_of(8));
	else if (m->nb_segs == 1 && one_of(6) == 0)
		change_field(p, m->data_len);
	if (m->nb_segs == 1 && m->data_len > 80 && one_of(10) == 0)
		cut_frame(m, 60 + one_of(m->data_len - 60));
	out.segments += wire_plain_match(&plain, p, m->data_len);
}

/* ---- The work ---- */

static void
plain_tweak(struct eng_config *cfg, int node)
{
	memset(&cfg->tcp.isn_key, 7 + node, sizeof(cfg->tcp.isn_key));
	cfg->general_tcp = general;
}

static void
plain_counter(void *arg, const char *layer, const char *name, enum sk_severity sev,
	const char *help, uint64_t value)
{
	int i = *(int *)arg;

	cr_assert_lt(out.ncounters[i], COUNTERS);
	out.counter[i][out.ncounters[i]++] = value;
}

static void
work(void)
{
	static const uint8_t ops[] = {RD_WRITE, RD_READ, RD_FETCH_ADD, RD_WRITE, RD_SEND};

	frig_connect_over(SAKER_IWARP);
	frig.port = on_wire;
	frig.bad = 5;
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned k = i % SK_ARRAY_LEN(ops), more = 1 + one_of(4);
		uint32_t len = ops[k] == RD_FETCH_ADD ? 8 : 1 + one_of(i % 7 == 0 ? 9000 : 200);
		int node = (int)one_of(2);
		struct rd_wc wc;

		for (unsigned n = 0; n < more; n++) {
			if (ops[k] == RD_SEND)
				frig_recv(!node, i);
			frig_post(node, ops[k], len, i);
		}
		for (unsigned n = 0; n < more; n++) {
			wc = frig_wc(node);
			cr_assert_eq(wc.status, RD_SUCCESS);
			hash(&out.completions, &wc.wr_id, sizeof(wc.wr_id));
			if (ops[k] == RD_SEND)
				wc = frig_wc(!node);
			hash(&out.completions, &wc.byte_len, sizeof(wc.byte_len));
			hash(&out.completions, &frig.now, sizeof(frig.now));
		}
	}
	frig.bad = 0;
	frig.port = NULL;
}

/* Runs the work in a process of its own, and returns the outcome. */
static struct outcome
outcome_of(bool all_general)
{
	struct outcome o = {0};
	size_t n = 0;
	ssize_t k;
	int fd[2], status;
	pid_t pid;

	cr_assert_eq(pipe(fd), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		general = all_general;
		pair_eal();
		frig_start(plain_tweak);
		frig.step = 2000;
		work();
		for (int i = 0; i < 2; i++)
			eng_counters(frig.p.e[i], plain_counter, &i);
		frig_stop();
		_exit(write(fd[1], &out, sizeof(out)) == sizeof(out) ? 0 : 1);
	}
	close(fd[1]);
	while ((k = read(fd[0], (char *)&o + n, sizeof(o) - n)) > 0)
		n += (size_t)k;
	close(fd[0]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(n, sizeof(o), "the work failed, status %d", status);
	return o;
}

Test(engine_plain, the_predicted_path_equals_the_general_one)
{
	static struct outcome a, b;

	a = outcome_of(false);
	b = outcome_of(true);
	cr_assert_gt(b.segments, 900, "%lu segments, %lu and %lu frames", b.segments, b.frames[0],
		b.frames[1]);
	cr_assert_geq(b.parsed, b.segments, "%lu of %lu", b.parsed, b.segments);
	cr_assert_lt(a.parsed, b.parsed / 2, "%lu of %lu frames were predicted",
		b.parsed - a.parsed, b.parsed);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(a.frames[i], b.frames[i]);
		cr_assert_eq(a.wire[i], b.wire[i], "the bytes to node %d", i);
		cr_assert_eq(a.ncounters[i], b.ncounters[i]);
		for (unsigned k = 0; k < a.ncounters[i]; k++)
			cr_assert_eq(a.counter[i][k], b.counter[i][k],
				"counter %u of node %d: %lu, %lu", k, i, a.counter[i][k],
				b.counter[i][k]);
	}
	cr_assert_eq(a.completions, b.completions);
	cr_assert_eq(a.segments, b.segments);
}
