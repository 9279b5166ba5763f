/* The packet path: descriptors filled from mbufs and mbufs set from descriptors, by burst. */

#include "shim.h"

#include <string.h>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>
#include <rte_prefetch.h>

#include "internal.h"

/* Flags of an mbuf that say where its data lies; all others speak of offloads. */
#if RTE_VERSION >= RTE_VERSION_NUM(25, 11, 0, 0)
/* Since then each allocation from a pool of external buffers marks the mbuf as external, which mr_settle took away: the mark
 * says nothing about a packet. Whether a buffer is of another pool shows in its address. */
#define MR_KEPT_FLAGS RTE_MBUF_F_INDIRECT
#else
#define MR_KEPT_FLAGS (RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT)
#endif
/* Flags of a VLAN tag that is in the mbuf and no longer in the frame. */
#define MR_STRIPPED (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED)

_Static_assert((RTE_MBUF_F_RX_L4_CKSUM_NONE & RTE_MBUF_F_RX_L4_CKSUM_BAD) != 0, "a mask of odd flags");

/* Functions of which there is one for vector registers of 32 bytes as well, chosen when the program starts. */
#if defined(__x86_64__)
#define MR_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define MR_WIDE
#endif

/* How far a buffer lies behind the pool's first one; more than `span` when it is not the pool's (below the
 * first it wraps to a huge number). */
static inline uint64_t mr_distance(const struct mr_pool *pool, uint64_t buf)
{
	return buf - pool->first;
}

static inline bool mr_holds(const struct mr_pool *pool, const struct rte_mbuf *mbuf)
{
	return mr_distance(pool, (uint64_t)mbuf->buf_addr) <= pool->span;
}

/* The distance over the distance of slots, by multiplication with its inverse. */
static inline uint64_t mr_slot(const struct mr_pool *pool, uint64_t distance)
{
	return (unsigned __int128)distance * pool->slots_per_byte >> 64;
}

/* Eight bytes of a descriptor, written at once: written field by field they are 28 stores. The words are
 * put together for a little-endian machine, as DPDK's own are. */
typedef uint64_t mr_word __attribute__((may_alias));
#define MR_WORD(packet, field) ((mr_word *)(void *)((uint8_t *)(packet) + offsetof(struct mr_packet, field)))

_Static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "words of descriptors");

/* A quarter of a descriptor. */
typedef uint64_t mr_quarter __attribute__((vector_size(32), may_alias));

/* What all packets of a burst have in common: the last three quarters of their descriptors. */
struct mr_common {
	mr_quarter annotations;
	mr_quarter origin;	/* annotations, timestamp, the word at flow_hash */
	mr_quarter generation;	/* next, the word at segments, the word at generation, reserved1 */
};

static inline struct mr_common mr_common(const struct mr_pool *pool, uint16_t origin)
{
	return (struct mr_common){
		.origin = { 0, 0, 0, (uint64_t)origin << 32 },
		.generation = { 0, 1, (uint64_t)MR_LAYOUT_VERSION << 32 | (uint64_t)pool->region << 48, 0 },
	};
}

_Static_assert(offsetof(struct mr_packet, flow_hash) % sizeof(mr_quarter) == 24, "quarters");
_Static_assert(offsetof(struct mr_packet, segments) % sizeof(mr_quarter) == 8, "quarters");

/* A descriptor of one segment. The MAC header is where the data begins; the other headers are not known. */
static inline void mr_fill(struct mr_packet *packet, const struct rte_mbuf *mbuf, uint64_t slot,
			   const struct mr_common *common)
{
	mr_quarter *quarters = (mr_quarter *)packet;

	packet->buf = (uint64_t)mbuf->buf_addr;
	packet->handle = (uint64_t)mbuf;
	*MR_WORD(packet, data) = mbuf->data_off * UINT64_C(0x10001) | UINT64_C(0xffffffff00000000);
	packet->len = mbuf->data_len;
	packet->total = mbuf->data_len;
	quarters[1] = common->annotations;
	quarters[2] = common->origin;
	quarters[3] = common->generation;
	packet->slot = slot;
}

/* Where the mbuf headers of a pool lie: of the one that the last descriptor spoke of. */
struct mr_headers {
	uint64_t low, lines;	/* the first one's address; cache lines from there to the last one */
	uint32_t region;
};

/* Of no region. */
#define MR_NO_HEADERS ((struct mr_headers){ .region = UINT32_MAX })

static bool __rte_noinline mr_look_up(struct mr_headers *headers, uint16_t region)
{
	const struct mr_pool *pool = mr_pools[region % MR_MAX_REGIONS];

	*headers = MR_NO_HEADERS;
	if (pool != NULL)
		*headers = (struct mr_headers){ pool->headers, pool->headers_span / RTE_CACHE_LINE_SIZE, region };
	return pool != NULL;
}

/* The mbuf that a descriptor speaks of, or NULL when it speaks of none. */
static inline struct rte_mbuf *mr_mbuf(const struct mr_packet *packet, struct mr_headers *headers)
{
	struct rte_mbuf *mbuf = (struct rte_mbuf *)packet->handle;
	uint64_t from_low, line;

	if (unlikely(packet->region != headers->region) && !mr_look_up(headers, packet->region))
		return NULL;
	/* An address in the middle of a line turns into a huge number. */
	from_low = packet->handle - headers->low;
	line = from_low / RTE_CACHE_LINE_SIZE | from_low << (64 - RTE_CACHE_LINE_SIZE_LOG2);
	if (unlikely(line > headers->lines || (uint64_t)mbuf->buf_addr != packet->buf))
		return NULL;
	return mbuf;
}

/* Whether a packet's buffer is one of its pool's: a handle alone may also name another line among the headers. */
static bool mr_has_buffer(const struct mr_packet *packet)
{
	const struct mr_pool *pool = mr_pools[packet->region % MR_MAX_REGIONS];
	uint64_t stride, distance;

	if (pool == NULL)
		return false;
	stride = pool->external ? MR_SLOT_BYTES : MR_FOREIGN_STRIDE;
	distance = mr_distance(pool, packet->buf);
	return distance <= pool->span && distance % stride == 0;
}

/* Where the descriptor of a slot lies that is a further segment. */
static inline struct mr_packet *mr_chained(const struct mr_pool *pool, uint64_t slot)
{
	return (struct mr_packet *)(pool->chains + slot * pool->chains_stride);
}

/* The descriptor of the segment after this one, copied once. */
static bool mr_following(struct mr_packet *packet)
{
	const struct mr_pool *pool = mr_pools[packet->region % MR_MAX_REGIONS];
	uint64_t at;

	if (pool == NULL || packet->next == 0)
		return false;
	at = (packet->next - 1) * (pool->external ? MR_SLOT_BYTES : MR_FOREIGN_STRIDE);
	if (packet->next - 1 > UINT32_MAX || at > pool->span)
		return false;
	memcpy(packet, mr_chained(pool, packet->next - 1), sizeof(*packet));
	return mr_has_buffer(packet);
}

/* Back to what every mbuf is that Rust holds: no part of a chain. */
static inline void mr_unlink(struct rte_mbuf *mbuf)
{
	mbuf->next = NULL;
	mbuf->nb_segs = 1;
}

MR_WIDE uint32_t mr_alloc(struct mr_pool *pool, struct mr_packet *out, uint32_t count)
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
		uint64_t slot = mr_slot(pool, mr_distance(pool, (uint64_t)mbufs[i]->buf_addr));

#if RTE_VERSION >= RTE_VERSION_NUM(25, 11, 0, 0)
		/* See MR_KEPT_FLAGS: without the mark, freeing looks at no reference count of a buffer. */
		mbufs[i]->ol_flags = 0;
#endif
		mr_fill(&out[i], mbufs[i], slot, &common);
		out[i].mac = MR_NO_HEADER;
	}
	return got;
}

/* Frees the segments of a chain one by one: the descriptors say what is in it. */
static void __rte_noinline mr_free_chain(const struct mr_packet *head, struct mr_burst *burst)
{
	struct mr_headers headers = MR_NO_HEADERS;
	struct mr_packet packet = *head;
	uint32_t left = RTE_MAX(packet.segments, 1);
	bool there = true;

	for (; there && left > 0; left--) {
		struct rte_mbuf *mbuf = mr_mbuf(&packet, &headers);

		if (mbuf == NULL) {
			burst->bad++;
			return;
		}
		there = left > 1 && mr_following(&packet);
		rte_pktmbuf_free_seg(mbuf);
	}
}

void mr_free(const struct mr_packet *packets, uint32_t count, const uint16_t *list, uint32_t listed,
	     struct mr_burst *burst)
{
	struct rte_mbuf *mbufs[MR_MAX_BURST];
	struct mr_headers headers = MR_NO_HEADERS;
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
		mbuf = mr_mbuf(packet, &headers);
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

/* One holder more for each packet: drivers and mr_free let go of one at a time. */
void mr_share(const struct mr_packet *packets, uint32_t count)
{
	struct mr_headers headers = MR_NO_HEADERS;

	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *mbuf = mr_mbuf(&packets[i], &headers);

		if (likely(mbuf != NULL))
			rte_mbuf_refcnt_update(mbuf, 1);
	}
}

/* Keeps the descriptors of the segments after the first, and takes the chain apart: from here
 * on the descriptors say what is in it. */
static bool mr_fill_chain(struct mr_packet *head, struct rte_mbuf *mbuf, const struct mr_pool *pool)
{
	const struct mr_common common = mr_common(pool, MR_NO_PORT);
	struct rte_mbuf *segment, *following;
	uint64_t *link = &head->next;
	uint16_t segments = 1;

	for (segment = mbuf->next; segment != NULL; segment = segment->next)
		if (!mr_holds(pool, segment))
			return false;
	for (segment = mbuf->next; segment != NULL; segment = following) {
		uint64_t slot = mr_slot(pool, mr_distance(pool, (uint64_t)segment->buf_addr));
		struct mr_packet *parked = mr_chained(pool, slot);

		mr_fill(parked, segment, slot, &common);
		parked->mac = MR_NO_HEADER;
		segment->ol_flags &= MR_KEPT_FLAGS;
		*link = slot + 1;
		link = &parked->next;
		segments++;
		following = segment->next;
		mr_unlink(segment);
	}
	mr_unlink(mbuf);
	head->segments = segments;
	head->total = mbuf->pkt_len;
	return true;
}

static inline uint8_t mr_packet_type(const uint8_t *frame)
{
	uint64_t mac = 0;

	memcpy(&mac, frame, 6);
	return mac == UINT64_C(0xffffffffffff) ? MR_BROADCAST : MR_MULTICAST;
}

/* Puts a tag behind the addresses of a frame. False when there is no room for it in front of the frame. */
static bool mr_insert_tag(struct rte_mbuf *mbuf, uint16_t ethertype, uint16_t tci)
{
	const uint8_t tag[4] = { ethertype >> 8, ethertype & 0xff, tci >> 8, tci & 0xff };
	uint8_t *frame;

	if (mbuf->data_off < sizeof(tag) || mbuf->data_len < 2 * RTE_ETHER_ADDR_LEN)
		return false;
	mbuf->data_off -= sizeof(tag);
	mbuf->data_len += sizeof(tag);
	mbuf->pkt_len += sizeof(tag);
	frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	memmove(frame, frame + sizeof(tag), 2 * RTE_ETHER_ADDR_LEN);
	memcpy(frame + 2 * RTE_ETHER_ADDR_LEN, tag, sizeof(tag));
	return true;
}

/* Puts back the VLAN tags that the device removed: the port asks no device to do so, some do it by themselves.
 * Devices do not report the EtherType of a removed tag. A single tag gets 0x8100, the outer one of two 0x88a8. */
static bool mr_restore_tags(struct rte_mbuf *mbuf, struct mr_packet *packet)
{
	uint64_t flags = mbuf->ol_flags;

	if ((flags & RTE_MBUF_F_RX_VLAN_STRIPPED) && !mr_insert_tag(mbuf, RTE_ETHER_TYPE_VLAN, mbuf->vlan_tci))
		return false;
	if ((flags & RTE_MBUF_F_RX_QINQ_STRIPPED) && !mr_insert_tag(mbuf, RTE_ETHER_TYPE_QINQ, mbuf->vlan_tci_outer))
		return false;
	packet->data = packet->mac = mbuf->data_off;
	packet->len = packet->total = mbuf->data_len;
	return true;
}

/* The slow path: a packet with a group's address, with flags of the queue's `odd`, with several segments or with a
 * buffer from elsewhere. Its descriptor is filled; other flags were taken by mr_has_odd_flags. Returns whether it was
 * received. */
static bool __rte_noinline mr_receive_odd(const struct mr_queue *queue, struct rte_mbuf *mbuf,
					  struct mr_packet *packet, struct mr_burst *burst)
{
	uint64_t flags = mbuf->ol_flags;

	burst->odd++;
	if (!mr_holds(queue->pool, mbuf) ||
	    ((flags & MR_STRIPPED) != 0 && !mr_restore_tags(mbuf, packet)) ||
	    (mbuf->nb_segs > 1 && !mr_fill_chain(packet, mbuf, queue->pool))) {
		burst->foreign++;
		rte_pktmbuf_free(mbuf);
		return false;
	}
	mbuf->ol_flags &= MR_KEPT_FLAGS;
	if (packet->len >= 6 && (*rte_pktmbuf_mtod(mbuf, const uint8_t *) & 1) != 0)
		packet->packet_type = mr_packet_type(rte_pktmbuf_mtod(mbuf, const uint8_t *));
	if (flags & RTE_MBUF_F_RX_RSS_HASH)
		packet->flow_hash = mbuf->hash.rss;
	/* "Not good in the packet, but its integrity is verified": a sender on this machine left it to a
	 * device. */
	if ((flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_NONE)
		packet->flags |= MR_PARTIAL_CHECKSUM;
	if (flags & RTE_MBUF_F_RX_LRO)
		packet->flags |= MR_GSO;
	if (queue->microseconds && (flags & mr_timestamp_flag))
		packet->timestamp_ns = 1000 * *RTE_MBUF_DYNFIELD(mbuf, mr_timestamp_offset, rte_mbuf_timestamp_t *);
	burst->flagged += packet->flags != 0;
	return true;
}

/* Whether the flags of a packet that has some need the slow path. Where they do not, the hash is copied and the flags
 * are cleared: most devices that spread flows over queues report a hash with each packet. */
static inline bool mr_has_odd_flags(const struct mr_queue *queue, struct rte_mbuf *mbuf, struct mr_packet *packet)
{
	/* Volatile, so that the caller compares in memory: a load would be one more instruction for packets without flags. */
	uint64_t flags = *(volatile uint64_t *)&mbuf->ol_flags;

	if (unlikely((flags & queue->odd) != 0))
		return true;
	if (likely((flags & RTE_MBUF_F_RX_RSS_HASH) != 0))
		packet->flow_hash = mbuf->hash.rss;
	mbuf->ol_flags = 0;
	return false;
}

/* The flags for which a packet takes the slow path. "Bad checksum" is one bit of "none"; alone it changes nothing:
 * elements that are asked to check a checksum compute it. */
uint64_t mr_odd_flags(bool timestamps)
{
	return MR_KEPT_FLAGS | MR_STRIPPED | RTE_MBUF_F_RX_L4_CKSUM_BAD | RTE_MBUF_F_RX_LRO |
		(timestamps ? mr_timestamp_flag : 0);
}

MR_WIDE uint32_t mr_receive(const struct mr_queue *queue, struct mr_packet *out, uint32_t count,
			    struct mr_burst *burst)
{
	struct rte_mbuf *mbufs[MR_MAX_BURST];
	const struct mr_pool *pool = queue->pool;
	const struct mr_common common = mr_common(pool, queue->origin);
	const uint64_t first = pool->first, span = pool->span;
	struct mr_packet *packet = out;
	uint64_t bytes = 0;
	uint32_t got;

	mr_thread();
	got = rte_eth_rx_burst(queue->port, queue->queue, mbufs, RTE_MIN(count, (uint32_t)MR_MAX_BURST));
	if (queue->prefetch)
		for (uint32_t i = 0; i < got; i++)
			rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], void *));
	for (uint32_t i = 0; i < got; i++) {
		struct rte_mbuf *mbuf = mbufs[i];
		uint64_t distance = (uint64_t)mbuf->buf_addr - first;

		mr_fill(packet, mbuf, mr_slot(pool, distance), &common);
		/* The first byte of an empty frame is one of its buffer, too. */
		if (unlikely(distance > span ||
			     (unlikely(mbuf->ol_flags != 0) && mr_has_odd_flags(queue, mbuf, packet)) ||
			     mbuf->nb_segs != 1 || (*rte_pktmbuf_mtod(mbuf, const uint8_t *) & 1) != 0) &&
		    !mr_receive_odd(queue, mbuf, packet, burst))
			continue;
		bytes += packet->total;
		packet++;
	}
	burst->bytes = bytes;
	return packet - out;
}

static void __rte_noinline mr_unlink_chain(struct rte_mbuf *mbuf)
{
	while (mbuf != NULL) {
		struct rte_mbuf *following = mbuf->next;

		mr_unlink(mbuf);
		mbuf = following;
	}
}

static inline void mr_set(struct rte_mbuf *mbuf, const struct mr_packet *packet)
{
	mbuf->data_off = packet->data;
	mbuf->data_len = packet->len;
}

/* Links the mbufs of a chain, or returns NULL when one of its descriptors speaks of none, or of one that is
 * in the chain already. */
static struct rte_mbuf *__rte_noinline mr_set_chain(const struct mr_packet *first)
{
	struct mr_headers headers = MR_NO_HEADERS;
	struct mr_packet packet = *first;
	struct rte_mbuf *head = mr_mbuf(&packet, &headers), *last = head;
	uint32_t left = packet.segments, segments = 1, total = packet.len;

	if (head == NULL)
		return NULL;
	mr_set(head, &packet);
	while (--left > 0) {
		struct rte_mbuf *mbuf = mr_following(&packet) ? mr_mbuf(&packet, &headers) : NULL;

		if (mbuf == NULL || mbuf == last || mbuf->next != NULL ||
		    (uint64_t)packet.data + packet.len > MR_BUF_BYTES) {
			mr_unlink_chain(head);
			return NULL;
		}
		mr_set(mbuf, &packet);
		last->next = mbuf;
		last = mbuf;
		segments++;
		total += packet.len;
	}
	head->nb_segs = segments;
	head->pkt_len = total;
	return head;
}

/* How many entries at the front of a list are below `count`. */
static inline uint32_t mr_within(const uint16_t *list, uint32_t listed, uint32_t count)
{
	uint16_t bits = 0;
	uint32_t within = 0;

	for (uint32_t i = 0; i < listed; i++)
		bits |= list[i];
	/* No entry is larger than all their bits together. */
	if (likely(bits < count))
		return listed;
	while (within < listed && list[within] < count)
		within++;
	return within;
}

/* Returns how many from the front of the list were sent. Stops in front of the first descriptor that
 * speaks of no packet of a pool here, which the caller then looks at. */
uint32_t mr_send(uint16_t port, uint16_t queue, const struct mr_packet *packets, uint32_t count,
		 const uint16_t *list, uint32_t listed, struct mr_burst *burst)
{
	struct rte_mbuf *mbufs[MR_MAX_BURST];
	struct mr_headers headers = MR_NO_HEADERS;
	uint32_t within, ready, sent;
	uint64_t bytes = 0;

	mr_thread();
	listed = RTE_MIN(listed, (uint32_t)MR_MAX_BURST);
	within = mr_within(list, listed, count);
	for (ready = 0; ready < within; ready++) {
		const struct mr_packet *packet = &packets[list[ready]];
		uint64_t data = packet->data, len = packet->len;
		struct rte_mbuf *mbuf;

		if (unlikely(data + len > MR_BUF_BYTES))
			break;
		if (unlikely(packet->segments > 1)) {
			mbuf = mr_set_chain(packet);
			if (mbuf == NULL)
				break;
			len = mbuf->pkt_len;
		} else {
			mbuf = mr_mbuf(packet, &headers);
			if (unlikely(mbuf == NULL))
				break;
			mr_set(mbuf, packet);
			mbuf->pkt_len = len;
		}
		mbufs[ready] = mbuf;
		bytes += len;
	}
	sent = ready > 0 ? rte_eth_tx_burst(port, queue, mbufs, ready) : 0;
	for (uint32_t i = sent; i < ready; i++) {
		bytes -= mbufs[i]->pkt_len;
		if (mbufs[i]->nb_segs > 1)
			mr_unlink_chain(mbufs[i]);
	}
	burst->bytes = bytes;
	if (sent == ready && ready < listed)
		burst->bad++;
	return sent;
}
