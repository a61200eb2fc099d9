/* SPDX-License-Identifier: BSD-3-Clause */
/* The types and functions that the files of saker-perf share. Times are in ns, sizes in bytes. */
#ifndef SAKER_PERF_H
#define SAKER_PERF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/queue.h>

#include <saker/saker.h>

#include "../../lib/base/hist.h"
#include "../../lib/engine/engine.h"

struct rte_mempool;
struct rte_mbuf;

enum perf_op {
	PERF_SEND,
	PERF_WRITE,
	PERF_READ,
	PERF_ATOMIC_FA, /* FetchAdd of 1 */
	PERF_ATOMIC_CS, /* CmpSwap that increments by 1 */
	PERF_WRITE_IMM,
	PERF_NO_OP, /* no --versus */
};
enum perf_test { PERF_LAT, PERF_BW, PERF_RATE };

#define PERF_PORT      18515
#define PERF_WARMUP    1000u
#define PERF_ITERS_MAX 1000000000u
/* Connections between two addresses and one listener port: fewer than the engine has local ports
 * for them (49152 to 65535). */
#define PERF_PATH_QPS 16000u
#define PERF_LOCALS   2 /* local addresses of the connecting end of the embedded form */

struct perf_options {
	enum perf_op op, versus;
	enum perf_test test;
	enum saker_transport transport;
	unsigned ordering, errors; /* Falcon: enum rof_ordering, enum rof_errors */
	unsigned psp;              /* Falcon: index of psps[] in options.c */
	bool tunnel;
	uint32_t size;                  /* bytes of a message in this step of --sizes */
	uint32_t size_first, size_last; /* of --sizes; without it, the same as `size` */
	uint32_t iters, qps, idle_qps, depth, mtu, rounds;
	uint32_t warmup;     /* embedded: messages before the first round, not counted */
	uint32_t inline_max; /* bytes of a message that its request contains */
	uint32_t cq_mod;     /* a stream: requests of which the last one is signalled; 0: default */
	uint64_t duration;   /* longest time in ns of all rounds together; 0: no limit */
	bool bidirectional;  /* a stream: both ends send */
	bool events;         /* wait for events of the CQ, and sleep */
	bool verify, json, histogram, quiet, listen, crc, markers, floor, counters, offload;
	const char *port;    /* embedded: "ring" or "memif" */
	const char *impair;  /* arguments of the hostile wire between the two ends, or NULL */
	const char *client;  /* socket of a running saker, or NULL */
	const char *connect; /* address of the other end, or NULL */
	const char *address; /* own ADDR/LEN with --listen or --connect on a port */
	const char *pcap;
	uint16_t tcp_port; /* the first listener port */
};

/* Fills *o from the words behind "--". Returns 0, 1 when --help was given, or -1 after printing a
 * sentence about the wrong option. */
int perf_options_parse(struct perf_options *o, int argc, char **argv);
/* The part of it that follows the table: checks combinations and sets what they leave open. Returns
 * 0, or -1 after printing a sentence. */
int perf_options_check(struct perf_options *o);
/* Prints "--NAME VALUE WHY". Returns -1. */
int perf_options_refuse(const char *name, const char *value, const char *why);
/* Prints the options with their defaults, in 80 columns. */
void perf_options_usage(void);
const char *perf_op_name(enum perf_op op);
/* Writes the options that both ends must share, as words of the command line, to `text`, with a
 * blank before each option. */
void perf_options_shared(const struct perf_options *o, char *text, size_t size);
/* Compares `text` of both ends. Returns 0, or -1 after printing the first option that differs.
 * `theirs` may contain anything. */
int perf_options_compare(const char *ours, const char *theirs);
/* Returns the number of operations that --verify checks. */
uint32_t perf_verified(const struct perf_options *o);
/* Returns how many sizes --sizes has. */
unsigned perf_steps(const struct perf_options *o);
/* Returns the options of step `i`: a copy of *o with the size of that step. */
struct perf_options perf_step(const struct perf_options *o, unsigned i);

/* Returns how many words of the command line are EAL's: those before "--", or 0 without "--". */
int perf_eal_words(int argc, char **argv);
/* Initializes EAL with argv[0..n), or, if `n` is 0, with what the form of the program needs.
 * Returns 0, or -1 after printing an error. */
int perf_eal_init(const struct perf_options *o, int n, char **argv);

static inline bool
perf_op_atomic(enum perf_op op)
{
	return op == PERF_ATOMIC_FA || op == PERF_ATOMIC_CS;
}

/* Returns whether the operation fetches data: it completes at the active end when the response
 * arrives, and the passive end does nothing. */
static inline bool
perf_op_fetches(enum perf_op op)
{
	return op == PERF_READ || perf_op_atomic(op);
}

/* Returns whether each message consumes a receive of the other end. */
static inline bool
perf_op_receives(enum perf_op op)
{
	return op == PERF_SEND || op == PERF_WRITE_IMM;
}

const char *perf_test_name(enum perf_test test);
const char *perf_transport_name(enum saker_transport transport);

/* The result of a run, or of its floor. */
struct perf_figures {
	/* Latencies of one way, or of the round trip if perf_op_fetches(). NULL for bw and rate. */
	struct sk_hist *lat;
	uint64_t bytes, msgs, ns;
	double peak; /* bandwidth in Gb/s of the best round */
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

/* Words that the two ends send each other beside the test, for each QP: 8-byte inline Writes into
 * the receiver's buffer. The cell belongs to the Atomics: at the passive end it is their target, at
 * the active end it receives the original values. */
enum perf_word {
	PERF_SYNC,
	PERF_CREDIT, /* receives that were posted */
	PERF_ERRORS,
	PERF_END, /* in the upper half the number of a run, in the lower one its messages */
	PERF_WORDS
};
struct perf_words {
	uint64_t w[PERF_WORDS];
	uint64_t cell;
};

/* The counters of a QP under test since its creation. */
struct perf_flow {
	uint64_t sent;    /* requests of the test */
	uint64_t taken;   /* requests that consume a receive */
	uint64_t signals; /* requests that were signalled */
	uint64_t done;    /* completions of signalled requests */
	uint64_t recv_posted, received;
	uint64_t until;           /* the value of `sent` at the end of this run */
	uint64_t first, first_in; /* the values of `sent` and `received` at the start of this run */
	bool ended;               /* the peer has been sent PERF_END of this run */
	uint64_t atomics; /* Atomics posted by the active end, expected by the passive end */
	uint64_t imms_out, imms_in;
	TAILQ_ENTRY(perf_flow) ready;
	bool is_ready; /* it is in perf_end.ready */
};

/* One end: a client of an engine, its memory and its QPs. Each end runs in a thread of its own, in
 * sequential code that calls perf_turn() wherever it waits. */
struct perf_end {
	const struct perf_options *o;
	enum perf_op op;    /* of this round */
	bool active;        /* this end connects and measures */
	struct eng *engine; /* NULL when the engine is in another process */
	struct eng *other;  /* a second engine that this end polls, or NULL */
	struct saker *s;
	struct saker_pd *pd;
	struct saker_mr *mr;
	struct saker_cq **cq; /* [ncq]; each serves `cq_qps` QPs under test */
	uint32_t ncq, cq_qps;
	struct saker_qp **qp; /* [qps + idle_qps] */
	uint32_t nqp;
	struct saker_listener **listener;  /* [perf_ports()] of the accepting end, or NULL */
	struct sk_addr local[PERF_LOCALS]; /* [nlocal] of the connecting end; 0: by route */
	uint32_t nlocal;
	uint64_t connect_ns; /* the connecting end: the time in which all QPs were connected */
	/* Outgoing data and incoming data (`part` bytes each), then struct perf_words [qps]. */
	uint8_t *buf;
	uint64_t part;
	uint64_t peer_addr; /* of the peer's buffer */
	uint32_t peer_stag;
	int client; /* client number at `engine` */
	uint64_t turns, syncs;
	uint32_t runs;   /* the number of the present run: a test of one operation */
	uint32_t waited; /* turns since the last post */
	bool armed;      /* --events: the CQs are armed */
	bool for_word;   /* --events: what is waited for raises no event */
	uint64_t errors, errors_sent;
	uint64_t completed;     /* completions of requests */
	uint64_t received;      /* completions of receives */
	struct perf_flow *flow; /* [qps] */
	/* Flows that may go on: those with new completions, and those that wait for the peer's
	 * word. */
	TAILQ_HEAD(perf_flows, perf_flow) ready;
	uint8_t seq; /* of the ping-pong: the last byte of a message */
};

/* Return the buffer for outgoing data (the source of Sends and Writes, which the peer reads), and
 * the one for incoming data (the target of the peer's Writes and Sends, and of own Reads). */
uint8_t *perf_out(const struct perf_end *e);
uint8_t *perf_in(const struct perf_end *e);
/* Returns the latest value that the peer has sent of a word. */
uint64_t perf_peer_word(const struct perf_end *e, uint32_t qp, enum perf_word w);
/* Return the offsets of a QP's words and of its cell in the buffer. */
uint64_t perf_words_off(const struct perf_end *e, uint32_t qp);
uint64_t perf_cell_off(const struct perf_end *e, uint32_t qp);
uint64_t *perf_cell(const struct perf_end *e, uint32_t qp);

/* All functions that return int return 0, or -1 after printing an error. */
/* Prints "WHAT: error `-rc`". Returns -1. */
int perf_fail(const char *what, int rc);
/* Creates the end's memory, CQ and QPs. */
int perf_end_open(struct perf_end *e, struct saker *s);
/* Return the numbers of local addresses of the connecting end, and of listener ports from
 * o->tcp_port on, that all QPs need. */
uint32_t perf_locals(const struct perf_options *o);
uint32_t perf_ports(const struct perf_options *o);
/* Opens the listeners. perf_end_accept() closes them. */
int perf_end_listen(struct perf_end *e);
/* Connects all QPs to `addr`, or accepts as many connections. */
int perf_end_connect(struct perf_end *e, const struct sk_addr *addr);
int perf_end_accept(struct perf_end *e);
void perf_end_close(struct perf_end *e);

/* Runs one turn of a waiting loop: polls the engine if it is in this process, and from time to time
 * checks that the connection still exists. */
int perf_turn(struct perf_end *e);
/* Polls the engine only. libsaker calls this while it waits. */
void perf_idle(void *end);
/* Polls the engine until it has no more work, so that all acknowledgements have been sent. */
void perf_settle(struct perf_end *e);
/* Waits at the accepting end until the peer has ended a connection, or until nothing has happened
 * for 3 s: the last word to the peer may be lost, and is then sent again, or the peer may not have
 * taken it yet. */
void perf_linger(struct perf_end *e);
/* Posts `n` requests of the operation under test, the last of them signalled if `signaled`. Runs
 * turns while the send queue is full. */
int perf_post(struct perf_end *e, uint32_t qp, uint32_t n, bool signaled);
int perf_post_recv(struct perf_end *e, uint32_t qp, uint32_t n);
/* Sends the peer a word. */
int perf_send_word(struct perf_end *e, uint32_t qp, enum perf_word w, uint64_t value);
/* Sends the peer how many messages of this run the QP has sent: the run has no more. */
int perf_send_end(struct perf_end *e, uint32_t qp);
/* Returns whether the peer has ended this run on the QP. perf_wait_end() waits for it. */
bool perf_peer_end(const struct perf_end *e, uint32_t qp, uint32_t *msgs);
int perf_wait_end(struct perf_end *e, uint32_t qp, uint32_t *msgs);
/* Posts one signalled Atomic of the operation under test on the cell of `qp`. */
struct perf_operands {
	uint64_t data, data_mask, compare, compare_mask;
};
int perf_post_atomic(struct perf_end *e, uint32_t qp, const struct perf_operands *op);
/* Adds a flow to the end of perf_end.ready, unless it is there. */
void perf_ready(struct perf_end *e, struct perf_flow *f);
/* Polls the CQs, counts the completions, and adds their flows to perf_end.ready. Checks Immediate
 * Data and reports errors in it with perf_mistake(). */
int perf_reap(struct perf_end *e);
/* Checks, after requests have completed, that the last Atomic of `qp` returned the value that the
 * previous ones left. Does nothing for other operations. */
void perf_check_cell(struct perf_end *e, uint32_t qp);
/* Checks, at the passive end after a run, that its cell has counted the Atomics of the run. Does
 * nothing for other operations. */
int perf_check_served(struct perf_end *e, uint32_t qp);
/* Counts a mistake, and prints the first few: item `n` of kind `what` is `is` instead of `want`. */
void perf_mistake(struct perf_end *e, const char *what, uint64_t n, uint64_t is, uint64_t want);
/* Returns the mistakes of both ends, at the active end after perf_sync(). */
uint64_t perf_mistakes(const struct perf_end *e);
/* Synchronizes both ends: the active end sends a word, the passive end waits for it and answers.
 * All earlier requests have then been placed. */
int perf_sync(struct perf_end *e);
/* The two steps of perf_sync() at the passive end. The second also sends the number of mistakes. */
int perf_sync_wait(struct perf_end *e);
int perf_sync_answer(struct perf_end *e);

/* Returns whether a round that began at `start` has lasted as long as --duration allows. */
bool perf_late(const struct perf_options *o, uint64_t start);
/* Measure `iters` messages, or those of a round's duration. The active end decides when a run ends,
 * and the passive end serves until then. */
int perf_lat_run(struct perf_end *e, uint32_t iters, struct perf_figures *f);
int perf_lat_serve(struct perf_end *e);
int perf_stream(struct perf_end *e, uint32_t iters, struct perf_figures *f);
/* Execute operations one at a time and compare every byte. They count mistakes in e->errors. */
int perf_verify_run(struct perf_end *e, uint32_t iters);
int perf_verify_serve(struct perf_end *e, uint32_t iters);
/* The same for Atomics: they compare masks, original values, and the memory afterwards. */
int perf_verify_atomic_run(struct perf_end *e, uint32_t iters);
int perf_verify_atomic_serve(struct perf_end *e, uint32_t iters);

/* Verifies the operation and the one of --versus. */
int perf_verify(struct perf_end *e);
/* Measures round `r`: `iters` of the operation into *real and, with --versus, as many of the other
 * one into *versus. The order alternates from round to round. Both ends call this. */
int perf_round(struct perf_end *e, uint32_t r, uint32_t iters, struct perf_figures *real,
	struct perf_figures *versus);

/* The floor: raw frames in the shape of the transport's, over the same ports, with the same sums or
 * the same cipher, but without a protocol and without the product's code. */
struct perf_shape {
	uint32_t piece;   /* largest piece, bytes */
	uint32_t packed;  /* pieces of that size in a frame */
	uint32_t headers; /* bytes before the first piece */
	uint32_t head;    /* bytes of header of each piece */
	uint32_t hidden;  /* bytes of headers that are encrypted with the piece */
	uint32_t sum_at;  /* offset of the checksum's field in the frame, or 0 without a checksum */
	bool crc_tail;    /* each piece is padded and followed by a CRC's field */
	bool crc;         /* the CRC is computed */
};
struct perf_seal;
struct perf_floor {
	const struct perf_options *o;
	struct perf_shape shape;
	struct perf_seal *seal; /* NULL unless packets are sealed */
	uint8_t *scratch; /* a sealed packet before its copy with other stores than plain ones */
	unsigned stores;  /* of the sender: 0, PERF_PASS_STREAM or PERF_PASS_STRING */
	uint16_t port;
	uint8_t *buf; /* outgoing and incoming data */
	struct rte_mempool *pool;
	struct rte_mbuf *pending[64]; /* frames that the port has not accepted yet */
	uint32_t npending;
	uint64_t bad; /* frames and pieces with a wrong sum or ICV */
};
/* Kinds of stores of the sender: plain and streaming ones, and the string instruction. */
#define PERF_FLOOR_KINDS 3
/* Returns the number of kinds that are alternatives for frames of this shape: 1 to
 * PERF_FLOOR_KINDS. */
unsigned perf_floor_kinds(const struct perf_options *o);
/* Returns the name of a kind, a number below PERF_FLOOR_KINDS. */
const char *perf_floor_kind_name(unsigned kind);
/* Creates the frames in a pool with the name `pool`. */
int perf_floor_open(
	struct perf_floor *f, const struct perf_options *o, uint16_t port, const char *pool);
/* Frees all of it. The other end has received all its frames. */
void perf_floor_close(struct perf_floor *f);
/* Measure up to `iters` messages with the stores of a kind. */
int perf_floor_run(struct perf_floor *f, uint32_t iters, unsigned kind, struct perf_figures *out);
int perf_floor_serve(struct perf_floor *f, uint32_t iters, unsigned kind);

/* Captures all frames of `port`, in both directions, to a file in pcap format. */
int perf_pcap_open(uint16_t port, const char *path);
void perf_pcap_close(void);

/* Prints to stderr the nonzero counters of the engine and of the port, and the memory of an idle
 * QP. */
void perf_counters_print(const struct eng *e, uint16_t port, const char *who);

/* Creates a connected pair of ports for the embedded form. */
int perf_ports_pair(const struct perf_options *o, uint16_t ports[2]);
/* Creates an engine on `port` with `n` addresses "ADDR/LEN". Returns NULL after printing an
 * error. */
struct eng *perf_engine(
	const struct perf_options *o, uint16_t port, const char *const *address, unsigned n);
/* Attaches a flat client to `e->engine`, with memory for the end's QPs, and opens the end. */
int perf_attach(struct perf_end *e);

/* Run the program: both ends, or one end (--listen, --connect, --client). Return the exit code. */
int perf_embedded(const struct perf_options *o);
int perf_single(const struct perf_options *o);

struct perf_report {
	const struct perf_options *o; /* of the step */
	unsigned step, steps;
	struct perf_figures real, floor, versus; /* with `ns` 0: not measured */
	unsigned floor_kind;                     /* of the floor, which is the best one */
	uint64_t placement;  /* median of the floor of a 64-byte frame, or 0: not measured */
	uint64_t connect_ns; /* perf_end.connect_ns */
	uint64_t errors;
	uint32_t verified; /* operations whose bytes were compared */
	int cpu[2];     /* the processors of the active and the passive end; -1: another process */
	double cpu_use; /* processor time of this process by the time of the rounds */
};
/* Prints the result of a step: the first one prints the heading, too. */
void perf_report_print(const struct perf_report *r);
/* Returns whether `a`, which may be unmeasured, is a better result of the floor than `b`. */
bool perf_is_better(
	enum perf_test test, const struct perf_figures *a, const struct perf_figures *b);
/* Prints a line of progress to stderr, unless --quiet. */
void perf_progress(const struct perf_options *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
