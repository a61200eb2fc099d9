/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that harm by the memory that they bring. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"

#define PAGES    12 /* holes, and requests at a time */
#define PAGE_LEN (2ull << 20)

/* ---- Holes ---- */

/* Posts one Read for each page: saker touches a page for the source and for the sink. */
static int
holes_read(struct hostile *h, struct raw_qp *qp, struct raw_cq *cq, const struct raw_mem *m,
	uint64_t page)
{
	unsigned done = 0;
	struct shm_cqe e;

	for (unsigned i = 0; i < PAGES; i++) {
		uint64_t at = m->base + i * page;
		const struct rd_sge sge = {at + 64, 8, m->stag};

		raw_request(&h->c, qp, RD_READ, RD_SIGNALED, &sge, at, m->stag);
	}
	while (done < PAGES && !hostile_stop) {
		if (!raw_poll(cq, &e)) {
			hostile_rest(h, 50);
			continue;
		}
		done++;
		h->done++;
		h->refused += e.status != 0;
		if (e.status != 0) /* the QP is lost */
			return -ECONNRESET;
	}
	return 0;
}

static int
punch_prepare(struct hostile *h, struct raw_qp qp[2], struct raw_cq *cq, struct raw_mem *m,
	uint64_t *page)
{
	uint32_t pd;
	int rc = raw_pd(&h->c, &pd);

	*page = PAGE_LEN;
	if (rc == 0)
		rc = raw_cq(&h->c, 64, cq);
	for (int i = 0; rc == 0 && i < 2; i++)
		rc = raw_qp(&h->c, pd, cq, 16, SHM_IWARP, &qp[i]);
	if (rc == 0)
		rc = raw_memory(&h->c, pd, PAGES * PAGE_LEN, MFD_HUGETLB | MFD_HUGE_2MB, m);
	if (rc == 0)
		rc = raw_listen(&h->c, h->port);
	return rc < 0 ? rc : hostile_self(h, &qp[0], &qp[1]);
}

/* Punches the pages out of its memory and has saker fetch them again, request by request. */
int
attack_punch(struct hostile *h)
{
	struct raw_qp qp[2];
	struct raw_cq cq;
	struct raw_mem m;
	uint64_t page;
	int rc = punch_prepare(h, qp, &cq, &m, &page);

	if (rc < 0)
		return rc;
	hostile_ready("pages", PAGES);
	while (rc == 0 && !hostile_stop) {
		if (fallocate(m.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)m.len) <
			0)
			return -errno;
		rc = holes_read(h, &qp[0], &cq, &m, page);
	}
	if (rc < 0) {
		fprintf(stderr, "saker ended the QP\n");
		hostile_sleep(h);
	}
	raw_memory_free(&m);
	return 0;
}

/* ---- REGION messages ---- */

/* Sends REGIONs without end. Those that are taken are dropped, which makes room for more. */
static int
region_flood(struct hostile *h, int fd, uint64_t size)
{
	hostile_ready("bytes a region", size);
	while (!hostile_stop) {
		struct shm_msg m = {0};
		int n = raw_region(&h->c, fd, size);

		if (n == -EPIPE || n == -ECONNRESET)
			return n;
		h->done++;
		h->refused += n < 0;
		if (n > 0) {
			m.body.handle = (uint32_t)n;
			raw_try(&h->c, &m, SHM_REGION_DROP);
		}
		hostile_rest(h, 50);
	}
	return 0;
}

int
attack_regions(struct hostile *h)
{
	uint64_t size = h->number ? h->number : 4096;
	int fd = raw_memfd(size, 0), rc;

	if (fd < 0)
		return fd;
	rc = region_flood(h, fd, size);
	close(fd);
	return rc;
}

/* Sends a region that saker refuses, because the memfd is not sealed. */
int
attack_regions_refused(struct hostile *h)
{
	int fd = memfd_create("unsealed", MFD_ALLOW_SEALING | MFD_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = ftruncate(fd, 4096) < 0 ? -errno : region_flood(h, fd, 4096);
	close(fd);
	return rc;
}
