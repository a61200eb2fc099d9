/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs modified by the program: the states between which a QP moves, and its attempts. */
#include <criterion/criterion.h>
#include <errno.h>

#include "../../../lib/engine/control/cm/cm.h"
#include "script.h"

static struct script *s;
static struct hand c;

static void
setup(void)
{
	s = script_new(script_falcon);
	hand_attach(&c, s);
}

static void
finish(void)
{
	script_free(s);
	hand_free(&c);
}

TestSuite(engine_cm_modified, .init = setup, .fini = finish);

/* ---- States ---- */

Test(engine_cm_modified, a_qp_leaves_the_error_state_by_reset_only)
{
	uint32_t qp = hand_falcon_qp(&c);

	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_ERR), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), -EINVAL);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTR), -EINVAL);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTS), -EINVAL);
	cr_assert_eq(hand_move(&c, qp, RD_QP_ERR), 0);
	script_turns(s, 100);
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RESET), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTR), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTS), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_ERR), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTR), -EINVAL);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTS), -EINVAL);
}

Test(engine_cm_modified, a_datagram_qp_leaves_the_error_state_by_reset_only)
{
	struct shm_msg m = {.body.qp = {.pd = hand_pd(&c),
				    .send_cq = hand_cq(&c),
				    .srq = SHM_NONE,
				    .transport = SHM_FALCON,
				    .type = SHM_UD,
				    .sq_depth = 4,
				    .rq_depth = 4,
				    .max_send_sge = 1,
				    .max_recv_sge = 1,
				    .xrcd = SHM_NONE}};
	uint32_t qp;

	m.body.qp.recv_cq = m.body.qp.send_cq;
	cr_assert_eq(hand_do(&c, &m, SHM_QP_CREATE), 0, "%s", m.body.text);
	qp = m.body.qp.qp;
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_ERR), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), -EINVAL);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTR), -EINVAL);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RESET), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTR), 0);
}

Test(engine_cm_modified, a_qp_in_the_error_state_does_not_connect)
{
	uint32_t qp = hand_falcon_qp(&c);
	struct shm_msg m = {.body.cm = {.qp = qp, .rport = 5000, .ird = 4, .ord = 4}};

	cr_assert_eq(sk_addr_parse(HAND_PEER, &m.body.cm.remote), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_ERR), 0);
	cr_assert_eq(hand_do(&c, &m, SHM_CONNECT), -EINVAL);
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), 0);
}
