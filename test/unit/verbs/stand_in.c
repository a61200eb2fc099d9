/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of other files that most tests of single files of the driver need. A test may
 * define one of its own instead. */
#include <errno.h>

#include "../../../drivers/verbs/verbs_priv.h"

#define STAND_IN __attribute__((weak))

STAND_IN int
vb_alive(struct ibv_context *c)
{
	return 0;
}

STAND_IN void
vb_owned_enter(struct ibv_context *c, struct vb_owned *o, enum vb_owned_kind kind)
{
}

STAND_IN void
vb_owned_leave(struct vb_owned *o)
{
}

STAND_IN int
vb_fail(int err, const char *fmt, ...)
{
	errno = err;
	return err;
}

STAND_IN int
vb_rc(int rc, const char *what)
{
	return rc < 0 ? -rc : 0;
}
