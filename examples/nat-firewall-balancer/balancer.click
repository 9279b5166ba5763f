// Layer-3 load balancer: the third NF. Flows are spread over two servers, each always to the same one.

define($SERVER_A 192.0.2.10, $SERVER_B 192.0.2.11,
       $OUT_MAC 02:00:00:00:02:02, $NEXT_MAC 02:00:00:00:03:01);

servers :: RoundRobinIPMapper(- - $SERVER_A - 0 1, - - $SERVER_B - 0 1);
rewriter :: IPRewriter(servers);

FromDevice(0)
    -> arp :: Classifier(12/0800, -);
arp[1] -> not_ip :: Discard;

arp[0]
    -> Strip(14)
    -> check :: CheckIPHeader
    -> [0]rewriter;
check[1] -> bad :: Discard;

rewriter[0]
    -> ttl :: DecIPTTL
    -> EtherEncap(0x0800, $OUT_MAC, $NEXT_MAC)
    -> ToDevice(1);
rewriter[1] -> reply :: Discard;
ttl[1] -> expired :: Discard;
