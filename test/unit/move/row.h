/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rig for memory that a program registers, as a peer and the program see it. libsaker, the socket
 * and the control stage are real. The test acts for a peer as an engine stage does: it looks the
 * STag up, fetches missing pages, and copies.
 */
#ifndef TEST_MOVE_ROW_H
#define TEST_MOVE_ROW_H

#include <stddef.h>
#include <stdint.h>

#include <saker/saker.h>

#include "../../../lib/rdma/rdma.h"

#define PAGE   4096ul
#define HUGE   (2ul << 20)
#define SMALL  (8 * PAGE) /* bytes of a part on small pages */
#define LARGE  (2 * HUGE) /* bytes of a part on huge pages */
#define EDGE   50ul       /* bytes at each end of a row that are not registered */
#define ACCESS (RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ)

struct kind {
	const char *name;
	/* Maps `len` bytes at `at`. Returns the descriptor that the program keeps, or -1. */
	int (*map)(uint8_t *at, size_t len);
	size_t len;
	/* The result of registering. A child of fork(2) shares only what STAYS. */
	enum {
		MOVES,   /* into a window, and back */
		BECOMES, /* memory of a memfd of the library, for good */
		STAYS,   /* nothing: the engine maps the same object */
	} how;
	/* The result when the program truncates its object, or the library's, if the program has
	 * none. */
	enum {
		ENDS,     /* the client is ended when the engine touches what is gone */
		HARMLESS, /* nothing: the memory is no longer the file's */
		REFUSED,  /* the kernel refuses it: windows are sealed */
	} truncated;
};

#define KINDS_SMALL 7
#define KINDS_LARGE 4
/* The table: the kinds on pages of 4 KiB, and those on huge pages of 2 MiB. */
extern const struct kind kinds_small[KINDS_SMALL], kinds_large[KINDS_LARGE];

struct part {
	const struct kind *kind;
	uint8_t *at;
	int fd;            /* the program's descriptor, or -1 */
	uint64_t dev, ino; /* part_object() sets them */
	uint8_t *view;     /* STAYS: a second mapping, as another process may have it */
};

/* One kind of memory, or two side by side. */
struct row {
	char name[80];
	uint8_t *at;
	size_t len;
	unsigned nparts;
	struct part part[2];
};

/* The content that the row is to have. */
extern uint8_t row_model[LARGE + SMALL];

/* Maps a row of `a` and, unless it is NULL, `b`, and fills it as row_set() with `salt`. */
void row_make(struct row *r, const struct kind *a, const struct kind *b, unsigned salt);
/* Unmaps the row and its views, and closes the program's descriptors. */
void row_unmap(struct row *r);
/* Sets bytes [from, to) of row_model to a pattern, which differs for each `salt`. */
void row_set(size_t from, size_t to, unsigned salt);
/* Checks the content that the program, and those who share the memory, find. */
void row_check(const struct row *r);
/* Opens the object that the program sees in the part. With a descriptor of the program's: that
 * file. */
int part_open(const struct part *p);
/* Notes the object that the program sees in the part. */
void part_object(struct part *p);
/* Returns how many mappings and descriptors of this process, which is the engine's as well, keep
 * that object. */
unsigned part_holders(const struct part *p);
/* Waits until there are `n` of them: a thread of the engine unmaps objects. */
void part_has_holders(const struct part *p, unsigned n);

/* A program that has attached. */
struct end {
	char name[24];
	struct saker *s;
	struct saker_pd *pd;
};

void ends_start(void);
/* Waits until all programs have left, and checks that nothing is left of them. */
void ends_stop(void);
/* Attaches with a name that begins with `name`, and that no other program has had. */
void end_attach(struct end *e, const char *name);
/* Waits until `n` programs are attached. */
void ends_are(unsigned n);
/* Returns whether the engine has marked the program: it has removed memory that it shared. */
bool end_is_marked(const struct end *e);
/* Returns how many programs were removed for that. */
uint64_t ends_marked(void);
/* While `on`, the engine frees nothing that a stage may be using. */
void ends_in_use(bool on);

/* Registers all of the row but its edges. The engine watches its regions, as one that has a thread
 * that fetches pages. */
struct saker_mr *row_register(const struct row *r, const struct end *e);
/* Ends a registration, and checks that peers have no access. */
void row_deregister(const struct row *r, struct saker_mr *mr);
/* Do what a peer requests. */
void peer_writes(const struct saker_mr *mr, const uint8_t *at, const void *from, size_t len);
uint8_t peer_reads(const struct saker_mr *mr, const uint8_t *at);
/* Checks the content that the peer finds. */
void peer_checks(const struct row *r, const struct saker_mr *mr);

#endif
