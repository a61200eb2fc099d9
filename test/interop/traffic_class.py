#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""traffic_class.py server|client DEVICE GID-INDEX FOLDER

One end of a reliable connection of queue pairs that the program modifies itself, with a traffic
class, a service level and a flow label in its path. The ends exchange their numbers through files
in FOLDER. The client writes 64 times, and makes the file "done". Both keep the connection
until there is a file "shown". The client checks that ibv_query_qp(3) returns the values, and both
that values that do not fit are refused."""
import os
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

CLASS, LEVEL, LABEL = 0xB9, 5, 0xABCDE
BYTES, WRITES = 1024, 64
role, device, gid_index, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
other = "client" if role == "server" else "server"


def put(name, text):
    """Writes a file in one step."""
    path = os.path.join(folder, name)
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(text)
    os.rename(path + ".new", path)


def get(name):
    """Waits for a file and returns its text."""
    path = os.path.join(folder, name)
    end = time.monotonic() + 60
    while not os.path.exists(path):
        assert time.monotonic() < end, name + " does not come"
        time.sleep(0.01)
    with open(path, encoding="ascii") as f:
        return f.read()


def path_to(gid, level, label):
    """Returns the attributes of a path."""
    route = GlobalRoute(dgid=GID(gid), sgid_index=gid_index, flow_label=label, traffic_class=CLASS)
    return AHAttr(gr=route, is_global=1, port_num=1, sl=level)


context = Context(name=device)
domain, queue = PD(context), CQ(context, 2 * WRITES)
access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
memory = MR(domain, BYTES, access)
qp = QP(domain, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=queue, rcq=queue,
                           cap=QPCap(max_send_wr=WRITES, max_recv_wr=1)),
        QPAttr(port_num=1))
put(role, f"{qp.qp_num} {context.query_gid(1, gid_index)} {memory.buf} {memory.rkey}")
number, gid, address, rkey = get(other).split()

attr = QPAttr(port_num=1)
attr.qp_access_flags = access
qp.to_init(attr)
attr.path_mtu, attr.dest_qp_num, attr.rq_psn = e.IBV_MTU_1024, int(number), 0
attr.max_dest_rd_atomic = attr.max_rd_atomic = 1
attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.sq_psn = 14, 7, 7, 0
# Bits that do not fit do not count.
attr.ah_attr = path_to(gid, LEVEL | 8, LABEL | 0xfff << 20)
qp.to_rts(attr)

if role == "client":
    shown, _ = qp.query(e.IBV_QP_AV)
    path = shown.ah_attr
    seen = (path.traffic_class, path.sl, path.flow_label)
    assert seen == (CLASS, LEVEL, LABEL), seen
    for _ in range(WRITES):
        wr = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, send_flags=e.IBV_SEND_SIGNALED,
                    sg=[SGE(memory.buf, BYTES, memory.lkey)])
        wr.set_wr_rdma(int(rkey), int(address))
        qp.post_send(wr)
    done, end = 0, time.monotonic() + 60
    while done < WRITES:
        assert time.monotonic() < end, f"{done} of {WRITES} completions"
        count, completions = queue.poll(WRITES)
        assert all(c.status == e.IBV_WC_SUCCESS for c in completions)
        done += count
    put("done", "")
get("shown")
