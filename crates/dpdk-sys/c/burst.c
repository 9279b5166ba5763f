/* The packet path: descriptors filled from mbufs and mbufs set from descriptors, by burst. */

#include "shim.h"

#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>
#include <rte_prefetch.h>

#include "internal.h"

/* Flags of an mbuf that say where its data lies; all others speak of offloads and are set anew. */
#define MR_KEPT_FLAGS (RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT)

static inline bool mr_holds(const struct mr_pool *pool, const struct rte_mbuf *mbuf)
{
	/* Below the first buffer it wraps to a huge number: one comparison for both ends. */
	return (uint64_t)mbuf->buf_addr - (pool->base + MR_META_BYTES) <= pool->span;
}

static inline uint32_t mr_slot(const struct mr_pool *pool, uint64_t buf)
{
	uint64_t at = buf - MR_META_BYTES - pool->base;

	/* Both divisors are constants, so neither is a division. */
	return pool->external ? at / MR_SLOT_BYTES : at / MR_FOREIGN_STRIDE;
}

/* Eight bytes of a descriptor, written at once: written field by field they are 28 stores. The words are
 * put together for a little-endian machine, as DPDK's own are. */
#define MR_WORD(packet, field) ((uint64_t *)(void *)((uint8_t *)(packet) + offsetof(struct mr_packet, field)))

_Static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "words of descriptors");

/* What all packets of a burst have in common. */
struct mr_common {
	uint64_t origin;	/* the word at flow_hash */
	uint64_t generation;	/* the word at generation */
};

static inline struct mr_common mr_common(const struct mr_pool *pool, uint16_t origin)
{
	return (struct mr_common){
		.origin = (uint64_t)origin << 32,
		.generation = (uint64_t)MR_LAYOUT_VERSION << 32 | (uint64_t)pool->region << 48,
	};
}

static inline void mr_fill(struct mr_packet *packet, const struct rte_mbuf *mbuf, const struct mr_pool *pool,
			   const struct mr_common *common, uint8_t packet_type)
{
	uint64_t buf = (uint64_t)mbuf->buf_addr;

	packet->buf = buf;
	packet->handle = (uint64_t)mbuf;
	/* The MAC header is where the data starts; the others are not known. */
	*MR_WORD(packet, data) = (uint64_t)mbuf->data_off * 0x10001 | UINT64_C(0xffffffff00000000);
	*MR_WORD(packet, len) = mbuf->data_len | (uint64_t)mbuf->pkt_len << 32;
	memset(packet->anno, 0, sizeof(packet->anno) + sizeof(packet->timestamp_ns));
	*MR_WORD(packet, flow_hash) = common->origin;
	packet->next = 0;
	*MR_WORD(packet, segments) = 1 | (uint64_t)packet_type << 16 | (uint64_t)mr_slot(pool, buf) << 32;
	*MR_WORD(packet, generation) = common->generation;
	packet->reserved1 = 0;
}

/* The mbuf that a descriptor speaks of, or NULL when it speaks of none. */
static inline struct rte_mbuf *mr_mbuf(const struct mr_packet *packet)
{
	const struct mr_pool *pool = mr_pools[packet->region % MR_MAX_REGIONS];
	struct rte_mbuf *mbuf = (struct rte_mbuf *)packet->handle;

	if (unlikely(pool == NULL || packet->handle - pool->headers > pool->headers_span ||
		     packet->handle % RTE_CACHE_LINE_SIZE != 0 || (uint64_t)mbuf->buf_addr != packet->buf))
		return NULL;
	return mbuf;
}

/* The descriptor of the segment after this one: it lies in its slot's metadata block. */
static const struct mr_packet *mr_following(const struct mr_packet *packet)
{
	const struct mr_pool *pool = mr_pools[packet->region % MR_MAX_REGIONS];
	uint64_t at;

	if (pool == NULL || packet->next == 0)
		return NULL;
	at = (packet->next - 1) * (pool->external ? MR_SLOT_BYTES : MR_FOREIGN_STRIDE);
	return packet->next - 1 > UINT32_MAX || at > pool->span ? NULL : (struct mr_packet *)(pool->base + at);
}

/* Back to what every mbuf is that Rust holds: no part of a chain. */
static inline void mr_unlink(struct rte_mbuf *mbuf)
{
	mbuf->next = NULL;
	mbuf->nb_segs = 1;
}

uint32_t mr_alloc(struct mr_pool *pool, struct mr_packet *out, uint32_t count)
{
	const struct mr_common common = mr_common(pool, MR_NO_PORT);
	struct rte_mbuf *mbufs[MR_MAX_BURST];
	uint32_t got = 0;

	count = RTE_MIN(count, (uint32_t)MR_MAX_BURST);
	mr_thread();
	if (likely(rte_pktmbuf_alloc_bulk(pool->mempool, mbufs, count) == 0)) {
		got = count;
	} else {
		/* Nearly empty: take what there is. */
		while (got < count && (mbufs[got] = rte_pktmbuf_alloc(pool->mempool)) != NULL)
			got++;
	}
	for (uint32_t i = 0; i < got; i++) {
		mr_fill(&out[i], mbufs[i], pool, &common, MR_HOST);
		out[i].mac = MR_NO_HEADER;
	}
	return got;
}

/* Frees the segments of a chain one by one: the descriptors say what is in it. */
static void __rte_noinline mr_free_chain(const struct mr_packet *packet, struct mr_burst *burst)
{
	uint32_t left = RTE_MAX(packet->segments, 1);

	for (; packet != NULL && left > 0; left--) {
		struct rte_mbuf *mbuf = mr_mbuf(packet);

		if (mbuf == NULL) {
			burst->bad++;
			return;
		}
		packet = left > 1 ? mr_following(packet) : NULL;
		rte_pktmbuf_free_seg(mbuf);
	}
}

void mr_free(const struct mr_packet *packets, uint32_t count, const uint16_t *list, uint32_t listed,
	     struct mr_burst *burst)
{
	struct rte_mbuf *mbufs[MR_MAX_BURST];
	struct rte_mempool *mempool = NULL;
	uint32_t held = 0;

	mr_thread();
	for (uint32_t i = 0; i < listed; i++) {
		uint32_t index = list != NULL ? list[i] : i;
		const struct mr_packet *packet = &packets[index];
		struct rte_mbuf *mbuf;

		if (unlikely(index >= count))
			continue;
		if (unlikely(packet->segments > 1)) {
			mr_free_chain(packet, burst);
			continue;
		}
		mbuf = mr_mbuf(packet);
		if (unlikely(mbuf == NULL)) {
			burst->bad++;
			continue;
		}
		if (unlikely(rte_mbuf_refcnt_read(mbuf) != 1)) {
			rte_pktmbuf_free_seg(mbuf);
			continue;
		}
		/* Of a single reference and no chain, as a free mbuf has to be: it goes back raw. */
		if (unlikely(mbuf->pool != mempool || held == MR_MAX_BURST)) {
			if (held > 0)
				rte_mempool_put_bulk(mempool, (void **)mbufs, held);
			mempool = mbuf->pool;
			held = 0;
		}
		mbufs[held++] = mbuf;
	}
	if (held > 0)
		rte_mempool_put_bulk(mempool, (void **)mbufs, held);
}

/* Parks the segments after the first in their slots, last to first, and takes the chain apart: from here
 * on the descriptors say what is in it. */
static bool __rte_noinline mr_fill_chain(struct mr_packet *head, struct rte_mbuf *mbuf,
					 const struct mr_pool *pool)
{
	const struct mr_common common = mr_common(pool, MR_NO_PORT);
	struct rte_mbuf *segment, *following;
	uint64_t *link = &head->next;
	uint16_t segments = 1;

	for (segment = mbuf->next; segment != NULL; segment = segment->next)
		if (!mr_holds(pool, segment))
			return false;
	for (segment = mbuf->next; segment != NULL; segment = following) {
		struct mr_packet *parked = (struct mr_packet *)((uint8_t *)segment->buf_addr - MR_META_BYTES);

		mr_fill(parked, segment, pool, &common, MR_HOST);
		parked->total = segment->data_len;
		parked->mac = MR_NO_HEADER;
		*link = (uint64_t)parked->slot + 1;
		link = &parked->next;
		segments++;
		following = segment->next;
		mr_unlink(segment);
	}
	mr_unlink(mbuf);
	head->segments = segments;
	return true;
}

static inline uint8_t mr_packet_type(const uint8_t *frame)
{
	uint64_t mac = 0;

	if (likely((frame[0] & 1) == 0))
		return MR_HOST;
	memcpy(&mac, frame, 6);
	return mac == UINT64_C(0xffffffffffff) ? MR_BROADCAST : MR_MULTICAST;
}

uint32_t mr_receive(const struct mr_queue *queue, struct mr_packet *out, uint32_t count,
		    struct mr_burst *burst)
{
	struct rte_mbuf *mbufs[MR_MAX_BURST];
	const struct mr_pool *pool = queue->pool;
	const struct mr_common common = mr_common(pool, queue->origin);
	uint32_t kept = 0, got;
	uint64_t bytes = 0;

	mr_thread();
	got = rte_eth_rx_burst(queue->port, queue->queue, mbufs, RTE_MIN(count, (uint32_t)MR_MAX_BURST));
	for (uint32_t i = 0; i < got; i++)
		rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], void *));
	for (uint32_t i = 0; i < got; i++) {
		struct rte_mbuf *mbuf = mbufs[i];
		struct mr_packet *packet = &out[kept];
		uint64_t flags = mbuf->ol_flags;
		uint8_t packet_type = MR_HOST;

		if (unlikely(!mr_holds(pool, mbuf))) {
			burst->foreign++;
			rte_pktmbuf_free(mbuf);
			continue;
		}
		if (likely(mbuf->data_len >= 6))
			packet_type = mr_packet_type(rte_pktmbuf_mtod(mbuf, const uint8_t *));
		mr_fill(packet, mbuf, pool, &common, packet_type);
		bytes += mbuf->pkt_len;
		if (unlikely(mbuf->nb_segs > 1) && !mr_fill_chain(packet, mbuf, pool)) {
			bytes -= mbuf->pkt_len;
			burst->foreign++;
			rte_pktmbuf_free(mbuf);
			continue;
		}
		if (flags & ~MR_KEPT_FLAGS) {
			if (flags & RTE_MBUF_F_RX_RSS_HASH)
				packet->flow_hash = mbuf->hash.rss;
			/* "Not good in the packet, but its integrity is verified": a sender on this machine
			 * left it to a device. */
			if ((flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_NONE)
				packet->flags |= MR_PARTIAL_CHECKSUM;
			if (flags & RTE_MBUF_F_RX_LRO)
				packet->flags |= MR_GSO;
			if (queue->microseconds && (flags & mr_timestamp_flag))
				packet->timestamp_ns = 1000 *
					*RTE_MBUF_DYNFIELD(mbuf, mr_timestamp_offset, rte_mbuf_timestamp_t *);
			burst->flagged += packet->flags != 0;
		}
		kept++;
	}
	burst->bytes = bytes;
	return kept;
}

static inline void mr_set(struct rte_mbuf *mbuf, const struct mr_packet *packet)
{
	mbuf->data_off = packet->data;
	mbuf->data_len = packet->len;
	mbuf->ol_flags &= MR_KEPT_FLAGS;
}

static void __rte_noinline mr_unlink_chain(struct rte_mbuf *mbuf)
{
	while (mbuf != NULL) {
		struct rte_mbuf *following = mbuf->next;

		mr_unlink(mbuf);
		mbuf = following;
	}
}

static struct rte_mbuf *__rte_noinline mr_set_chain(const struct mr_packet *packet)
{
	struct rte_mbuf *head = mr_mbuf(packet), *last = head;
	uint32_t left = packet->segments, segments = 1, total = packet->len;

	if (head == NULL)
		return NULL;
	mr_set(head, packet);
	while (--left > 0) {
		struct rte_mbuf *mbuf;

		packet = mr_following(packet);
		mbuf = packet != NULL ? mr_mbuf(packet) : NULL;
		if (mbuf == NULL || packet->data + packet->len > MR_BUF_BYTES) {
			mr_unlink_chain(head);
			return NULL;
		}
		mr_set(mbuf, packet);
		last->next = mbuf;
		last = mbuf;
		segments++;
		total += packet->len;
	}
	head->nb_segs = segments;
	head->pkt_len = total;
	return head;
}

/* Returns how many from the front of the list were sent. Stops in front of the first descriptor that
 * speaks of no packet of a pool here, which the caller then looks at. */
uint32_t mr_send(uint16_t port, uint16_t queue, const struct mr_packet *packets, uint32_t count,
		 const uint16_t *list, uint32_t listed, struct mr_burst *burst)
{
	struct rte_mbuf *mbufs[MR_MAX_BURST];
	uint32_t ready, sent;
	uint64_t bytes = 0;

	mr_thread();
	listed = RTE_MIN(listed, (uint32_t)MR_MAX_BURST);
	for (ready = 0; ready < listed; ready++) {
		const struct mr_packet *packet = &packets[list[ready]];
		struct rte_mbuf *mbuf;

		if (unlikely(list[ready] >= count || packet->data + packet->len > MR_BUF_BYTES))
			break;
		if (unlikely(packet->segments > 1)) {
			mbuf = mr_set_chain(packet);
		} else {
			mbuf = mr_mbuf(packet);
			if (likely(mbuf != NULL)) {
				mr_set(mbuf, packet);
				mbuf->pkt_len = packet->len;
			}
		}
		if (unlikely(mbuf == NULL))
			break;
		mbufs[ready] = mbuf;
		bytes += packet->total;
	}
	sent = ready > 0 ? rte_eth_tx_burst(port, queue, mbufs, ready) : 0;
	for (uint32_t i = sent; i < ready; i++) {
		bytes -= packets[list[i]].total;
		if (mbufs[i]->nb_segs > 1)
			mr_unlink_chain(mbufs[i]);
	}
	burst->bytes = bytes;
	if (sent == ready && ready < listed)
		burst->bad++;
	return sent;
}
