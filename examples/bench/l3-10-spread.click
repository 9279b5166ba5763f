// L3 forwarding with ten routes to ten next hops: each burst is split ten ways and joined again.
elementclass Hop { $MAC |
    input -> DecIPTTL -> EtherRewrite(02:00:00:00:00:02, $MAC) -> output;
}

routes :: StaticIPLookup(198.18.0.0/18 0, 198.18.64.0/18 1, 198.18.128.0/18 2, 198.18.192.0/19 3,
                         198.18.224.0/19 4, 198.19.0.0/18 5, 198.19.64.0/18 6, 198.19.128.0/18 7,
                         198.19.192.0/19 8, 198.19.224.0/19 9);
out :: ToDevice(out);

FromDevice(in) -> CheckIPHeader(OFFSET 14) -> routes;
routes[0] -> Hop(02:00:00:00:01:00) -> out;
routes[1] -> Hop(02:00:00:00:01:01) -> out;
routes[2] -> Hop(02:00:00:00:01:02) -> out;
routes[3] -> Hop(02:00:00:00:01:03) -> out;
routes[4] -> Hop(02:00:00:00:01:04) -> out;
routes[5] -> Hop(02:00:00:00:01:05) -> out;
routes[6] -> Hop(02:00:00:00:01:06) -> out;
routes[7] -> Hop(02:00:00:00:01:07) -> out;
routes[8] -> Hop(02:00:00:00:01:08) -> out;
routes[9] -> Hop(02:00:00:00:01:09) -> out;
