/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of libsaker share. Locks, in the order in which they may be taken: mail.lock,
 * wait.lock. mem.lock is held across commands and socket exchanges, so it comes before both; the
 * spin locks (bells, tables, event rings, SRQs) come last, and of them only a table's and then a
 * bell's are ever held together.
 */
#ifndef SAKER_CLIENT_PRIV_H
#define SAKER_CLIENT_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "../base/spin.h"
#include "../move/move.h"
#include "../shm/shm.h"
#include "../shm/shm_ring.h"
#include "saker.h"

/* ---- Objects ---- */

/* In the order in which a client that leaves lets go of them. */
enum cl_kind { CL_QP, CL_AH, CL_SRQ, CL_XRCD, CL_LISTENER, CL_CQ, CL_MW, CL_MR, CL_PD, CL_KINDS };
#define CL_QPN CL_KINDS /* a key's kind only: QPs by number */

/* A number of some kind, and whom it belongs to. */
struct cl_node {
	struct cl_node *next;
	uint64_t key;
	void *owner;
};

struct cl_table {
	uint32_t lock;
	uint32_t count, buckets; /* buckets: 0 or a power of two */
	struct cl_node **bucket;
};

static inline uint64_t
cl_key(unsigned kind, uint32_t number)
{
	return (uint64_t)kind << 32 | number;
}

/* -ENOMEM, or 0. */
int cl_table_add(struct cl_table *t, struct cl_node *node, uint64_t key, void *owner);
void cl_table_del(struct cl_table *t, struct cl_node *node);
void *cl_table_find(struct cl_table *t, uint64_t key);
/* Calls `each` for the owner of `key`, if there is one, which cannot go meanwhile. */
void cl_table_with(struct cl_table *t, uint64_t key, void (*each)(void *owner));
void cl_table_free(struct cl_table *t);

/* What the engine knows by a handle. */
struct cl_obj {
	TAILQ_ENTRY(cl_obj) next;
	struct saker *s;
	struct cl_node node;
	enum cl_kind kind;
	uint32_t handle;
	void *self; /* the object that it is part of, as it was allocated */
};

struct saker_pd {
	struct cl_obj obj;
};

struct saker_mr {
	struct cl_obj obj;
	uint32_t stag;
	const void *moved; /* memory that was the program's before, `len` bytes; or NULL */
	size_t len;
};

struct saker_mw {
	struct cl_obj obj;
	enum rd_mw_type type;
	uint32_t stag; /* that of the bind that was posted last */
};

struct saker_listener {
	struct cl_obj obj;
	uint16_t port;
	void *user;
};

struct saker_cq {
	/* polling */
	_Alignas(SHM_LINE) struct shm_take sub[SHM_MAX_STAGES];
	uint32_t nsubs, first; /* first: the sub-ring to look at first */
	uint32_t *arm;         /* shared */
	void *user;
	struct cl_obj obj;
};

struct saker_ah {
	struct cl_obj obj;
};

struct saker_xrcd {
	struct cl_obj obj;
};

struct saker_srq {
	_Alignas(SHM_LINE) struct shm_prod rq;
	uint32_t lock, max_sge, number;
	struct saker *s;
	void *user;
	struct cl_obj obj;
};

struct saker_qp {
	/* posting: a line for each direction, since two threads may serve them */
	_Alignas(SHM_LINE) struct shm_prod sq;
	uint32_t *pending; /* shared */
	uint32_t handle;
	uint16_t max_inline;
	uint8_t max_send_sge, stage;
	uint8_t type; /* enum shm_qp_type */
	struct saker *s;
	_Alignas(SHM_LINE) struct shm_prod rq; /* entries NULL: it has an SRQ */
	uint32_t max_recv_sge;
	uint32_t failed; /* known to be in error: receives are flushed, so they need the doorbell
			    too */
	_Alignas(SHM_LINE) struct cl_node by_number;
	uint32_t qpn;
	void *user;
	struct cl_obj obj;
};

/* ---- The attachment ---- */

/* A doorbell ring; threads that post to different QPs share it. */
struct cl_bell {
	_Alignas(SHM_LINE) uint32_t lock;
	struct shm_prod ring;
};

/* A command that waits for its reply; on its caller's stack. */
struct cl_call {
	TAILQ_ENTRY(cl_call) next;
	struct shm_msg *msg; /* the command, then the reply */
	bool done;
};

struct cl_event {
	STAILQ_ENTRY(cl_event) next;
	struct shm_msg msg;
};

struct cl_arena {
	TAILQ_ENTRY(cl_arena) next;
	uint8_t *base;
	uint64_t size;   /* bytes, whole pages */
	uint64_t offset; /* of base in the region */
	uint32_t region;
	bool mapped;     /* ours to unmap and to drop; the flat region's memory is not */
	uint64_t fresh;  /* bytes from here on were never handed out and are zero */
	uint64_t used;   /* pages */
	uint64_t *taken; /* a bit for each page */
};

struct saker {
	TAILQ_ENTRY(saker) all;
	/* read by every post */
	uint32_t gone; /* the engine went away */
	uint32_t nstages;
	uint8_t *home;
	struct shm_header *header;
	int wake_engine;             /* eventfd, or -1 */
	volatile uint32_t *doorbell; /* a device's register that wakes the engine, or NULL */
	struct cl_bell bell[SHM_MAX_STAGES];

	uint64_t size;      /* of the home region */
	uint64_t mapped;    /* bytes of it that are ours to unmap; 0: flat */
	int sock;           /* -1: flat */
	struct cl_bar *bar; /* flat: the machine's memory that it is a slot of, or NULL */
	void (*idle)(void *arg);
	void *idle_arg;
	struct shm_device device; /* as it was at attach */

	struct {
		pthread_mutex_t lock;
		struct shm_prod cmd;
		struct shm_take evt;
		uint64_t next_tag;
		TAILQ_HEAD(, cl_call) calls;
		STAILQ_HEAD(, cl_event) events;
		bool gone_told; /* atomic: SAKER_EV_ENGINE_GONE was given out */
	} mail;

	struct {
		_Alignas(SHM_LINE) uint32_t lock;
		struct shm_take ring[SHM_MAX_STAGES];
		uint32_t first;
		uint32_t empty; /* looks in vain, to look at the socket now and then */
	} cqev;

	struct { /* see wait.c */
		pthread_mutex_t lock;
		pthread_cond_t woken;
		bool leader; /* a thread sleeps for all */
		bool handed; /* saker_fd() was asked for */
		int wake;    /* the engine wakes us here; -1: flat */
		int kick;    /* eventfd: we wake ourselves */
		int epoll;   /* both, and the socket's end */
	} wait;

	struct {
		pthread_mutex_t lock;
		TAILQ_HEAD(cl_arenas, cl_arena) arenas;
		/* The engine's number of each window of moved memory; 0: not brought yet. */
		uint32_t window[MV_WINDOWS_MAX];
		uint32_t moved; /* atomic; memory regions of moved memory */
		bool parents;   /* after a fork: nothing here is this process' */
	} mem;

	struct cl_table table;
	uint32_t objs_lock;
	TAILQ_HEAD(, cl_obj) objs[CL_KINDS];
};

/* ---- client.c ---- */

/* Sets saker_error() and returns `rc`. */
int cl_fail(int rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* An attachment without rings yet. NULL: no memory. */
struct saker *cl_new(void);
/* Takes rings and memory from the header at `home`, of which `size` bytes are mapped; asks for the
 * device. On failure the caller calls cl_free(). */
int cl_start(struct saker *s, void *home, uint64_t size);
/* Memory and descriptors of the client; tells the engine nothing. */
void cl_free(struct saker *s);
/* Zeroed, a whole number of lines. */
void *cl_zalloc(size_t len);

/* A new object enters the lists. On -ENOMEM it is destroyed again with `destroy`, enum shm_op. */
int cl_obj_add(struct saker *s, struct cl_obj *o, void *self, enum cl_kind kind, uint32_t handle);
/* Destroys by command and frees `self`; an engine that went away has destroyed it already. */
int cl_obj_destroy(struct cl_obj *o);

/* ---- mr.c ---- */

/* The region is no more: memory that was moved for it goes back. */
void cl_mr_forget(struct saker_mr *mr);

/* ---- mailbox.c ---- */

void cl_mail_init(struct saker *s, const struct shm_header *h);
void cl_mail_free(struct saker *s);
/* Sends `m` as a command and waits for the reply, which replaces it. The reply's status; -EPIPE
 * when the engine went away. */
int cl_command(struct saker *s, struct shm_msg *m, enum shm_op op);
/* The same for a command that is but a handle. */
int cl_command_handle(struct saker *s, enum shm_op op, uint32_t handle);
/* Takes in what the engine wrote. With mail.lock. */
void cl_mail_drain(struct saker *s);
/* The next event of the queue; the caller frees it. NULL: none. */
struct cl_event *cl_mail_event(struct saker *s);
/* Forgets the events of an object that is gone: its handle may come again. */
void cl_mail_purge(struct saker *s, enum cl_kind kind, uint32_t handle);

/* ---- post.c ---- */

/* Rings at a stage and wakes the engine if it sleeps. false: the ring is full. */
bool cl_ring(struct saker *s, uint32_t stage, uint32_t what);
/* The QP of this number, if it still is, was seen to be in error: what was posted meanwhile is to
 * be flushed. */
void cl_qp_failed(struct saker *s, uint32_t qpn);

/* ---- wait.c ---- */

int cl_wait_init(struct saker *s);
void cl_wait_free(struct saker *s);
/* Whether the engine is known to be gone; looks. */
bool cl_gone(struct saker *s);
/* Sleeps until the engine may have said something, `*done` was set by another thread, or the time
 * is up (ms, -1: no bound). `done` NULL: does not sleep while an event or a CQ event waits.
 * `tries`: how often the caller came here in a row. */
void cl_sleep(struct saker *s, const bool *done, int timeout_ms, unsigned tries);
/* Whether an event or CQ event waits. */
bool cl_waits(struct saker *s);
/* Nothing was found: lets saker_fd() become silent until something comes. */
void cl_settle(struct saker *s);
/* Another thread's reply has come. */
void cl_kick(struct saker *s);
/* Makes saker_fd() readable if something waits, or the engine is gone: where the engine cannot.
 * Returns whether it did. */
bool cl_wait_look(struct saker *s);

/* ---- mem.c ---- */

void cl_mem_init(struct saker *s);
void cl_mem_free(struct saker *s);
/* Memory that the engine maps already. */
int cl_mem_add(struct saker *s, uint8_t *base, uint64_t size, uint32_t region, uint64_t offset,
	bool mapped);
/* Where [addr, addr + len) is for the engine; false: not in one arena. */
bool cl_mem_find(struct saker *s, const void *addr, size_t len, struct shm_extent *out);

/* ---- attach/attach.c ---- */

/* Gives a memfd to the engine; its region number or -errno. `flags`: enum shm_region_flags. With
 * mem.lock. */
int cl_sock_region(struct saker *s, int fd, uint64_t size, uint32_t flags);

/* ---- attach/bar.c, attach/bar_find.c, attach/bar_move.c: behind an ivshmem device ---- */

#define CL_PATH        256
#define CL_PCI_DEVICES "/sys/bus/pci/devices"

/* Claims a slot of the memory file at `path` and attaches. */
int cl_bar_open(const char *path, const char *name, struct saker **out);
/* Ends the heartbeat, and gives the slot back: the engine then tears down what is left. NULL:
 * nothing. */
void cl_bar_quiet(struct cl_bar *b);
void cl_bar_free(struct cl_bar *b);
/* Moves memory that the program has into the slot, and says in m->extents where it is; and back.
 * -errno with a reason. */
int cl_bar_move_in(struct saker *s, const void *addr, size_t len, bool write, struct shm_mr *m);
void cl_bar_move_out(struct saker *s, const void *addr, size_t len);
/* In a child, with the lock of lib/move: it is the parent's; what was moved becomes private. */
void cl_bar_orphan(struct cl_bar *b);
/* From here on its thread looks into the rings for somebody who sleeps on saker_fd(). */
void cl_bar_watch(struct cl_bar *b);
/* The path of the device's memory, -ENODEV when there is none. `root` NULL: sysfs. */
int cl_bar_find(const char *root, char path[CL_PATH]);

/* ---- cm.c ---- */

/* Whether `m` is about the object. */
bool cl_event_about(const struct shm_msg *m, enum cl_kind kind, uint32_t handle);

#endif
