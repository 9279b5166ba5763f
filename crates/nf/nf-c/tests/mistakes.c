/* Calls every function with NULL, and what can be called without a host. */
#include "millrace.h"
#include <stdio.h>
#include <string.h>

static int failures;

static void check(int holds, int line)
{
    if (!holds) {
        printf("line %d does not hold; last error: %s\n", line, millrace_error());
        failures++;
    }
}
#define CHECK(condition) check((condition), __LINE__)

static void batch(millrace_link *link, millrace_packet *packets, size_t count, void *user)
{
    (void)user;
    millrace_pass(link, packets, count);
}

int main(void)
{
    millrace_packet packet;
    memset(&packet, 0xa5, sizeof packet);
    CHECK(strcmp(millrace_error(), "") == 0);
    CHECK(millrace_options_new(NULL) == NULL);
    CHECK(strstr(millrace_error(), "NULL") != NULL);
    CHECK(millrace_options_new("\xff") == NULL);
    millrace_options_free(NULL);
    CHECK(millrace_options_reason(NULL, "x") == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_options_counter(NULL, "x") == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_options_handler(NULL, "x", MILLRACE_READ, MILLRACE_SUM) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_options_makes_packets(NULL) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_options_metadata(NULL) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_options_host(NULL, "fd:0") == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_options_name(NULL, "x") == MILLRACE_ERROR_ARGUMENT);

    millrace_options *options = millrace_options_new("mistakes");
    CHECK(options != NULL);
    CHECK(millrace_options_reason(options, NULL) == MILLRACE_ERROR_ARGUMENT);
    for (int number = 1; number <= 31; number++)
        CHECK(millrace_options_reason(options, "reason") == number);
    CHECK(millrace_options_reason(options, "reason") == MILLRACE_ERROR_ROOM);
    for (int number = 0; number < 64; number++)
        CHECK(millrace_options_counter(options, "counter") == number);
    CHECK(millrace_options_counter(options, "counter") == MILLRACE_ERROR_ROOM);
    CHECK(millrace_options_handler(options, NULL, MILLRACE_READ, MILLRACE_SUM) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_options_handler(options, "x", 0, MILLRACE_SUM) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_options_handler(options, "x", 4, MILLRACE_SUM) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_options_handler(options, "x", MILLRACE_READ, 5) == MILLRACE_ERROR_ARGUMENT);
    for (int number = 0; number < 64; number++)
        CHECK(millrace_options_handler(options, "handler", MILLRACE_READ | MILLRACE_WRITE, MILLRACE_SUM) == 0);
    CHECK(millrace_options_handler(options, "handler", MILLRACE_READ, MILLRACE_SUM) == MILLRACE_ERROR_ROOM);
    CHECK(millrace_options_makes_packets(options) == 0);
    CHECK(millrace_options_metadata(options) == 0);
    CHECK(millrace_options_name(options, "me") == 0);

    CHECK(millrace_attach(NULL) == NULL);
    CHECK(millrace_attach(options) == NULL);
    CHECK(strstr(millrace_error(), "MILLRACE_NF") != NULL);
    CHECK(millrace_options_host(options, "/nowhere/at/all") == 0);
    CHECK(millrace_prepare(options) == NULL);
    CHECK(millrace_run(options, NULL, NULL) == MILLRACE_ERROR_ARGUMENT);
    millrace_callbacks callbacks = { 0, NULL, batch, NULL, NULL, NULL };
    CHECK(millrace_run(options, &callbacks, NULL) == MILLRACE_ERROR_ARGUMENT);
    callbacks.size = sizeof callbacks;
    CHECK(millrace_run(NULL, &callbacks, NULL) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_run(options, &callbacks, NULL) == MILLRACE_ERROR_HOST);
    callbacks.batch = NULL;
    CHECK(millrace_run(options, &callbacks, NULL) == MILLRACE_ERROR_ARGUMENT);
    millrace_options_free(options);

    size_t length = 7;
    CHECK(millrace_ready(NULL) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_fail(NULL, "x") == MILLRACE_ERROR_ARGUMENT);
    millrace_close(NULL);
    CHECK(millrace_name(NULL) == NULL);
    CHECK(millrace_config(NULL, &length) == NULL && length == 0);
    CHECK(millrace_interfaces(NULL) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_interface_name(NULL, 0) == NULL);
    CHECK(millrace_interface(NULL, "lan") == MILLRACE_ERROR_ARGUMENT);
    uint8_t address[16] = { 10, 0, 0, 1 }, mac[6];
    uint32_t prefix;
    CHECK(millrace_neighbour(NULL, 0, 4, address, mac) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_neighbour_changes(NULL) == 0);
    CHECK(millrace_l3_interface(NULL, 0, mac) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_station(NULL, 0, mac) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_l3_interface_address(NULL, 0, 0, address, &prefix) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_is_writable(NULL) == 0);
    CHECK(millrace_quota(NULL) == 0);
    CHECK(millrace_can_hold(NULL) == 0);
    CHECK(millrace_is_over(NULL) == 1);
    CHECK(millrace_stop_on_signals(NULL) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_receive(NULL, &packet, 1) == MILLRACE_ERROR_ARGUMENT);
    millrace_wait(NULL);
    millrace_wake_within(NULL, 1);
    CHECK(millrace_send(NULL, &packet, 1, 0) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_pass(NULL, &packet, 1) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_drop(NULL, &packet, 1, 0) == MILLRACE_ERROR_ARGUMENT);
    millrace_flush(NULL);
    CHECK(millrace_make(NULL, &packet) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_hold(NULL, &packet) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_release(NULL, &packet) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_push(NULL, &packet, "x", 1) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_pull(NULL, &packet, 1) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_append(NULL, &packet, "x", 1) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_truncate(NULL, &packet, 1) == MILLRACE_ERROR_ARGUMENT);
    millrace_metadata metadata;
    CHECK(millrace_get_metadata(NULL, &packet, &metadata) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_set_metadata(NULL, &packet, &metadata) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_headroom(NULL, &packet) == 0);
    CHECK(millrace_tailroom(NULL, &packet) == 0);
    millrace_count(NULL, 0, 1);
    millrace_set(NULL, 0, 1);
    CHECK(millrace_tell(NULL, "x") == MILLRACE_ERROR_ARGUMENT);
    millrace_ask_end(NULL);
    const char *handler = NULL, *value = NULL;
    CHECK(millrace_next_call(NULL, &handler, &value) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_answer(NULL, "x") == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_refuse(NULL, "x") == MILLRACE_ERROR_ARGUMENT);
    return failures != 0;
}
