// What filter.toml does, as one Click configuration made from its traffic classes.
// Classes that can be said in Click are sorted out in front; all others go through the chain's elements.
// Counters of elements that packets do not pass any more stay behind.

nf/FromDevice@1 :: FromDevice(inside);
nf/ToDevice@7 :: ToDevice(outside);

// In front of [0]nf/ip: 5 of 5 IP classes are said in Click.
front1 :: Classifier(12/0800, -) -> check1 :: CheckIPHeader(14);
front1[1] -> Discard;
check1[1] -> Discard;
sort1 :: IPClassifier(src port 0-65535 && (ip proto 17) && ip[6:2] & 0x1fff = 0 && (dst port 53) && !(src net 10.0.1.0/24) && (ip ttl 0-1),
    src port 0-65535 && (ip proto 6) && ip[6:2] & 0x1fff = 0 && (dst port 80 || dst port 443) && (ip ttl 0-1),
    src port 0-65535 && (ip proto 17) && ip[6:2] & 0x1fff = 0 && (dst port 53) && !(src net 10.0.1.0/24) && (ip ttl 2-255),
    src port 0-65535 && (ip proto 6) && ip[6:2] & 0x1fff = 0 && (dst port 80 || dst port 443) && (ip ttl 2-255),
    ((!(ip proto 6 || ip proto 17)) || ((ip proto 6 || ip proto 17) && !(ip[6:2] & 0x1fff = 0)) || (!(src port 0-65535) && (ip proto 6 || ip proto 17) && ip[6:2] & 0x1fff = 0) || (src port 0-65535 && (ip proto 17) && ip[6:2] & 0x1fff = 0 && (dst port 0-52 || dst port 54-65535)) || (src port 0-65535 && (ip proto 17) && ip[6:2] & 0x1fff = 0 && (dst port 53) && (src net 10.0.1.0/24)) || (src port 0-65535 && (ip proto 6) && ip[6:2] & 0x1fff = 0 && (dst port 0-79 || dst port 81-442 || dst port 444-65535))));
check1[0] -> sort1;
sort1[0] -> Discard; // class 10: dropped by nf/expired: discarded
sort1[1] -> Discard; // class 11: dropped by nf/expired: discarded
sort1[2] -> DecIPTTL -> EtherRewrite(02:00:00:00:00:02, 02:00:00:00:00:03) -> [0]nf/ToDevice@7; // class 12: nf/EtherRewrite@6[0] -> nf/ToDevice@7
sort1[3] -> DecIPTTL -> EtherRewrite(02:00:00:00:00:02, 02:00:00:00:00:03) -> [0]nf/ToDevice@7; // class 13: nf/EtherRewrite@6[0] -> nf/ToDevice@7
sort1[4] -> Discard; // class 14: dropped by nf/filter: denied

nf/FromDevice@1[0] -> [0]front1;
