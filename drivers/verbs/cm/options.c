/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of an id. The library applies the options about addresses. It checks traffic class,
 * acknowledgement timeout and IB paths and ignores them: Saker's configuration sets these for all
 * connections of an interface.
 */
#include <string.h>

#include "cm_priv.h"

static int
take_int(const void *val, size_t len, int *out)
{
	if (val == NULL || len != sizeof(*out))
		return EINVAL;
	memcpy(out, val, len);
	return 0;
}

static int
option_id(struct cm_id *id, int name, const void *val, size_t len)
{
	int v, err;

	switch (name) {
	case RDMA_OPTION_ID_TOS:
		return val != NULL && len == sizeof(uint8_t) ? 0 : EINVAL;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (val == NULL || len != sizeof(uint8_t))
			return EINVAL;
		id->ack_timeout = *(const uint8_t *)val;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		err = take_int(val, len, &v);
		if (err == 0)
			err = vb_cm_check(id, CM_IDLE | CM_BOUND);
		if (err == 0)
			id->port.reuse = v != 0;
		if (err == 0 && id->port.reuse)
			vb_cm_listen_end(id);
		return err;
	case RDMA_OPTION_ID_AFONLY:
		err = take_int(val, len, &v);
		if (err == 0)
			err = vb_cm_check(id, CM_IDLE | CM_BOUND);
		if (err == 0 && id->port.afonly != (v != 0)) {
			/* rdma_listen() listens with the new value. */
			vb_cm_listen_end(id);
			id->port.afonly = v != 0;
		}
		return err;
	default:
		return ENOSYS;
	}
}

VB_EXPORT int
rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	if (level == RDMA_OPTION_ID)
		return vb_cm_end(option_id(vb_cm_id_of(id), optname, optval, optlen));
	if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
		return vb_cm_end(
			optval != NULL && optlen > 0 && optlen % sizeof(struct ibv_path_data) == 0
				? 0
				: EINVAL);
	return vb_cm_end(ENOSYS);
}
