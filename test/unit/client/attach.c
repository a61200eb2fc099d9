/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching to a flat region, and memory that is not a home region. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define SIZE (1u << 20)

static struct fake f;
static uint8_t *base;

static void
setup(void)
{
	free(base);
	base = aligned_alloc(4096, SIZE);
	memset(base, 0, SIZE);
	fake_init(&f, base, SIZE, 65536);
}

static void
teardown(void)
{
	free(base);
	base = NULL;
}

TestSuite(client_attach, .init = setup, .fini = teardown);

static int
try_open(uint64_t size)
{
	struct saker *s;

	return saker_open_flat(base, size, fake_idle, &f, &s);
}

Test(client_attach, a_laid_out_region_is_attached_and_the_device_known)
{
	struct saker_device dev;
	struct saker *s;

	cr_assert_eq(saker_open_flat(base, SIZE, fake_idle, &f, &s), 0);
	cr_assert_eq(saker_device(s, &dev), 0);
	cr_assert_str_eq(dev.name, "fake");
	cr_assert_eq(saker_fd(s), -1, "nothing travels beside a flat region");
	saker_close(s);
}

Test(client_attach, memory_without_the_magic_is_refused)
{
	f.h->magic++;
	cr_assert_eq(try_open(SIZE), -EPROTO);
	cr_assert_str_eq(saker_error(), "the memory is not the home region of a saker");
}

Test(client_attach, another_version_is_refused_by_number)
{
	f.h->version = 9;
	cr_assert_eq(try_open(SIZE), -EPROTO);
	cr_assert_not_null(strstr(saker_error(), "version 9"));
}

Test(client_attach, a_header_that_points_outside_is_refused)
{
	f.h->cmd.entries = SIZE - 512;
	cr_assert_eq(try_open(SIZE), -EPROTO);
	setup();
	f.h->nstages = SHM_MAX_STAGES + 1;
	cr_assert_eq(try_open(SIZE), -EPROTO);
	setup();
	f.h->mem_len = SIZE;
	cr_assert_eq(try_open(SIZE), -EPROTO);
	setup();
	f.h->doorbell[2].cons = SIZE;
	cr_assert_eq(try_open(SIZE), -EPROTO);
	cr_assert_not_null(strstr(saker_error(), "stage 2"));
	setup();
	cr_assert_eq(try_open(SIZE - 1), -EPROTO, "less is mapped than the header says");
	cr_assert_eq(try_open(sizeof(struct shm_header) - 1), -EPROTO);
}

Test(client_attach, an_engine_that_has_let_go_is_gone)
{
	f.h->engine_alive = 0;
	cr_assert_eq(try_open(SIZE), -EPIPE);
}

Test(client_attach, closing_destroys_what_is_left_in_the_order_of_its_dependencies)
{
	struct saker_qp_attr attr = {.sq_depth = 2, .rq_depth = 2, .max_send_sge = 1};
	struct saker_listener *l;
	struct saker_srq *srq;
	struct saker_pd *pd;
	struct saker_mr *mr;
	struct saker_qp *qp;
	struct saker *s;

	cr_assert_eq(saker_open_flat(base, SIZE, fake_idle, &f, &s), 0);
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	cr_assert_eq(saker_mr_create(pd, saker_alloc(s, 4096), 4096, 0, &mr), 0);
	cr_assert_eq(saker_cq_create(s, 4, NULL, &attr.send_cq), 0);
	attr.recv_cq = attr.send_cq;
	cr_assert_eq(saker_srq_create(pd, 4, 1, &srq), 0);
	cr_assert_eq(saker_qp_create(pd, &attr, &qp), 0);
	cr_assert_eq(saker_listen(s, NULL, 1, 1, NULL, &l), 0);
	saker_close(s);
	cr_assert_eq(f.seen[SHM_QP_DESTROY], 1);
	cr_assert_eq(f.seen[SHM_SRQ_DESTROY], 1);
	cr_assert_eq(f.seen[SHM_UNLISTEN], 1);
	cr_assert_eq(f.seen[SHM_CQ_DESTROY], 1);
	cr_assert_eq(f.seen[SHM_MR_DESTROY], 1);
	cr_assert_eq(f.seen[SHM_PD_DESTROY], 1);
	cr_assert_eq(f.last.op, SHM_PD_DESTROY, "last of all");
}
