/* Shared between the shim's files. */
#ifndef MILLRACE_INTERNAL_H
#define MILLRACE_INTERNAL_H

#include <rte_version.h>

#include "shim.h"

/*
 * Written for, and tried with, DPDK 22.11. No later release was compiled or run. What later ones change was read: "Removed
 * Items", "API Changes" and "ABI Changes" of the release notes of 23.03 to 25.11 (25.07 before its release), and parts of the
 * headers of 24.11.6 and of 25.11. Found for what the shim calls:
 *
 * - 23.11 moved rte_openlog_stream into librte_log: build.rs links it where pkg-config names it;
 * - about 25.11 an allocation marks mbufs of pools of external buffers as external again: guarded in burst.c;
 * - 26.07 (before its release) has net_pcap stamp frames in nanoseconds, where that offload is requested: not guarded, so that
 *   frames of net_pcap have no time there.
 *
 * Before 22.11 some names of mempool and mbuf are older ones.
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
