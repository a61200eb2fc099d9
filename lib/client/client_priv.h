/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the files of libsaker. Locks are taken in this order: mem.lock, which is
 * held during commands and socket exchanges; mail.lock; wait.lock; the spin locks (doorbells,
 * tables, event rings, SRQs). Only two spin locks are ever held together: a table's, and then a
 * doorbell's.
 */
#ifndef SAKER_CLIENT_PRIV_H
#define SAKER_CLIENT_PRIV_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "../base/spin.h"
#include "../move/move.h"
#include "../saker/saker.h"
#include "../shm/shm_msg.h"
#include "../shm/shm_ring.h"
#include "../shm/shm_sock.h"
#include "path.h"

/* ---- Objects ---- */

/* The order is that in which saker_close() destroys objects. */
enum cl_kind { CL_QP, CL_AH, CL_SRQ, CL_XRCD, CL_LISTENER, CL_CQ, CL_MW, CL_MR, CL_PD, CL_KINDS };
#define CL_QPN CL_KINDS /* in keys only: a QP by its number */

/* An entry of a table: a number of some kind, and the object that has it. */
struct cl_node {
	struct cl_node *next;
	uint64_t key;
	void *owner;
};

#define CL_TABLE_LATE 1024 /* hashes of late marks */

struct cl_table {
	uintptr_t lock;          /* its owner */
	uint32_t count, buckets; /* buckets: 0 or a power of two */
	struct cl_node **bucket;
	void (*mark)(void *owner);         /* of cl_table_mark(); constant */
	uint32_t any_late;                 /* atomic: a bit of `late` may be set */
	uint64_t late[CL_TABLE_LATE / 64]; /* atomic */
};

static inline uint64_t
cl_key(unsigned kind, uint32_t number)
{
	return (uint64_t)kind << 32 | number;
}

/* Adds `node`. Returns 0, or -ENOMEM. */
int cl_table_add(struct cl_table *t, struct cl_node *node, uint64_t key, void *owner);
void cl_table_del(struct cl_table *t, struct cl_node *node);
/* Returns the owner of `key`, or NULL. */
void *cl_table_find(struct cl_table *t, uint64_t key);
/* Calls t->mark for the QP with this number, if there is one, with the table locked: the QP cannot
 * be destroyed meanwhile. If the lock is not free, returns at once, and the thread that holds it
 * calls t->mark, in rare cases for further QPs. Any thread or signal handler may call this. */
void cl_table_mark(struct cl_table *t, uint32_t qpn);
void cl_table_free(struct cl_table *t);

/* An object that has a handle in the engine. */
struct cl_obj {
	TAILQ_ENTRY(cl_obj) next;
	struct saker *s;
	struct cl_node node;
	enum cl_kind kind;
	uint32_t handle;
	void *self; /* the allocated object that this is a part of */
};

struct saker_pd {
	struct cl_obj obj;
};

struct saker_mr {
	struct cl_obj obj;
	uint32_t stag;
	const void *moved; /* memory of the program that the engine reaches for it; or NULL */
	size_t len;        /* bytes of `moved` */
	/* The parts of `moved`, in ascending order; none with a device of a virtual machine. */
	uint32_t nparts;
	struct cl_mr_part {
		size_t len;
		struct cl_object *object; /* it holds the part; NULL: the part moved */
	} * part;
};

/* An object that the program shares with others, as a region of the engine. */
struct cl_object {
	LIST_ENTRY(cl_object) next;
	uint64_t dev, ino, size;
	uint32_t region;
	uint32_t refs; /* parts of memory regions */
};

struct saker_mw {
	struct cl_obj obj;
	enum rd_mw_type type;
	uint32_t stag; /* of the bind that was posted last */
};

struct saker_listener {
	struct cl_obj obj;
	uint16_t port;
	void *user;
};

/* Sub-rings of a queue that has grown. */
struct cl_cq_subs {
	struct cl_cq_subs *older;
	struct shm_take sub[]; /* [saker.nstages] */
};

struct saker_cq {
	struct cl_cq cq;
	uint32_t first; /* the sub-ring where the next poll starts */
	uint8_t log2_depth;
	void *user;
	struct cl_obj obj;
	/* Atomic, by sub-ring: how many of its completions events have reported. */
	uint32_t *reported;
	/* The newest ones are in use. Older ones, and `sub`, stay as they were: a thread in
	 * cl_cq_any() may still read them. NULL: `sub` is in use. */
	struct cl_cq_subs *grown;
	struct shm_take sub[]; /* [saker.nstages] */
};
_Static_assert(offsetof(struct saker_cq, cq) == 0, "cl_cq_of()");

struct saker_ah {
	struct cl_obj obj;
};

struct saker_xrcd {
	struct cl_obj obj;
};

struct saker_srq {
	struct cl_rq rq;
	uint32_t number;
	struct saker *s;
	void *user;
	struct cl_obj obj;
};
_Static_assert(offsetof(struct saker_srq, rq) == 0, "cl_srq_of()");

struct saker_qp {
	/* Used by posting: a cache line for each direction, because two threads may post. */
	struct cl_sq sq;
	struct cl_rq rq;
	struct saker *s;
	_Alignas(SHM_LINE) struct cl_node by_number;
	uint32_t qpn;
	void *user;
	struct cl_obj obj;
};
_Static_assert(offsetof(struct saker_qp, sq) == 0, "cl_sq_of()");
_Static_assert(offsetof(struct saker_qp, rq) == sizeof(struct cl_sq), "cl_rq_of()");

/* ---- The attachment ---- */

/* A doorbell ring. Threads that post to different QPs share it. */
struct cl_doorbell {
	_Alignas(SHM_LINE) uintptr_t lock; /* its owner */
	struct shm_prod ring;
	uint32_t any_late; /* atomic; not 0: a bit of `late` may be set */
	/* Atomic: the QPs whose doorbell the holder of the lock writes, a bit for each handle. */
	uint64_t *late; /* [ring.count / 64], or one */
};

/* A command whose reply has not come, on the stack of its caller. */
struct cl_call {
	TAILQ_ENTRY(cl_call) next;
	struct shm_msg *msg; /* the command, replaced by the reply */
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
	uint64_t offset; /* of `base` in the region */
	uint32_t region;
	bool mapped;     /* the client unmaps and drops it; false for a flat region's memory */
	uint64_t fresh;  /* bytes from this offset on were never allocated, and are zero */
	uint64_t used;   /* allocated pages */
	uint64_t *taken; /* a bit for each page: it is allocated */
};

/* The messages that make the descriptor readable outside of the calls of this library. */
enum cl_handed {
	CL_HANDED_NONE,   /* the program does not use it */
	CL_HANDED_EVENTS, /* cl_wait_for_events() */
	CL_HANDED_ALL,    /* saker_fd() */
};

struct saker {
	TAILQ_ENTRY(saker) all;
	/* Read by every post. */
	uint32_t gone; /* atomic: the engine went away */
	uint32_t nstages;
	uint8_t *home;
	struct shm_header *header;
	int wake_engine;                  /* eventfd that wakes the engine, or -1 */
	volatile uint32_t *wake_register; /* device register that wakes the engine, or NULL */
	struct cl_doorbell doorbell[SHM_MAX_STAGES];

	uint64_t size;      /* of the home region */
	uint64_t mapped;    /* bytes of it that the client unmaps; 0: flat */
	int sock;           /* -1: flat */
	struct cl_bar *bar; /* flat: the ivshmem device, of whose memory it is a slot, or NULL */
	void (*idle)(void *arg);
	void *idle_arg;
	struct saker_device device; /* at the time of attaching */

	struct {
		pthread_mutex_t lock;
		struct shm_prod cmd;
		struct shm_take evt;
		uint64_t next_tag;
		TAILQ_HEAD(, cl_call) calls;
		STAILQ_HEAD(, cl_event) events;
		bool gone_reported; /* atomic: the program has SAKER_EV_ENGINE_GONE */
		bool closing;       /* saker_close() has begun: events are dropped */
	} mail;

	struct {
		_Alignas(SHM_LINE) uint32_t lock;
		struct shm_take ring[SHM_MAX_STAGES];
		uint32_t first;
		uint32_t empty; /* polls that found nothing: some of them check the socket */
	} cqev;

	struct { /* see wait.c */
		pthread_mutex_t lock;
		pthread_cond_t woken;
		bool leader; /* a thread sleeps on behalf of all */
		bool naps;   /* the leader polls with short sleeps */
		enum cl_handed handed;
		bool rung; /* atomic: ivshmem device: `wake` works, so nobody needs to poll */
		int wake;  /* readable when the engine wakes the client; -1: flat */
		int kick;  /* eventfd: readable when the client wakes itself */
		int epoll; /* of both, and of the end of the socket */
	} wait;

	struct {
		pthread_mutex_t lock;
		int cancel; /* the cancel state of the thread that holds the lock */
		TAILQ_HEAD(cl_arenas, cl_arena) arenas;
		/* The engine's region number of each window of lib/move; 0: it has none yet. */
		uint32_t window[MV_WINDOWS_MAX];
		LIST_HEAD(, cl_object) objects;
		uint32_t moved; /* atomic: memory regions of moved memory, or of objects */
		bool parents;   /* in a child of fork(2): all memory here is the parent's */
	} mem;

	struct cl_table table;
	uint32_t nobjs; /* atomic */
	uint32_t objs_lock;
	TAILQ_HEAD(, cl_obj) objs[CL_KINDS];
};

/* ---- client.c ---- */

/* Sets saker_error() and returns `rc`. */
int cl_fail(int rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns an attachment without rings, or NULL when memory is exhausted. */
struct saker *cl_new(void);
/* Takes rings and memory from the header at `home`, of which `size` bytes are mapped, and queries
 * the device. Returns 0 or -errno; then the caller calls cl_free(). */
int cl_start(struct saker *s, void *home, uint64_t size);
/* Frees memory and descriptors of an attachment, without a command to the engine. */
void cl_free(struct saker *s);
/* Returns zeroed memory in whole cache lines, or NULL. */
void *cl_zalloc(size_t len);

/* Enters a new object into the lists. Returns 0, or -ENOMEM: the engine has destroyed it again. */
int cl_obj_add(struct saker *s, struct cl_obj *o, void *self, enum cl_kind kind, uint32_t handle);
/* Destroys an object by a command and frees `self`. When the engine went away, the object is freed
 * without. Returns 0 or -errno: the object still exists. */
int cl_obj_destroy(struct cl_obj *o);
/* Frees an object that the engine has destroyed, and `self`. */
void cl_obj_forget(struct cl_obj *o);

/* ---- cq.c ---- */

/* Frees what a queue has besides its own memory, after its end. */
void cl_cq_forget(struct saker_cq *cq);

/* ---- mr.c ---- */

/* Gives the memory that moved for a region back, after the end of the region. */
void cl_mr_forget(struct saker_mr *mr);

/* ---- mailbox.c ---- */

void cl_mail_init(struct saker *s, const struct shm_header *h);
void cl_mail_free(struct saker *s);
/* Sends `m` as a command and waits for the reply, which replaces it. Returns the reply's status, or
 * -EPIPE when the engine went away. */
int cl_command(struct saker *s, struct shm_msg *m, enum shm_op op);
/* Sends c->msg as a command, once there is room in the mailbox. Several commands of a thread may be
 * under way. Returns 0: cl_call_wait() must follow; or -EPIPE. */
int cl_call_send(struct saker *s, struct cl_call *c, enum shm_op op);
/* Waits for the reply, which replaces *c->msg. Returns its status, or -EPIPE. */
int cl_call_wait(struct saker *s, struct cl_call *c);
/* Returns the reason in a message that is not of success: an -errno, or -EPROTO for a value that is
 * none, which a saker that is out of order may write. */
static inline int
cl_reason(int32_t status)
{
	const int least = -4095; /* of the kernel's numbers */

	return status < 0 && status >= least ? status : -EPROTO;
}
/* Sets saker_error() to the sentence of a refusal, and returns its reason. */
int cl_refusal(struct shm_msg *m);
/* Sends a command about a QP without waiting for the reply. A refusal becomes an event in the
 * queue: the reply, with cl_refused_qp() as the QP's handle. Returns 0, or -EPIPE. */
int cl_command_no_wait(struct saker *s, struct shm_msg *m, enum shm_op op, uint32_t qp);
/* The same for a command whose body is a handle. */
int cl_command_handle(struct saker *s, enum shm_op op, uint32_t handle);
/* The tag of a command that nobody waits for has this bit and, in the lower half, the handle of its
 * QP. */
#define CL_TAG_NO_WAIT (1ull << 63)
static inline uint32_t
cl_refused_qp(const struct shm_msg *m)
{
	return (uint32_t)m->tag;
}
/* Takes all replies and events out of the mailbox. The caller holds mail.lock. */
void cl_mail_drain(struct saker *s);
/* Returns the next event, which the caller frees, or NULL. */
struct cl_event *cl_mail_event(struct saker *s);
/* Frees all queued events, and drops those that come from now on: nobody will take them. */
void cl_mail_close(struct saker *s);
/* Frees the queued events of an object that was destroyed: its handle may be used again. */
void cl_mail_purge(struct saker *s, enum cl_kind kind, uint32_t handle);

/* ---- post.c ---- */

/* Writes a doorbell for a stage, and wakes the engine if it sleeps. `what`: a QP's handle or
 * SHM_RING_MAILBOX. Returns false when the doorbell ring is full. A signal handler may call it for
 * a QP at any time. */
bool cl_ring(struct saker *s, uint32_t stage, uint32_t what);
/* Notes that the QP with this number, if it still exists, is in the error state: requests that were
 * posted meanwhile must be flushed. */
void cl_qp_failed(struct saker *s, uint32_t qpn);
/* Prepares the doorbells, and cl_qp_failed(). Without membarrier(2), a receive that a thread posts
 * while the QP fails might not be flushed. Returns 0, or -ENOMEM. */
int cl_post_init(struct saker *s);
void cl_post_free(struct saker *s);
/* Notes that the QP has left the error state, so that its receives need no doorbell. */
void cl_qp_works(struct saker_qp *qp);

/* ---- wait.c ---- */

int cl_wait_init(struct saker *s);
/* Initializes lock and condition anew in a child of fork(2): threads of the parent may have used
 * them at that time. */
void cl_wait_renew(struct saker *s);
void cl_wait_free(struct saker *s);
/* Checks whether the engine has gone. */
bool cl_gone(struct saker *s);
/* Sleeps until the engine may have written something, another thread has set `*done`, or the time
 * has passed (ms, -1: no limit). With `done` NULL it returns at once while an event or a CQ event
 * is in a queue. `tries`: the number of calls in a row. */
void cl_sleep(struct saker *s, const bool *done, int timeout_ms, unsigned tries);
/* Makes saker_fd() unreadable until something comes, after the program has found nothing. */
void cl_settle(struct saker *s);
/* Wakes the other threads, because a reply for one of them has come. */
void cl_kick(struct saker *s);
/* Makes saker_fd() readable if an event or a CQ event is in a queue, or the engine is gone: for an
 * engine that has no descriptor for that. Returns whether it did. */
bool cl_wait_look(struct saker *s);

/* ---- mem.c ---- */

void cl_mem_init(struct saker *s);
void cl_mem_free(struct saker *s);
/* Takes mem.lock. pthread_cancel(3) takes effect after the thread has released it. */
void cl_mem_lock(struct saker *s);
void cl_mem_unlock(struct saker *s);
/* Adds memory that the engine maps already. Returns 0, or -ENOMEM. */
int cl_mem_add(struct saker *s, uint8_t *base, uint64_t size, uint32_t region, uint64_t offset,
	bool mapped);
/* Sets *out to the place of [addr, addr + len) in the engine's region. Returns false when it is not
 * allocated memory of one arena. */
bool cl_mem_find(struct saker *s, const void *addr, size_t len, struct shm_extent *out);

/* ---- attach/attach.c ---- */

/* Passes a memfd to the engine. `flags`: enum shm_region_flags. Returns its region number, or
 * -errno. The caller holds mem.lock. */
int cl_sock_region(struct saker *s, int fd, uint64_t size, uint32_t flags);

/* ---- attach/bar.c, attach/bar_find.c, attach/bar_move.c: through an ivshmem device ---- */

#define CL_PATH        256
#define CL_PCI_DEVICES "/sys/bus/pci/devices"

/* Claims a slot of the memory file at `path`, and attaches. */
int cl_bar_open(const char *path, const char *name, struct saker **out);
/* Ends the heartbeat's thread. NULL is allowed. */
void cl_bar_quiet(struct cl_bar *b);
/* Releases the slot, so that the engine destroys the client's objects. NULL is allowed. */
void cl_bar_free(struct cl_bar *b);
/* Moves memory of the program into the slot, and sets m->extents to its place. Returns 0, or -errno
 * with a sentence. */
int cl_bar_move_in(struct saker *s, const void *addr, size_t len, bool write, struct shm_mr *m);
/* Releases the memory. Pages that no other registration has become private memory again. */
void cl_bar_move_out(struct saker *s, const void *addr, size_t len);
/* Detaches a child of fork(2) from the parent's attachment; memory that moved becomes private. The
 * caller holds the lock of lib/move. */
void cl_bar_orphan(struct cl_bar *b);
/* Makes the heartbeat's thread poll the rings until an interrupt has come, for a program that
 * sleeps on saker_fd(). */
void cl_bar_watch(struct cl_bar *b);
/* Finds the first ivshmem device and the path of its memory. `root`: a directory in the form of
 * /sys/bus/pci/devices, or NULL for that. Returns 0, or -ENODEV. */
int cl_bar_find(const char *root, char path[CL_PATH]);

/* ---- convert.c ---- */

void cl_device_of(const struct shm_device *d, struct saker_device *out);
void cl_qp_info_of(const struct shm_qp_info *q, struct saker_qp_info *out);
void cl_conn_info_of(const struct shm_cm *cm, struct saker_conn_info *out);
void cl_modes_to(const struct saker_modes *modes, struct shm_modes *out);
void cl_class_to(const struct saker_class *traffic, struct shm_class *out);
void cl_async_of(const struct shm_async *a, struct saker_async *out);

/* ---- cm.c ---- */

/* Returns whether the event `m` belongs to the object. */
bool cl_event_about(const struct shm_msg *m, enum cl_kind kind, uint32_t handle);

/* Replaces memory that a child of fork(2) shares with the engine by private pages. Aborts when that
 * fails: the child would ring its parent's doorbells. */
void cl_orphan_pages(void *at, size_t len);

#endif
