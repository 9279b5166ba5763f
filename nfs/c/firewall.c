/* Lets IPv4 packets through by an ordered list of rules, a line each:
 *
 *     allow tcp 10.0.0.0/8 any 80-443
 *     deny any any 10.9.0.0/16
 *     default allow
 *
 * that is ACTION PROTOCOL FROM TO [PORT OF DESTINATION]; the first that fits decides, then the default (deny).
 * PROTOCOL is tcp, udp, icmp, a number or any. ARP passes, other frames do not. No state is kept: answers need a
 * rule of their own. */
#include "frame.h"
#include "millrace.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

enum { BY_RULE = 1, BY_DEFAULT, FRAGMENT, MALFORMED, NOT_IP };
static const char *const reasons[] = { "denied-by-rule", "denied-by-default", "fragment", "malformed", "not-ip" };
enum { ALLOWED_BY_RULE, ALLOWED_BY_DEFAULT, ALLOWED_NOT_IP, COUNTERS };
static const char *const counters[COUNTERS] = { "allowed-by-rule", "allowed-by-default", "allowed-not-ip" };

struct rule {
    int allows, protocol; /* -1: any */
    uint32_t from, from_mask, to, to_mask;
    uint16_t low, high;
};

struct firewall {
    struct rule *rules;
    size_t count;
    int allows;
};

/* Returns a reason to drop for, or minus a counter, minus one. */
static int judge(const struct firewall *firewall, const millrace_packet *packet)
{
    struct ipv4 ip;
    switch (read_ipv4(packet->data, packet->length, &ip)) {
    case 0:
        return packet->length >= ETHERNET_BYTES && read16(packet->data + 12) == ARP ? -ALLOWED_NOT_IP - 1 : NOT_IP;
    case -1:
        return MALFORMED;
    }
    if (ip.is_fragment) /* It has no ports to judge by, or leaves them to the next one to write over. */
        return FRAGMENT;
    for (size_t i = 0; i < firewall->count; i++) {
        const struct rule *rule = &firewall->rules[i];
        if ((rule->protocol < 0 || rule->protocol == ip.protocol) && (ip.from & rule->from_mask) == rule->from
            && (ip.to & rule->to_mask) == rule->to && rule->low <= ip.to_port && ip.to_port <= rule->high)
            return rule->allows ? -ALLOWED_BY_RULE - 1 : BY_RULE;
    }
    return firewall->allows ? -ALLOWED_BY_DEFAULT - 1 : BY_DEFAULT;
}

static void batch(millrace_link *link, millrace_packet *packets, size_t count, void *user)
{
    for (size_t i = 0; i < count; i++) {
        int reason = judge(user, &packets[i]);
        if (reason > 0) {
            millrace_drop(link, &packets[i], 1, (uint32_t)reason);
        } else {
            millrace_count(link, (uint32_t)(-reason - 1), 1);
            millrace_pass(link, &packets[i], 1);
        }
    }
}

static int read_prefix(char *text, uint32_t *address, uint32_t *mask)
{
    struct in_addr in;
    char *slash = strchr(text, '/'), *end = "";
    long bits = slash ? strtol(slash + 1, &end, 10) : 32;
    if (strcmp(text, "any") == 0)
        bits = 0, in.s_addr = 0;
    else {
        if (slash)
            *slash = 0;
        if (inet_pton(AF_INET, text, &in) != 1 || *end || bits < 0 || bits > 32)
            return 0;
    }
    *mask = bits ? UINT32_MAX << (32 - bits) : 0;
    *address = ntohl(in.s_addr) & *mask;
    return 1;
}

static int read_protocol(const char *text)
{
    static const struct { const char *name; int number; } known[] =
        { { "any", -1 }, { "tcp", TCP }, { "udp", UDP }, { "icmp", ICMP } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(text, known[i].name) == 0)
            return known[i].number;
    char *end;
    long number = strtol(text, &end, 10);
    return *end || number < 0 || number > 255 ? -2 : (int)number;
}

static int read_rule(char *line, struct firewall *firewall)
{
    char action[8], protocol[16], from[32], to[32];
    unsigned low = 0, high = UINT16_MAX;
    int parts = sscanf(line, "%7s %15s %31s %31s %u-%u", action, protocol, from, to, &low, &high);
    if (parts == 2 && strcmp(action, "default") == 0) {
        firewall->allows = strcmp(protocol, "allow") == 0;
        return firewall->allows || strcmp(protocol, "deny") == 0;
    }
    if (parts < 4)
        return 0;
    struct rule rule = { .allows = strcmp(action, "allow") == 0, .protocol = read_protocol(protocol) };
    if (parts == 5)
        high = low;
    rule.low = (uint16_t)low, rule.high = (uint16_t)high;
    if ((!rule.allows && strcmp(action, "deny")) || rule.protocol == -2 || low > high || high > UINT16_MAX
        || (parts > 4 && rule.protocol != TCP && rule.protocol != UDP)
        || !read_prefix(from, &rule.from, &rule.from_mask) || !read_prefix(to, &rule.to, &rule.to_mask))
        return 0;
    struct rule *rules = realloc(firewall->rules, (firewall->count + 1) * sizeof rule);
    if (!rules)
        return 0;
    firewall->rules = rules;
    rules[firewall->count++] = rule;
    return 1;
}

static int start(millrace_link *link, void *user)
{
    const char *text = millrace_config(link, NULL);
    char line[256], why[4096] = "";
    int number = 0;
    while (next_line(&text, line, sizeof line, &number)) {
        char copy[256];
        strcpy(copy, line);
        size_t used = strlen(why);
        if (!read_rule(line, user))
            snprintf(why + used, sizeof why - used, "%sconfig:%d: `%s` is no rule: write `allow tcp 10.0.0.0/8 any 80`",
                     used ? "\n" : "", number, copy);
    }
    return why[0] ? millrace_fail(link, why) : 0;
}

int main(void)
{
    struct firewall firewall = { NULL, 0, 0 };
    const millrace_callbacks callbacks = { .size = sizeof callbacks, .start = start, .batch = batch };
    millrace_options *options = millrace_options_new("firewall");
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        millrace_options_reason(options, reasons[i]);
    for (size_t i = 0; i < COUNTERS; i++)
        millrace_options_counter(options, counters[i]);
    int outcome = millrace_run(options, &callbacks, &firewall);
    if (outcome)
        fprintf(stderr, "firewall: %s\n", millrace_error());
    millrace_options_free(options);
    free(firewall.rules);
    return outcome != 0;
}
