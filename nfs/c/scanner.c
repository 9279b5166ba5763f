/* Looks for many patterns at once in the payload of TCP and UDP over IPv4, and drops packets that have one.
 *
 * Configuration: a pattern a line. The automaton is that of Aho and Corasick (1975), with all transitions filled in:
 * a step per byte, however many patterns there are. */
#include "frame.h"
#include "millrace.h"
#include <stdio.h>
#include <stdlib.h>

enum { PATTERN = 1, MALFORMED };
static const char *const reasons[] = { "pattern", "malformed" };
enum { PACKETS, SCANNED, BYTES, MATCHES, COUNTERS };
static const char *const counters[COUNTERS] = { "packets", "scanned-packets", "scanned-bytes", "packets-with-matches" };

struct state {
    uint32_t next[256];
    uint32_t fallback;
    int ends; /* a pattern, here or at a state that this one falls back to */
};

struct automaton {
    struct state *states;
    uint32_t count, room;
};

static int add_state(struct automaton *automaton)
{
    if (automaton->count == automaton->room) {
        uint32_t room = automaton->room ? 2 * automaton->room : 64;
        struct state *states = realloc(automaton->states, room * sizeof *states);
        if (!states)
            return 0;
        automaton->states = states;
        automaton->room = room;
    }
    memset(&automaton->states[automaton->count++], 0, sizeof *automaton->states);
    return 1;
}

static int add_pattern(struct automaton *automaton, const char *pattern)
{
    uint32_t at = 0;
    for (; *pattern; pattern++) {
        uint32_t next = automaton->states[at].next[(uint8_t)*pattern];
        if (next == 0) {
            next = automaton->count;
            if (!add_state(automaton))
                return 0;
            automaton->states[at].next[(uint8_t)*pattern] = next;
        }
        at = next;
    }
    automaton->states[at].ends = 1;
    return 1;
}

/* Fills in what happens where a pattern does not go on: breadth first, so that shorter states are done before. */
static int add_failure_links(struct automaton *automaton)
{
    struct state *states = automaton->states;
    uint32_t *queue = malloc(automaton->count * sizeof *queue), head = 0, tail = 0;
    if (!queue)
        return 0;
    for (int byte = 0; byte < 256; byte++)
        if (states[0].next[byte])
            queue[tail++] = states[0].next[byte];
    while (head < tail) {
        struct state *state = &states[queue[head++]];
        const struct state *fallback = &states[state->fallback];
        state->ends |= fallback->ends;
        for (int byte = 0; byte < 256; byte++) {
            if (state->next[byte]) {
                states[state->next[byte]].fallback = fallback->next[byte];
                queue[tail++] = state->next[byte];
            } else {
                state->next[byte] = fallback->next[byte];
            }
        }
    }
    free(queue);
    return 1;
}

static int has_pattern(const struct automaton *automaton, const uint8_t *bytes, size_t count)
{
    uint32_t at = 0;
    for (size_t i = 0; i < count; i++) {
        at = automaton->states[at].next[bytes[i]];
        if (automaton->states[at].ends)
            return 1;
    }
    return 0;
}

static void batch(millrace_link *link, millrace_packet *packets, size_t count, void *user)
{
    static uint8_t payload[UINT16_MAX]; /* What is scanned must not change meanwhile. */
    uint64_t counts[COUNTERS] = { count };
    for (size_t i = 0; i < count; i++) {
        struct ipv4 ip;
        int is_ipv4 = read_ipv4(packets[i].data, packets[i].length, &ip);
        if (is_ipv4 < 0) {
            millrace_drop(link, &packets[i], 1, MALFORMED);
        } else if (is_ipv4 && (ip.protocol == TCP || ip.protocol == UDP) && ip.end > ip.payload) {
            size_t bytes = ip.end - ip.payload;
            memcpy(payload, packets[i].data + ip.payload, bytes);
            counts[SCANNED]++;
            counts[BYTES] += bytes;
            if (has_pattern(user, payload, bytes)) {
                counts[MATCHES]++;
                millrace_drop(link, &packets[i], 1, PATTERN);
            }
        }
    }
    for (unsigned counter = 0; counter < COUNTERS; counter++)
        millrace_count(link, counter, counts[counter]);
    /* What was dropped is passed over. */
    for (size_t i = 0; i < count; i++)
        if (packets[i].data)
            millrace_pass(link, &packets[i], 1);
}

static int start(millrace_link *link, void *user)
{
    struct automaton *automaton = user;
    const char *text = millrace_config(link, NULL);
    char line[1024];
    int number = 0;
    if (!add_state(automaton))
        return millrace_fail(link, "there is no memory");
    while (next_line(&text, line, sizeof line, &number))
        if (!add_pattern(automaton, line))
            return millrace_fail(link, "there is no memory for so many patterns");
    if (automaton->count == 1)
        return millrace_fail(link, "config:1: there are no patterns: name one in each line");
    return add_failure_links(automaton) ? 0 : millrace_fail(link, "there is no memory");
}

int main(void)
{
    struct automaton automaton = { NULL, 0, 0 };
    const millrace_callbacks callbacks = { .size = sizeof callbacks, .start = start, .batch = batch };
    millrace_options *options = millrace_options_new("scanner");
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        millrace_options_reason(options, reasons[i]);
    for (size_t i = 0; i < COUNTERS; i++)
        millrace_options_counter(options, counters[i]);
    int outcome = millrace_run(options, &callbacks, &automaton);
    if (outcome)
        fprintf(stderr, "scanner: %s\n", millrace_error());
    millrace_options_free(options);
    free(automaton.states);
    return outcome != 0;
}
