/* SPDX-License-Identifier: BSD-3-Clause */
/* saker-perf: what its files share. Times are nanoseconds, sizes bytes. */
#ifndef SAKER_PERF_H
#define SAKER_PERF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../../lib/base/hist.h"
#include "../../lib/client/saker.h"
#include "../../lib/engine/engine.h"

struct rte_mempool;
struct rte_mbuf;

enum perf_op {
	PERF_SEND,
	PERF_WRITE,
	PERF_READ,
	PERF_ATOMIC_FA, /* FetchAdd of 1 */
	PERF_ATOMIC_CS, /* CmpSwap that counts up by 1 */
	PERF_WRITE_IMM,
	PERF_NO_OP, /* of --versus: none */
};
enum perf_test { PERF_LAT, PERF_BW, PERF_RATE };

#define PERF_PORT 18515

struct perf_options {
	enum perf_op op, versus;
	enum perf_test test;
	enum shm_transport transport;
	/* Falcon: enum rof_ordering, enum rof_errors, index of perf_psps[] */
	unsigned ordering, errors, psp;
	bool tunnel;
	uint32_t size, iters, qps, idle_qps, depth, mtu, rounds;
	uint32_t
		milliseconds; /* that a round of bw or rate lasts at most; 0: as long as it takes */
	bool verify, json, quiet, listen, crc, markers, floor, counters, offload;
	const char *port;    /* embedded: "ring", or a vdev's name */
	const char *impair;  /* arguments of the hostile wire between the two ends */
	const char *client;  /* socket of a running saker */
	const char *connect; /* address of the other end */
	const char *address; /* own ADDR/LEN with --listen or --connect on a port */
	const char *pcap;
	uint16_t tcp_port;
};

/* Fills `o` from the words behind "--"; on a wrong one prints a sentence that names it and returns
 * -1; 1: --help was given. */
int perf_options_parse(struct perf_options *o, int argc, char **argv);
const char *perf_op_name(enum perf_op op);

static inline bool
perf_op_atomic(enum perf_op op)
{
	return op == PERF_ATOMIC_FA || op == PERF_ATOMIC_CS;
}

/* The active end asks and has its answer when the request completes: the passive one does nothing.
 */
static inline bool
perf_op_asks(enum perf_op op)
{
	return op == PERF_READ || perf_op_atomic(op);
}

/* Each message takes a receive of the other end. */
static inline bool
perf_op_receives(enum perf_op op)
{
	return op == PERF_SEND || op == PERF_WRITE_IMM;
}

const char *perf_test_name(enum perf_test test);
const char *perf_transport_name(enum shm_transport transport);

/* What a run, or its floor, came to. */
struct perf_figures {
	struct sk_hist
		*lat; /* of one way, or of the round trip where perf_op_asks(); NULL but for lat */
	uint64_t bytes, msgs, ns;
};

static inline double
perf_gbps(const struct perf_figures *f)
{
	return f->ns ? 8.0 * (double)f->bytes / (double)f->ns : 0;
}

static inline double
perf_mops(const struct perf_figures *f)
{
	return f->ns ? 1e3 * (double)f->msgs / (double)f->ns : 0;
}

/* What the two ends say to each other beside the test, one per QP: 8-byte inline Writes into the
 * receiver's buffer. And the cell of the Atomics: at the passive end their target, at the active
 * one where the original values come. */
enum perf_word { PERF_MEET, PERF_CREDIT, PERF_ERRORS, PERF_WORDS };
struct perf_words {
	uint64_t w[PERF_WORDS];
	uint64_t cell;
};

/* A QP that works, counted from its birth. */
struct perf_flow {
	uint64_t sent;    /* requests of the test; of them */
	uint64_t taken;   /* those that take a receive */
	uint64_t signals; /* those that asked for a completion, and */
	uint64_t done;    /* the completions that came */
	uint64_t recv_posted, received;
	uint64_t until;   /* of this round: sent, or received */
	uint64_t atomics; /* posted by the active end; which the passive one expects in its cell */
	uint64_t imms_out, imms_in;
};

/* One end: a client of some engine, its memory and its QPs. Every end runs in a thread of its own,
 * in straight-line code that calls perf_turn() wherever it waits. */
struct perf_end {
	const struct perf_options *o;
	enum perf_op op;    /* of this round */
	bool active;        /* connects, and measures */
	struct eng *engine; /* NULL when a saker elsewhere does the work */
	struct saker *s;
	struct saker_pd *pd;
	struct saker_mr *mr;
	struct saker_cq *cq;
	struct saker_qp **qp; /* [qps + idle_qps] */
	uint32_t nqp;
	uint8_t *buf; /* out, in (each `part` bytes), then words of the peer and of ours, [qps] each
		       */
	uint64_t part;
	uint64_t peer_addr; /* of its buffer */
	uint32_t peer_stag;
	int client; /* number at `engine` */
	uint64_t turns, meetings;
	uint32_t waited; /* turns since something was posted */
	uint64_t errors, errors_told;
	uint64_t completed;     /* completions of sends, writes and reads */
	uint64_t received;      /* completions of receives */
	struct perf_flow *flow; /* [qps] */
	uint8_t seq;            /* of the ping-pong: the last byte of a message */
};

uint8_t *perf_out(
	const struct perf_end *e); /* what is sent or written from, and read by the peer */
uint8_t *perf_in(
	const struct perf_end *e); /* where the peer writes and sends to, and where reads go */
uint64_t perf_told(
	const struct perf_end *e, uint32_t qp, enum perf_word w); /* the peer's latest word */
uint64_t perf_words_off(const struct perf_end *e, uint32_t qp);   /* from the buffer's begin */
uint64_t perf_cell_off(const struct perf_end *e, uint32_t qp);
uint64_t *perf_cell(const struct perf_end *e, uint32_t qp);

/* All return 0, or -1 after having said what failed. */
int perf_fail(const char *what, int rc);
/* Memory, CQ, QPs; then connects them all to `addr`, or accepts as many. */
int perf_end_open(struct perf_end *e, struct saker *s);
int perf_end_connect(struct perf_end *e, const struct sk_addr *addr);
int perf_end_accept(struct perf_end *e);
void perf_end_close(struct perf_end *e);

/* One turn of waiting: drives the engine, if it is ours; now and then looks whether the connection
 * still stands. */
int perf_turn(struct perf_end *e);
void perf_idle(void *end); /* drives the engine alone, as libsaker asks for it */
/* Until the engine has nothing left to do (acknowledgements are out). */
void perf_settle(struct perf_end *e);
/* Posts `n` requests of the test's operation, the last of them signalled if asked for; takes turns
 * while the queue is full. */
int perf_post(struct perf_end *e, uint32_t qp, uint32_t n, bool signaled);
int perf_post_recv(struct perf_end *e, uint32_t qp, uint32_t n);
/* Tells the peer `value`. */
int perf_tell(struct perf_end *e, uint32_t qp, enum perf_word w, uint64_t value);
/* One Atomic of the test's operation on the cell of `qp`, signalled. */
struct perf_operands {
	uint64_t data, data_mask, compare, compare_mask;
};
int perf_post_atomic(struct perf_end *e, uint32_t qp, const struct perf_operands *op);
/* Takes completions into the counts. Immediate Data that came is looked at: perf_mistake(). */
int perf_reap(struct perf_end *e);
/* After requests have completed: did the last Atomic of `qp` find what its forerunners left? At the
 * passive end, that has been told that `iters` more are done: does its cell count them all? Both do
 * nothing for other operations. */
void perf_check_cell(struct perf_end *e, uint32_t qp);
void perf_check_served(struct perf_end *e, uint32_t qp, uint32_t iters);
/* Counts a mistake, and says what was found the first few times. */
void perf_mistake(struct perf_end *e, const char *what, uint64_t n, uint64_t is, uint64_t want);
/* Both ends' mistakes, as the active one knows them after it has met the other. */
uint64_t perf_mistakes(const struct perf_end *e);
/* Both ends meet: the active one speaks, the passive one hears and answers. What was posted before
 * has been placed. */
int perf_meet(struct perf_end *e);
/* The passive end's two halves of it. The second tells its mistakes too. */
int perf_meet_hear(struct perf_end *e);
int perf_meet_answer(struct perf_end *e);

/* The active end runs, the passive one serves, with the same number. */
int perf_lat_run(struct perf_end *e, uint32_t iters, struct perf_figures *f);
int perf_lat_serve(struct perf_end *e, uint32_t iters);
int perf_stream_run(struct perf_end *e, uint32_t iters, struct perf_figures *f);
int perf_stream_serve(struct perf_end *e, uint32_t iters);
/* Each operation in lockstep, every byte compared; mistakes go to e->errors. */
int perf_verify_run(struct perf_end *e, uint32_t iters);
int perf_verify_serve(struct perf_end *e, uint32_t iters);
/* The same of Atomics: masks too, the original values, and what is in memory afterwards. */
int perf_verify_atomic_run(struct perf_end *e, uint32_t iters);
int perf_verify_atomic_serve(struct perf_end *e, uint32_t iters);

/* --verify, of the operation and of the one it is compared with. */
uint32_t perf_verified(const struct perf_options *o); /* how many operations each */
int perf_verify(struct perf_end *e);
/* `iters` of the operation into *real, and as many of --versus into *versus if asked for: one after
 * the other, every other round the other way round. Either end. */
int perf_round(struct perf_end *e, uint32_t r, uint32_t iters, struct perf_figures *real,
	struct perf_figures *versus);

/* The floor: raw frames like the transport's over the same ports with the same copies and passes of
 * its checksum, and no protocol. */
struct perf_shape {
	uint32_t piece;   /* largest piece, bytes */
	uint32_t packed;  /* pieces of that size in a frame */
	uint32_t headers; /* bytes in front of the first one */
	uint32_t head;    /* of each piece, */
	uint32_t tail;    /* and behind it */
	bool crc;         /* the tail is one */
	bool sum;         /* UDP's checksum */
};
struct perf_floor {
	const struct perf_options *o;
	struct perf_shape shape;
	uint16_t port;
	uint8_t *buf; /* `size` bytes twice */
	struct rte_mempool *pool;
	struct rte_mbuf *pending[64]; /* built, not yet taken by the port */
	uint32_t npending;
	uint64_t bad; /* checksums that were wrong */
};
int perf_floor_run(struct perf_floor *f, uint32_t iters, struct perf_figures *out);
int perf_floor_serve(struct perf_floor *f, uint32_t iters);

/* Writes what passes through `port`, both ways, to a file in pcap format. */
int perf_pcap_open(uint16_t port, const char *path);
void perf_pcap_close(void);

/* On stderr: the counters of the engine and of the port, those that are not zero, and what an idle
 * QP costs. */
void perf_counters_print(const struct eng *e, uint16_t port, const char *who);

/* A joined pair of ports for the embedded form. */
int perf_ports_pair(const struct perf_options *o, uint16_t ports[2]);
/* An engine on `port` with the address "ADDR/LEN"; NULL after having said what failed. */
struct eng *perf_engine(const struct perf_options *o, uint16_t port, const char *address);
/* A flat client of `e->engine`, with memory for the end's QPs. */
int perf_attach(struct perf_end *e);

int perf_embedded(const struct perf_options *o);
int perf_single(const struct perf_options *o); /* --listen, --connect, --client */

struct perf_report {
	const struct perf_options *o;
	struct perf_figures real, floor, versus; /* ns 0: was not measured */
	uint64_t errors;
	uint32_t verified; /* operations whose bytes were compared */
};
void perf_report_print(const struct perf_report *r);
void perf_progress(const struct perf_options *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
