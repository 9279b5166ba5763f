/* A learning bridge over any number of interfaces, with a loop of its own (the burst functions).
 *
 * Configuration: `age-s SECONDS`, how long an address is known (300). */
#define _POSIX_C_SOURCE 199309L
#include "frame.h"
#include "millrace.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MALFORMED = 1, BAD_SOURCE, SAME_INTERFACE, LINK_LOCAL, NOWHERE };
static const char *const reasons[] = { "malformed", "bad-source", "same-interface", "link-local", "nowhere" };
enum { FORWARDED, FLOODED, COPIES, MISSED, NOT_LEARNED, COUNTERS };
static const char *const counters[COUNTERS] = { "forwarded", "flooded", "copies", "copies-missed", "not-learned" };

/* Addresses, by a hash of theirs; one that is not where it should be is within PROBES places behind. */
enum { PLACES = 1 << 16, PROBES = 8 };
struct place {
    uint64_t mac; /* 0: free */
    uint32_t interface;
    time_t seen;
};
static struct place places[PLACES];
static long age_s = 300;

static uint64_t mac_at(const uint8_t *at)
{
    return (uint64_t)read32(at) << 16 | read16(at + 4);
}

/* The place of an address; with `make`, a free one, or one that was not seen for long, when it has none. */
static struct place *find(uint64_t mac, time_t now, int make)
{
    struct place *spare = NULL;
    uint64_t hash = mac * 0x9e3779b97f4a7c15u >> 48;
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct place *place = &places[(hash + probe) % PLACES];
        int is_known = place->mac && now - place->seen <= age_s;
        if (is_known && place->mac == mac)
            return place;
        if (!is_known && !spare)
            spare = place;
    }
    if (!make || !spare)
        return NULL;
    spare->mac = mac;
    return spare;
}

/* Sends a frame out of all interfaces but its own: itself out of the last one, copies out of the others. */
static void flood(millrace_link *link, millrace_packet *packet)
{
    uint32_t from = packet->interface, last = UINT32_MAX, all = (uint32_t)millrace_interfaces(link);
    for (uint32_t to = 0; to < all; to++) {
        millrace_packet copy;
        if (to == from)
            continue;
        if (last != UINT32_MAX) {
            if (millrace_make(link, &copy) == 0 && millrace_append(link, &copy, packet->data, packet->length) == 0) {
                millrace_send(link, &copy, 1, last);
                millrace_count(link, COPIES, 1);
            } else {
                millrace_count(link, MISSED, 1);
            }
        }
        last = to;
    }
    if (last == UINT32_MAX) {
        millrace_drop(link, packet, 1, NOWHERE);
        return;
    }
    millrace_send(link, packet, 1, last);
    millrace_count(link, FLOODED, 1);
}

static void bridge(millrace_link *link, millrace_packet *packet, time_t now)
{
    uint8_t head[ETHERNET_BYTES];
    if (packet->length < ETHERNET_BYTES) {
        millrace_drop(link, packet, 1, MALFORMED);
        return;
    }
    memcpy(head, packet->data, sizeof head);
    uint64_t to = mac_at(head), from = mac_at(head + 6);
    if (head[6] & 1 || from == 0) {
        millrace_drop(link, packet, 1, BAD_SOURCE);
        return;
    }
    struct place *own = find(from, now, 1);
    if (own) {
        own->interface = packet->interface;
        own->seen = now;
    } else {
        millrace_count(link, NOT_LEARNED, 1);
    }
    if (to >> 4 == 0x0180c2000000 >> 4) {
        millrace_drop(link, packet, 1, LINK_LOCAL);
        return;
    }
    struct place *place = head[0] & 1 ? NULL : find(to, now, 0);
    if (!place) {
        flood(link, packet);
    } else if (place->interface == packet->interface) {
        millrace_drop(link, packet, 1, SAME_INTERFACE);
    } else {
        millrace_send(link, packet, 1, place->interface);
        millrace_count(link, FORWARDED, 1);
    }
}

/* Answers who reads the stations (`table`), or has them forgotten (`forget`). */
static void answer_calls(millrace_link *link, time_t now)
{
    static char text[1 << 20];
    const char *handler, *value;
    while (millrace_next_call(link, &handler, &value) == 1) {
        size_t length = 0;
        if (value) {
            memset(places, 0, sizeof places);
            millrace_answer(link, NULL);
            continue;
        }
        text[0] = 0;
        for (const struct place *place = places; place < places + PLACES && length < sizeof text - 128; place++) {
            const char *interface = millrace_interface_name(link, place->interface);
            uint64_t mac = place->mac;
            if (!mac || now - place->seen > age_s)
                continue;
            for (int byte = 40; byte >= 0; byte -= 8)
                length += (size_t)sprintf(text + length, "%02x%s", (unsigned)(mac >> byte & 0xff), byte ? ":" : " ");
            length += (size_t)snprintf(text + length, 64, "%.32s %ld s\n", interface, (long)(now - place->seen));
        }
        millrace_answer(link, text);
    }
}

static int configure(millrace_link *link)
{
    const char *text = millrace_config(link, NULL);
    char line[256], why[512];
    int number = 0;
    while (next_line(&text, line, sizeof line, &number)) {
        if (sscanf(line, "age-s %ld", &age_s) != 1 || age_s < 1) {
            snprintf(why, sizeof why, "config:%d: `%s` is not `age-s SECONDS`", number, line);
            return millrace_fail(link, why);
        }
    }
    return millrace_ready(link);
}

int main(void)
{
    millrace_options *options = millrace_options_new("l2fwd");
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        millrace_options_reason(options, reasons[i]);
    for (size_t i = 0; i < COUNTERS; i++)
        millrace_options_counter(options, counters[i]);
    millrace_options_makes_packets(options);
    millrace_options_handler(options, "table", MILLRACE_READ, MILLRACE_CONCAT);
    millrace_options_handler(options, "forget", MILLRACE_WRITE, MILLRACE_FIRST);
    millrace_link *link = millrace_prepare(options);
    millrace_options_free(options);
    if (!link || configure(link) || millrace_stop_on_signals(link)) {
        fprintf(stderr, "l2fwd: %s\n", millrace_error());
        millrace_close(link);
        return 1;
    }
    struct timespec now = { 0, 0 };
    while (!millrace_is_over(link)) {
        millrace_packet packets[MILLRACE_BURST];
        int count = millrace_receive(link, packets, MILLRACE_BURST);
        if (count == 0)
            millrace_wait(link);
        clock_gettime(CLOCK_MONOTONIC, &now);
        for (int i = 0; i < count; i++)
            bridge(link, &packets[i], now.tv_sec);
        answer_calls(link, now.tv_sec);
    }
    answer_calls(link, now.tv_sec);
    millrace_close(link);
    return 0;
}
