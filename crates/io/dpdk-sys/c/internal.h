/* Shared between the shim's files. */
#ifndef MILLRACE_INTERNAL_H
#define MILLRACE_INTERNAL_H

#include "shim.h"

/* The pools, by the region number that their packets carry. */
extern struct mr_pool *mr_pools[MR_MAX_REGIONS];

/* Offset of the receive timestamp in mbufs, -1 when no driver sets one; and its flag. */
extern int mr_timestamp_offset;
extern uint64_t mr_timestamp_flag;

/* The flags of an mbuf for which a received packet takes the slow path. */
uint64_t mr_odd_flags(bool timestamps);

#endif
