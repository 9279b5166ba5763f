/* Shared between the shim's files. */
#ifndef MILLRACE_INTERNAL_H
#define MILLRACE_INTERNAL_H

#include <rte_version.h>

#include "shim.h"

/*
 * Written for, and tried with, DPDK 22.11. No later release was tried. What one changes in a call of the shim is guarded by
 * RTE_VERSION where it is called. Before 22.11 some names of mempool and mbuf are older ones.
 */
#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0)
#error "DPDK is too old: Millrace needs 22.11 or later (install libdpdk-dev of Debian 12 or later)"
#endif

/* The pools, by the region number that their packets carry. */
extern struct mr_pool *mr_pools[MR_MAX_REGIONS];

/* Offset of the receive timestamp in mbufs, -1 when no driver sets one; and its flag. */
extern int mr_timestamp_offset;
extern uint64_t mr_timestamp_flag;

/* The flags of an mbuf for which a received packet takes the slow path. */
uint64_t mr_odd_flags(bool timestamps);

#endif
