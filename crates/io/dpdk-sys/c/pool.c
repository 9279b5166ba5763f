/* Pools: mbuf headers in DPDK's memory, packet data in a region of ours or behind the headers. */

#include "shim.h"

#include <errno.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "internal.h"

struct mr_pool *mr_pools[MR_MAX_REGIONS];

struct bounds {
	uint64_t low, high;		/* headers */
	uint64_t buf_low, buf_high;	/* buffers */
};

static void mr_widen(struct rte_mempool *mempool, void *opaque, void *object, unsigned int index)
{
	struct bounds *bounds = opaque;
	struct rte_mbuf *mbuf = object;
	uint64_t at = (uint64_t)mbuf, buf = (uint64_t)mbuf->buf_addr;

	(void)mempool;
	(void)index;
	bounds->low = RTE_MIN(bounds->low, at);
	bounds->high = RTE_MAX(bounds->high, at);
	bounds->buf_low = RTE_MIN(bounds->buf_low, buf);
	bounds->buf_high = RTE_MAX(bounds->buf_high, buf);
}

/* Has drivers free this mbuf as one of their own. Its buffer belongs to it for good, so none of the
 * questions that an mbuf marked external makes `rte_pktmbuf_free` ask (whose buffer is it? who else refers
 * to it?) has another answer; asking them costs a third cache line of each packet sent. The pool keeps its
 * own mark, by which drivers that register memory with a device find the region. */
static void mr_settle(struct rte_mempool *mempool, void *opaque, void *object, unsigned int index)
{
	struct rte_mbuf *mbuf = object;

	(void)mempool;
	(void)opaque;
	(void)index;
	mbuf->ol_flags &= ~RTE_MBUF_F_EXTERNAL;
}

/* With `base`, data lies in that region of `bytes` (a buffer follows each metadata block), which others may
 * write, and descriptors of further segments lie in `chains`, which they may not; without, in an ordinary
 * mempool whose private area is the metadata block, for both. */
int mr_pool_create(const char *name, void *base, void *chains, uint64_t bytes, uint64_t page_bytes,
		   uint32_t slots, uint32_t cache, struct mr_pool *pool)
{
	struct bounds bounds = { .low = UINT64_MAX, .buf_low = UINT64_MAX };
	int node = (int)rte_socket_id();

	memset(pool, 0, sizeof(*pool));
	mr_thread();
	if (base != NULL) {
		struct rte_pktmbuf_extmem memory = {
			.buf_ptr = (uint8_t *)base + MR_META_BYTES,
			.buf_iova = (rte_iova_t)base + MR_META_BYTES,
			.buf_len = bytes - MR_META_BYTES,
			.elt_size = MR_SLOT_BYTES,
		};

		/* The last slot's buffer must end inside, counted in whole slots from the first buffer. */
		slots = RTE_MIN(slots, (uint32_t)(memory.buf_len / MR_SLOT_BYTES));
		if (rte_extmem_register(base, bytes, NULL, 0, page_bytes) != 0)
			return -rte_errno;
		pool->mempool = rte_pktmbuf_pool_create_extbuf(name, slots, cache, 0, MR_BUF_BYTES, node,
							       &memory, 1);
		if (pool->mempool == NULL) {
			int error = rte_errno;

			rte_extmem_unregister(base, bytes);
			return -error;
		}
		rte_mempool_obj_iter(pool->mempool, mr_settle, NULL);
		pool->external = true;
	} else {
		pool->mempool = rte_pktmbuf_pool_create(name, slots, cache, MR_META_BYTES, MR_BUF_BYTES, node);
		if (pool->mempool == NULL)
			return -rte_errno;
	}
	rte_mempool_obj_iter(pool->mempool, mr_widen, &bounds);
	pool->base = (base != NULL ? (uint64_t)base + MR_META_BYTES : bounds.buf_low) - MR_META_BYTES;
	pool->first = pool->base + MR_META_BYTES;
	pool->span = bounds.buf_high - pool->first;
	/* Rounded up: right for all distances below 2^52. */
	pool->slots_per_byte = UINT64_MAX / (pool->external ? MR_SLOT_BYTES : MR_FOREIGN_STRIDE) + 1;
	pool->chains = pool->external ? (uint64_t)chains : pool->base;
	pool->chains_stride = pool->external ? MR_META_BYTES : MR_FOREIGN_STRIDE;
	pool->headers = bounds.low;
	pool->headers_span = bounds.high - bounds.low;
	pool->capacity = slots;
	return 0;
}

/* Makes a pool known under the number that descriptors carry. It stays for the life of the process. */
void mr_pool_number(struct mr_pool *pool, uint16_t region)
{
	pool->region = region;
	__atomic_store_n(&mr_pools[region % MR_MAX_REGIONS], pool, __ATOMIC_RELEASE);
}

uint32_t mr_pool_available(const struct mr_pool *pool)
{
	return rte_mempool_avail_count(pool->mempool);
}
