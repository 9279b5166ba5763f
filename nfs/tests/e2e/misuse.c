/* Does with packets what C lets one do, and counts what the library lets pass. */
#include "millrace.h"
#include <stdio.h>
#include <string.h>

static millrace_link *the_link;

static void check(int holds, int line)
{
    if (!holds) {
        fprintf(stderr, "line %d does not hold; last error: %s\n", line, millrace_error());
        millrace_count(the_link, 0, 1);
    }
}
#define CHECK(condition) check((condition), __LINE__)

static millrace_packet kept;

static void batch(millrace_link *link, millrace_packet *packets, size_t count, void *user)
{
    (void)user;
    the_link = link;
    millrace_packet copy = packets[0], wrong = packets[0], none;
    memset(&none, 0, sizeof none);
    wrong.token.serial++;
    CHECK(millrace_send(link, &wrong, 1, 1) == MILLRACE_ERROR_PACKET);
    wrong.token.place = UINT32_MAX;
    CHECK(millrace_send(link, &wrong, 1, 1) == MILLRACE_ERROR_PACKET);
    CHECK(millrace_send(link, &none, 1, 1) == MILLRACE_ERROR_PACKET);
    CHECK(millrace_send(link, NULL, 1, 1) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_send(link, NULL, 0, 1) == 0);
    CHECK(millrace_send(link, packets, SIZE_MAX, 1) == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_release(link, &packets[0]) == MILLRACE_ERROR_HELD);
    CHECK(millrace_hold(link, &packets[0]) == 0);
    CHECK(millrace_hold(link, &copy) == MILLRACE_ERROR_PACKET);
    CHECK(millrace_send(link, &packets[0], 1, 1) == MILLRACE_ERROR_HELD);
    CHECK(millrace_pull(link, &packets[0], 1) == MILLRACE_ERROR_HELD);
    CHECK(millrace_headroom(link, &packets[0]) == 0);
    CHECK(millrace_release(link, &packets[0]) == 0);
    uint32_t length = packets[0].length;
    CHECK(millrace_push(link, &packets[0], "head", 4) == 0 && packets[0].length == length + 4);
    CHECK(memcmp(packets[0].data, "head", 4) == 0);
    CHECK(millrace_pull(link, &packets[0], 4) == 0 && packets[0].length == length);
    CHECK(millrace_append(link, &packets[0], NULL, 4) == 0 && packets[0].data[length] == 0);
    CHECK(millrace_truncate(link, &packets[0], length) == 0 && packets[0].length == length);
    CHECK(millrace_push(link, &packets[0], NULL, SIZE_MAX) == MILLRACE_ERROR_ROOM);
    CHECK(millrace_append(link, &packets[0], packets[0].data, 60000) == MILLRACE_ERROR_ROOM);
    CHECK(millrace_pull(link, &packets[0], length + 1) == MILLRACE_ERROR_ROOM);
    copy = packets[0];
    CHECK(millrace_send(link, &packets[0], 1, 1) == 0);
    CHECK(packets[0].data == NULL && packets[0].length == 0);
    CHECK(millrace_send(link, &packets[0], 1, 1) == MILLRACE_ERROR_PACKET);
    CHECK(millrace_send(link, &copy, 1, 1) == MILLRACE_ERROR_PACKET);
    CHECK(millrace_drop(link, &copy, 1, 0) == MILLRACE_ERROR_PACKET);
    CHECK(millrace_push(link, &copy, "x", 1) == MILLRACE_ERROR_PACKET);
    CHECK(millrace_interface(link, "nowhere") == MILLRACE_ERROR_ARGUMENT);
    CHECK(millrace_interface_name(link, 99) == NULL);
    /* The others are dropped, except one that is held to the end. */
    if (count > 1 && kept.token.serial == 0) {
        CHECK(millrace_hold(link, &packets[1]) == 0);
        kept = packets[1];
    }
    memset(packets, 0xa5, count * sizeof *packets);
    millrace_packet made;
    if (millrace_make(link, &made) == 0) {
        CHECK(made.length == 0 && millrace_append(link, &made, "made", 4) == 0);
        CHECK(millrace_drop(link, &made, 1, 0) == 0);
    }
}

int main(void)
{
    const millrace_callbacks callbacks = { .size = sizeof callbacks, .batch = batch };
    millrace_options *options = millrace_options_new("misuse");
    millrace_options_counter(options, "failures");
    millrace_options_makes_packets(options);
    int outcome = millrace_run(options, &callbacks, NULL);
    millrace_options_free(options);
    return outcome != 0;
}
