/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire_ext [EAL options] -- FILE: each operation of RFC 7306, and Swap in the draft's dialect, one
 * after the other between two engines. Captures the wire in FILE and prints a line for each message
 * with the expected value of each field, by tshark's field names (wire_ext.py compares them).
 * Operands and results are known answers, computed by hand.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include "../../lib/base/mem.h"
#include "../../lib/wire/wire.h"
#include "rig.h"
#include "watch.h"

#define PORT    7900
#define MEM_LEN (1u << 20)
#define WAIT_NS 60000000000ull /* generous; reached only when something is broken */
#define ALL     UINT64_MAX

struct step {
	uint8_t opcode; /* enum rd_opcode */
	bool se;
	uint64_t data, data_mask, compare, compare_mask;
	uint64_t after; /* the expected value of the word afterwards */
	uint64_t imm;
	uint32_t len; /* bytes written */
};

/* The first value of the word. */
#define START 0x00000000fffffff0ull
static const struct step rfc[] = {
	{RD_FETCH_ADD, .data = 0x20, .after = 0x0000000100000010ull},
	{RD_FETCH_ADD, .data = 0xfffffffffffffff0ull, .after = 0x0000000100000000ull},
	/* Four fields of 16 bits; the carries of the lowest and the third are dropped. */
	{RD_FETCH_ADD, .data = 0xffffffffffff8001ull, .data_mask = 0x8000800080008000ull,
		.after = 0xffff0000ffff8001ull},
	{RD_FETCH_ADD, .data = 0x0001000100018000ull, .data_mask = 0x8000800080008000ull,
		.after = 0x0000000100000001ull},
	{RD_FETCH_ADD, .data = 0, .after = 0x0000000100000001ull},
	{RD_CMP_SWAP, .data = 0x0123456789abcdefull, .data_mask = ALL,
		.compare = 0x0000000100000001ull, .compare_mask = ALL,
		.after = 0x0123456789abcdefull},
	{RD_CMP_SWAP, .data = 0x1111111111111111ull, .data_mask = ALL,
		.compare = 0x0123456789abcdeeull, .compare_mask = ALL,
		.after = 0x0123456789abcdefull},
	{RD_CMP_SWAP, .data = 0xfedcba9876543210ull, .data_mask = 0x00ff00ff00000000ull,
		.compare = 0x5555555589abcdefull, .compare_mask = 0x00000000ffffffffull,
		.after = 0x01dc459889abcdefull},
	{RD_CMP_SWAP, .data = 0x00000000000000aaull, .data_mask = 0x00000000000000ffull,
		.compare = 0x7777777777777777ull, .compare_mask = 0,
		.after = 0x01dc459889abcdaaull},
	{RD_IMM, .imm = 0x8877665544332211ull},
	{RD_IMM, .se = true, .imm = 0xf0e1d2c3b4a59687ull},
	{RD_IMM, .imm = 0xdeadbeefull}, /* 32 bits, as in verbs */
	{RD_WRITE_IMM, .imm = 0x1020304050607080ull, .len = 24},
	{RD_WRITE_IMM, .se = true, .imm = 0x0807060504030201ull, .len = 1},
	{RD_WRITE_IMM, .imm = 1, .len = 0},
};
static const struct step draft[] = {
	{RD_FETCH_ADD, .data = 0x10, .after = 0x0000000100000000ull},
	{RD_SWAP, .data = 0xa1b2c3d4e5f60718ull, .after = 0xa1b2c3d4e5f60718ull},
	{RD_SWAP, .data = 0x0000000000000001ull, .after = 0x0000000000000001ull},
};

static struct rig rig;
static struct end { /* 0 requests, 1 responds */
	struct saker *s;
	struct saker_pd *pd;
	struct saker_mr *mr;
	struct saker_cq *cq;
	struct saker_qp *qp;
	uint64_t *mem; /* 0: the sink of original values; 1: the word, followed by written bytes */
} end[2];
static uint32_t msn[2], answers; /* the next on queues 0 and 1, and on queue 3 */

static void
die(const char *what)
{
	fprintf(stderr, "FAIL: %s (%s)\n", what, saker_error());
	exit(1);
}

/* ---- Expected fields ---- */

static void
untagged(const char *way, uint32_t opcode, uint32_t qn, uint32_t n, uint32_t len)
{
	printf("%s iwarp_mpa.ulpdulength=%x iwarp_ddp.tagged_flag=0 iwarp_ddp.last_flag=1"
	       " iwarp_ddp.rsvd=0 iwarp_ddp.dv=1 "
	       "iwarp_ddp.rsvdulp=%x00000000 iwarp_ddp.qn=%x iwarp_ddp.msn=%x iwarp_ddp.mo=0 "
	       "iwarp_rdma.version=1 iwarp_rdma.rsv=0 iwarp_rdma.opcode=%x",
		way, 18 + len, 0x40 | opcode, qn, n, opcode);
}

static void
field(const char *name, uint64_t value)
{
	printf(" %s=%" PRIx64, name, value);
}

/* The operands of FetchAdd and CmpSwap have their own field names, and operands that an operation
 * does not use are fixed (RFC 7306 5.2.1). Swap has no field names, so the whole body is compared
 * (draft 5.2.1, figure 4). */
static void
means_request(const struct step *st)
{
	uint64_t to = (uintptr_t)end[1].mem;
	uint32_t stag = saker_mr_stag(end[1].mr);

	untagged("out", 10, 1, msn[1]++, 52);
	field("iwarp_rdma.atomic.reserved", 0);
	field("iwarp_rdma.atomic.request_identifier", answers);
	field("iwarp_rdma.atomic.remote_stag", stag);
	field("iwarp_rdma.atomic.remote_tagged_offset", to);
	if (st->opcode == RD_FETCH_ADD) {
		field("iwarp_rdma.atomic.opcode", 0);
		field("iwarp_rdma.atomic.add_data", st->data);
		field("iwarp_rdma.atomic.add_mask", st->data_mask);
		field("iwarp_rdma.atomic.compare_data", 0);
		field("iwarp_rdma.atomic.compare_mask", ALL);
	} else if (st->opcode == RD_CMP_SWAP) {
		field("iwarp_rdma.atomic.opcode", 2);
		field("iwarp_rdma.atomic.swap_data", st->data);
		field("iwarp_rdma.atomic.swap_mask", st->data_mask);
		field("iwarp_rdma.atomic.compare_data", st->compare);
		field("iwarp_rdma.atomic.compare_mask", st->compare_mask);
	} else {
		field("iwarp_rdma.atomic.opcode", 1);
		printf(" body=%08x%08x%08x%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64
		       "%016" PRIx64,
			1, answers, stag, to, st->data, (uint64_t)ALL, (uint64_t)0, (uint64_t)ALL);
	}
	printf("\n");
}

static void
means_response(uint64_t original)
{
	untagged("back", 11, 3, answers, 12);
	field("iwarp_rdma.atomic.original_request_identifier", answers);
	field("iwarp_rdma.atomic.original_remote_data_value", original);
	printf("\n");
	answers++;
}

/* A start-up frame of join(). */
static void
means_startup(const char *way)
{
	printf("%s", way);
	field("iwarp_mpa.rev", 1);
	field("iwarp_mpa.marker_flag", 0);
	field("iwarp_mpa.crc_flag", 1);
	field("iwarp_mpa.rej_flag", 0);
	field("iwarp_mpa.pdlength", 0);
	printf("\n");
}

/* "body" stands for the bytes behind the header, which have no field name. */
static void
means_write(const struct step *st)
{
	const uint8_t *from = (const uint8_t *)end[0].mem;

	printf("out iwarp_mpa.ulpdulength=%x iwarp_ddp.tagged_flag=1 iwarp_ddp.last_flag=1"
	       " iwarp_ddp.rsvd=0 iwarp_ddp.dv=1 "
	       "iwarp_ddp.stag=%x iwarp_ddp.tagged_offset=%" PRIx64
	       " iwarp_rdma.version=1 iwarp_rdma.rsv=0 iwarp_rdma.opcode=0",
		14 + st->len, saker_mr_stag(end[1].mr), (uint64_t)(uintptr_t)&end[1].mem[1]);
	printf(st->len > 0 ? " body=" : "");
	for (uint32_t i = 0; i < st->len; i++)
		printf("%02x", from[i]);
	printf("\n");
}

static void
means_immediate(const struct step *st)
{
	untagged("out", st->se ? 9 : 8, 0, msn[0], 8);
	field("body", st->imm);
	printf("\n");
	msn[0]++;
}

/* ---- Operations ---- */

static void
await(int at, struct rd_wc *wc)
{
	uint64_t until = eng_clock() + WAIT_NS;

	while (saker_cq_poll(end[at].cq, wc, 1) != 1) {
		rig_turn(&rig.hand[0]);
		if (eng_clock() > until)
			die("a completion does not come");
	}
	if (wc->status != RD_SUCCESS)
		die("a request failed");
}

static void
post(const struct step *st, uint32_t len)
{
	struct rd_sge sge = {(uintptr_t)end[0].mem, len, saker_mr_stag(end[0].mr)};
	struct saker_wr wr = {.opcode = st->opcode,
		.flags = RD_SIGNALED | (st->se ? RD_SOLICITED : 0),
		.nsge = st->opcode != RD_IMM,
		.rkey = saker_mr_stag(end[1].mr),
		.remote_addr = (uintptr_t)&end[1].mem[st->opcode == RD_WRITE_IMM],
		.imm = st->imm,
		.data = st->data,
		.data_mask = st->data_mask,
		.compare = st->compare,
		.compare_mask = st->compare_mask,
		.sge = &sge};

	if (saker_post_send(end[0].qp, &wr, 1) != 1)
		die("posting");
}

static void
atomic(const struct step *st, uint64_t before)
{
	struct rd_wc wc;

	means_request(st);
	means_response(before);
	end[0].mem[0] = ~before;
	post(st, 8);
	await(0, &wc);
	if (end[0].mem[0] != before || end[1].mem[0] != st->after)
		die("an Atomic came to something else");
}

static void
immediate(const struct step *st)
{
	struct saker_wr recv = {.wr_id = st->imm};
	struct rd_wc wc;

	if (saker_post_recv(end[1].qp, &recv, 1) != 1)
		die("posting a receive");
	memset(end[0].mem, 0xc3 ^ (int)st->len, st->len);
	if (st->opcode == RD_WRITE_IMM)
		means_write(st);
	means_immediate(st);
	post(st, st->len);
	await(0, &wc);
	await(1, &wc);
	if (wc.opcode != RD_RECV_IMM || wc.imm != st->imm || wc.byte_len != st->len ||
		memcmp(&end[1].mem[1], end[0].mem, st->len) != 0 ||
		!(wc.flags & RD_WC_SOLICITED) != !st->se)
		die("Immediate Data came otherwise");
}

static void
run(const struct step *steps, unsigned n)
{
	uint64_t word = START;

	end[1].mem[0] = word;
	for (unsigned i = 0; i < n; i++) {
		const struct step *st = &steps[i];

		if (st->opcode == RD_IMM || st->opcode == RD_WRITE_IMM) {
			immediate(st);
			continue;
		}
		atomic(st, word);
		word = st->after;
	}
}

/* ---- The two ends ---- */

static void
open_end(int at)
{
	struct end *e = &end[at];

	if (rig_attach(&rig, at, &rig.hand[0]))
		die("attaching");
	e->s = rig.end[at].s;
	e->mem = saker_alloc(e->s, 4096);
	if (e->mem == NULL || saker_pd_create(e->s, &e->pd) ||
		saker_cq_create(e->s, 64, NULL, &e->cq) ||
		saker_mr_create(e->pd, e->mem, 4096,
			RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_ATOMIC, &e->mr))
		die("objects");
}

static void
wait_event(int at, enum saker_event_type want, struct saker_event *ev)
{
	uint64_t until = eng_clock() + WAIT_NS;

	while (saker_event(end[at].s, ev) == 0 && eng_clock() < until)
		rig_turn(&rig.hand[0]);
	if (ev->type != want)
		die("connecting");
}

/* Uses revision 1, so that no ready-to-receive message is captured. */
static void
join(uint16_t port, uint8_t dialect)
{
	struct saker_conn_param p = {
		.ird = 16, .ord = 16, .revision = 1, .crc = 1, .dialect = dialect};
	struct saker_event ev = {.type = SAKER_EV_ENGINE_GONE};
	struct saker_listener *l;

	for (int at = 0; at < 2; at++) {
		struct saker_qp_attr attr = {.send_cq = end[at].cq,
			.recv_cq = end[at].cq,
			.sq_depth = 16,
			.rq_depth = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1};

		if (saker_qp_create(end[at].pd, &attr, &end[at].qp))
			die("creating a QP");
	}
	msn[0] = msn[1] = answers = 1;
	means_startup("out");
	means_startup("back");
	if (saker_listen(end[1].s, NULL, port, 1, NULL, &l) ||
		saker_connect(end[0].qp, NULL, &rig.end[1].addr, port, &p))
		die("connecting");
	wait_event(1, SAKER_EV_CONNECT_REQUEST, &ev);
	if (saker_accept(end[1].s, ev.request, end[1].qp, &p))
		die("accepting");
	wait_event(1, SAKER_EV_ESTABLISHED, &ev);
	wait_event(0, SAKER_EV_ESTABLISHED, &ev);
}

int
main(int argc, char **argv)
{
	struct rig_options o = {
		.vlan = ETH_NO_VLAN, .mtu = 1500, .mem_len = MEM_LEN, .ring_len = 4 << 20};
	struct watch watch = {0};
	int n = rte_eal_init(argc, argv);

	if (n < 0 || argc != n + 2) {
		fprintf(stderr, "wire_ext [EAL options] -- FILE\n");
		return 2;
	}
	if (rig_open(&rig, &o) || watch_pcap(&watch, argv[n + 1]) ||
		watch_port(&watch, rig.port[0]) || watch_port(&watch, rig.port[1]))
		die("the rig");
	open_end(0);
	open_end(1);
	join(PORT, SAKER_DIALECT_RFC7306);
	run(rfc, SK_ARRAY_LEN(rfc));
	join(PORT + 1, SAKER_DIALECT_DRAFT);
	run(draft, SK_ARRAY_LEN(draft));
	if (rig_detach(&rig, 0) || rig_detach(&rig, 1) || rig_all_home(&rig))
		die("the end");
	rig_close(&rig);
	fclose(watch.pcap);
	rte_eal_cleanup();
	return 0;
}
