/* millrace.h: what a network function (NF) in C is written against.
 *
 * An NF takes packets from the host where they lie, in memory that both share, and gives every one of them back:
 * sent out of an interface, dropped for a reason, or held for later. There are two ways to write one:
 *
 *   millrace_run      calls a function for each batch of packets;
 *   millrace_attach   leaves the loop to the NF: millrace_receive, millrace_send, millrace_drop, ...
 *
 * `cargo build --release -p millrace-nf-c` builds target/release/libmillrace_nf.a and libmillrace_nf.so; the static
 * one also wants -lpthread -ldl -lm. The guide is docs/nf-writers-guide.md.
 *
 * Conventions, unless a function says otherwise:
 *
 * - Errors. Functions that return `int` return a negative MILLRACE_ERROR_... code when they fail, and have then done
 *   nothing; functions that return a pointer return NULL. millrace_error() has the sentence that says why. NULL where
 *   an object is wanted is MILLRACE_ERROR_ARGUMENT, not a crash.
 * - Ownership. A `millrace_packet` names a packet that the NF has. A function that gives a packet away sets the
 *   struct that it was passed to all zero; a copy of the struct then names nothing, and using it is
 *   MILLRACE_ERROR_PACKET. Text and memory that the library returns stay the library's.
 * - Threads. A link, its options and its packets are used by one thread at a time. millrace_error() is each
 *   thread's own. A process may have several links.
 * - Units. Lengths, offsets and room are bytes. Frames are Ethernet frames without FCS. Interfaces, reasons and
 *   counters are numbers; interfaces and counters count from 0, reasons from 1.
 * - Text is UTF-8 and ends with NUL; what the library is passed it copies before it returns.
 */
#ifndef MILLRACE_H
#define MILLRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A pointer is NULL, a text is no UTF-8, or a number is out of range. */
#define MILLRACE_ERROR_ARGUMENT (-1)
/* The struct names no packet that this NF has: it was given away, or never received. */
#define MILLRACE_ERROR_PACKET (-2)
/* The packet is held and must be released first; or it is to be released and is not held. */
#define MILLRACE_ERROR_HELD (-3)
/* There is no room in the packet (or it cannot be written), no slot for a new one, or no number for one more reason or
 * counter. */
#define MILLRACE_ERROR_ROOM (-4)
/* There is no host, it refused this NF, or it hung up. */
#define MILLRACE_ERROR_HOST (-5)
/* The NF itself said that it cannot run. */
#define MILLRACE_ERROR_START (-6)

/* Packets that a batch has at most, and that a call of millrace_receive takes from the host at most. */
#define MILLRACE_BURST 64

/* What millrace_neighbour knows: the platform looks for it; its address; it does not answer. */
#define MILLRACE_NEIGHBOUR_RESOLVING 0
#define MILLRACE_NEIGHBOUR_KNOWN 1
#define MILLRACE_NEIGHBOUR_UNREACHABLE 2

/* What an NF says of itself before it attaches. */
typedef struct millrace_options millrace_options;

/* An NF's way to its host. */
typedef struct millrace_link millrace_link;

/* Which packet a struct names. For the library alone. */
typedef struct millrace_token {
    uint32_t place;
    uint32_t serial;
} millrace_token;

/* A packet that the NF has.
 *
 * `data` points to the frame's first byte in memory that is shared with the host and with the NFs of the same trust
 * group: they can change it at any moment, so read a field once, into a variable of your own, and use that. The
 * bytes may be written unless millrace_is_writable says otherwise, from `data` up to `data + length`, and stay in
 * place until the packet is given away or moved by push, pull, append or truncate.
 *
 * Setting the members has no effect on the packet: use the functions below. */
typedef struct millrace_packet {
    uint8_t *data;        /* the first byte */
    uint32_t length;      /* bytes from there */
    uint16_t interface;   /* number of the interface that it came in by; 0 for one that the NF made */
    uint16_t reserved;
    millrace_token token;
} millrace_packet;

/* What is known of a packet beside its bytes, for NFs that asked for it (millrace_options_metadata). Coming from
 * another NF it is a claim like the bytes. */
typedef struct millrace_metadata {
    uint64_t timestamp_ns;    /* when it was received, nanoseconds since the epoch; 0 when not known */
    uint32_t flow_hash;       /* the port's, the same in both directions; 0 when not known */
    int32_t network;          /* where the network header begins, bytes from `data`; -1 when not known */
    int32_t transport;        /* the same of the transport header */
    uint8_t annotations[48];  /* Click annotations */
    uint32_t reserved;
} millrace_metadata;

/* ---- Errors ---- */

/* The sentence for the last error of this thread; empty when there was none. Valid until the next error of the
 * thread. */
const char *millrace_error(void);

/* ---- Options ---- */

/* Options of an NF of that kind: a name for what it does, such as "firewall". To be freed by millrace_options_free;
 * they may be used for several links, and are not needed once a link is there. */
millrace_options *millrace_options_new(const char *kind);

/* Frees options. NULL is fine. */
void millrace_options_free(millrace_options *options);

/* Names a reason for which the NF drops packets; its number, from 1 on. At most 31, then MILLRACE_ERROR_ROOM. */
int millrace_options_reason(millrace_options *options, const char *name);

/* Names a counter that the NF keeps; its number, from 0 on. At most 64, then MILLRACE_ERROR_ROOM. */
int millrace_options_counter(millrace_options *options, const char *name);

/* What can be done with a handler: bits. */
#define MILLRACE_READ 1
#define MILLRACE_WRITE 2

/* How what the processes of an NF say, one for each worker, becomes one: what the first says; the sum of numbers, or
 * the largest; texts one after the other; lines of a name and a number, the numbers of a name added. */
#define MILLRACE_FIRST 0
#define MILLRACE_SUM 1
#define MILLRACE_MAX 2
#define MILLRACE_CONCAT 3
#define MILLRACE_NAMED 4

/* Names a handler: a value that operators read or write while the NF runs, called NF/process.NAME. A name has letters,
 * digits, `_` and `-`. At most 64, then MILLRACE_ERROR_ROOM. See millrace_next_call. */
int millrace_options_handler(millrace_options *options, const char *name, int access, int merge);

/* Asks for slots to make packets in (millrace_make). */
int millrace_options_makes_packets(millrace_options *options);

/* Asks for packets' metadata (millrace_get_metadata), which takes time for each packet. */
int millrace_options_metadata(millrace_options *options);

/* Attaches there rather than where the environment variable MILLRACE_NF says: "fd:N" or the path of a socket. */
int millrace_options_host(millrace_options *options, const char *host);

/* Says which NF of the chain it is; only a daemon asks. */
int millrace_options_name(millrace_options *options, const char *name);

/* ---- Callbacks ---- */

/* Functions that millrace_run calls, all with the `user` pointer that it was passed. They must not close the link,
 * keep `packets` beyond the call, or leave by longjmp or a C++ exception. All but `batch` may be NULL. */
typedef struct millrace_callbacks {
    /* sizeof(millrace_callbacks). */
    size_t size;
    /* Called once, before the first packet. To refuse, call millrace_fail with a sentence and return anything but
     * 0. */
    int (*start)(millrace_link *link, void *user);
    /* Called with 1 to MILLRACE_BURST packets. Packets that are neither given away nor held when it returns are
     * dropped. */
    void (*batch)(millrace_link *link, millrace_packet *packets, size_t count, void *user);
    /* Called in every turn without packets, and at least after every 64 batches: for held packets whose time has
     * come, and for timers. */
    void (*idle)(millrace_link *link, void *user);
    /* Called once, when the NF is to end: packets that are sent here still leave, as far as the host takes them. */
    void (*stop)(millrace_link *link, void *user);
    /* Called when somebody reads a handler that the options named, or writes it; `value` is NULL where it is read. To
     * be answered by millrace_answer or millrace_refuse before it returns. Called after `stop`, too. */
    void (*call)(millrace_link *link, const char *handler, const char *value, void *user);
} millrace_callbacks;

/* Attaches to the host and runs an NF until the host, SIGTERM or SIGINT ends it. Packets that are held by then are
 * dropped. Returns 0, MILLRACE_ERROR_HOST, or MILLRACE_ERROR_START when `start` refused. */
int millrace_run(const millrace_options *options, const millrace_callbacks *callbacks, void *user);

/* ---- Attaching ---- */

/* Shakes hands with the host; packets come from now on. The link is to be closed by millrace_close. */
millrace_link *millrace_attach(const millrace_options *options);

/* The same for an NF that has to look at its configuration first: packets come after millrace_ready. The host waits
 * 20 s for that. */
millrace_link *millrace_prepare(const millrace_options *options);

/* Says that packets may come. MILLRACE_ERROR_HOST when the host has hung up. */
int millrace_ready(const millrace_link *link);

/* Tells the host that the NF cannot run, in a sentence that says why, as the operator reads it. Always returns
 * MILLRACE_ERROR_START, or MILLRACE_ERROR_ARGUMENT. */
int millrace_fail(millrace_link *link, const char *why);

/* Gives back everything, drops what was received, held and not given away, waits up to a second until the host has
 * taken it, and frees the link. NULL is fine. Not inside callbacks. */
void millrace_close(millrace_link *link);

/* ---- What the host said ---- */

/* The NF's name in the chain. Valid until the link is closed. */
const char *millrace_name(const millrace_link *link);

/* The text that the chain file has for this NF (`config`), with a NUL behind it; empty when it has none. `length`,
 * unless NULL, is set to its bytes, the NUL not counted. Valid until the link is closed. */
const void *millrace_config(const millrace_link *link, size_t *length);

/* How many interfaces packets can be sent to. */
int millrace_interfaces(const millrace_link *link);

/* The name of an interface; NULL when there is none of that number. Valid until the link is closed. */
const char *millrace_interface_name(const millrace_link *link, uint32_t interface);

/* The number of an interface; MILLRACE_ERROR_ARGUMENT when there is none of that name. */
int millrace_interface(const millrace_link *link, const char *name);

/* 1 when packets may be written, else 0: an observer's may not, and writing ends the process. */
int millrace_is_writable(const millrace_link *link);

/* Packets that the NF may have in work at a time, and as many again held; the host enqueues no more. */
uint64_t millrace_quota(const millrace_link *link);

/* 1 when the host keeps one more packet that is held, else 0: then one that is held counts as one in work. */
int millrace_can_hold(const millrace_link *link);

/* 1 when the NF is to end and close its link, else 0. */
int millrace_is_over(const millrace_link *link);

/* Has SIGTERM and SIGINT end the NF, as the host does: millrace_is_over says so from then on. */
int millrace_stop_on_signals(millrace_link *link);

/* ---- Bursts ---- */

/* Fills `packets` with the next packets, `most` at most; how many, 0 when there are none now. Never waits. What was
 * given since the last call is shown to the host. Packets that came before and were not given away stay the
 * NF's. */
int millrace_receive(millrace_link *link, millrace_packet *packets, size_t most);

/* Waits a moment after millrace_receive returned 0: the longer that was so, the longer; at most 10 ms, or as
 * millrace_wake_within says. */
void millrace_wait(millrace_link *link);

/* Has the next wait, that of millrace_run too, end in so many nanoseconds at the latest: for packets that are held,
 * and for timers. Of several calls before it the earliest counts. */
void millrace_wake_within(millrace_link *link, uint64_t ns);

/* Sends packets out of an interface. The host counts packets to an interface that there is not as dropped. Structs
 * that name no packet of the NF's are passed over, and the code of the last of them returned; the others are sent
 * all the same. So do millrace_pass and millrace_drop. */
int millrace_send(millrace_link *link, millrace_packet *packets, size_t count, uint32_t interface);

/* Sends packets out of the interface across: of two, the one that each did not come in by; of one, that. With more
 * there is none, and they are dropped. */
int millrace_pass(millrace_link *link, millrace_packet *packets, size_t count);

/* Drops packets for a reason that the options named; 0 states none, and so do numbers out of range. */
int millrace_drop(millrace_link *link, millrace_packet *packets, size_t count, uint32_t reason);

/* Shows the host what was given so far. millrace_receive does that, too. */
void millrace_flush(millrace_link *link);

/* ---- One packet ---- */

/* Makes an empty packet, to be filled by millrace_append. MILLRACE_ERROR_ROOM when the host has granted no slot for
 * now. One that is not wanted after all goes back by millrace_drop. */
int millrace_make(millrace_link *link, millrace_packet *packet);

/* Keeps a packet for later: it survives the batch that it came in. It counts against a quota of its own
 * (millrace_can_hold), and cannot be given away or changed until it is released. */
int millrace_hold(millrace_link *link, millrace_packet *packet);

/* Lets go of a packet that was held: it is the NF's to give away again. */
int millrace_release(millrace_link *link, millrace_packet *packet);

/* Puts `count` bytes in front of the packet, a copy of `bytes`, or zeros when that is NULL. MILLRACE_ERROR_ROOM when
 * there is less headroom. `data` and `length` change. */
int millrace_push(millrace_link *link, millrace_packet *packet, const void *bytes, size_t count);

/* Takes `count` bytes off the packet's front. MILLRACE_ERROR_ROOM when it has fewer. */
int millrace_pull(millrace_link *link, millrace_packet *packet, size_t count);

/* Puts `count` bytes behind the packet, a copy of `bytes`, or zeros when that is NULL. MILLRACE_ERROR_ROOM when there
 * is less tailroom. */
int millrace_append(millrace_link *link, millrace_packet *packet, const void *bytes, size_t count);

/* Cuts the packet to `length` bytes; one that is shorter stays as it is. */
int millrace_truncate(millrace_link *link, millrace_packet *packet, size_t length);

/* Reads what is known of a packet beside its bytes. */
int millrace_get_metadata(millrace_link *link, const millrace_packet *packet, millrace_metadata *metadata);

/* Changes that, for whoever gets the packet next. Without millrace_options_metadata it has no effect. */
int millrace_set_metadata(millrace_link *link, millrace_packet *packet, const millrace_metadata *metadata);

/* Bytes that millrace_push can put in front; 0 when the packet is not the NF's. */
size_t millrace_headroom(millrace_link *link, const millrace_packet *packet);

/* Bytes that millrace_append can put behind; 0 when the packet is not the NF's. */
size_t millrace_tailroom(millrace_link *link, const millrace_packet *packet);

/* ---- Next hops ---- */

/* The Ethernet address of a next hop that is reached by an interface, behind which is a port or device with `addresses`
 * in the chain file. `family` is 4 or 6; `next_hop` points to its 4 or 16 bytes, in network byte order, which are
 * copied. Returns MILLRACE_NEIGHBOUR_KNOWN, and only then writes the 6 bytes of `mac`, or MILLRACE_NEIGHBOUR_RESOLVING or
 * MILLRACE_NEIGHBOUR_UNREACHABLE; the latter also for interfaces without such a port and for addresses that are no
 * neighbour's; MILLRACE_ERROR_ARGUMENT for NULL and other families.
 *
 * The first call for a next hop has the platform look for it, which takes 3 seconds at most, and keep it up to date as
 * long as the NF asks for it at least once a minute. A call is a look into a table of this process: no system call. What
 * the platform says is taken in by millrace_receive and millrace_wait; so within a batch nothing changes. */
int millrace_neighbour(millrace_link *link, uint32_t interface, unsigned family, const uint8_t *next_hop, uint8_t *mac);

/* A number that changes whenever something becomes known of a neighbour: for NFs that hold packets until then. 0 when
 * `link` is NULL. */
uint64_t millrace_neighbour_changes(const millrace_link *link);

/* Writes to the 6 bytes of `mac` the Ethernet address that the platform answers with behind an interface, and returns
 * how many addresses it has there; MILLRACE_ERROR_ARGUMENT when the chain file gives it none. */
int millrace_l3_interface(const millrace_link *link, uint32_t interface, uint8_t *mac);

/* One of those addresses, from 0 on: returns its family, 4 or 6, and writes its 4 or 16 bytes, in network byte order, to
 * the 16 bytes of `bytes`, zeros behind them; sets `prefix`, unless NULL, to the bits of its network's prefix.
 * MILLRACE_ERROR_ARGUMENT when there is none of that number. */
int millrace_l3_interface_address(const millrace_link *link, uint32_t interface, uint32_t number, uint8_t *bytes,
                                  uint32_t *prefix);

/* The names of the two above in version 0.1.0. */
#define millrace_station millrace_l3_interface
#define millrace_station_address millrace_l3_interface_address

/* ---- Counters and words ---- */

/* Adds to a counter that the options named; other numbers are passed over. */
void millrace_count(millrace_link *link, uint32_t counter, uint64_t by);

/* Sets a counter that the options named, for what is no sum; other numbers are passed over. */
void millrace_set(millrace_link *link, uint32_t counter, uint64_t value);

/* Tells the operator something, in a sentence; the same sentence is shown once. Not for every packet: it is a system
 * call. */
int millrace_tell(const millrace_link *link, const char *sentence);

/* Says that the NF has nothing left to do. The host tells the operator; it does not end the run of others for a
 * program. */
void millrace_ask_end(const millrace_link *link);

/* ---- Handlers ---- */

/* For an NF with a loop of its own: 1 when somebody reads or writes a handler, else 0. `handler` is then its name, and
 * `value` what is written, or NULL where it is read; both are valid until the call is answered, by millrace_answer or
 * millrace_refuse, within two seconds and before the next. Calls come with millrace_receive and millrace_wait, and once
 * more when the NF is to end: look for them in each turn and behind the loop. */
int millrace_next_call(millrace_link *link, const char **handler, const char **value);

/* Answers the call: what the handler says, at most 1 MiB; NULL is nothing, for one that was written.
 * MILLRACE_ERROR_ARGUMENT when no call waits. */
int millrace_answer(millrace_link *link, const char *text);

/* Answers the call with a sentence that says why not. MILLRACE_ERROR_ARGUMENT when no call waits. */
int millrace_refuse(millrace_link *link, const char *why);

#ifdef __cplusplus
}
#endif

#endif
