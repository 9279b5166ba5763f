// The layer-3 load balancer of SNF's figure 5 with its way back: interface 0 is the clients' side, 1 the servers'. Each
// new flow gets the next of two servers, and its replies come from the address that the client asked.

define($SERVER_A 192.0.2.10, $SERVER_B 192.0.2.11,
       $MAC0 02:00:00:02:01:01, $FIREWALL 02:00:00:02:01:00,
       $MAC1 02:00:00:03:01:00, $SERVERS 02:00:00:03:01:01);

servers :: RoundRobinIPMapper(- - $SERVER_A - 0 1, - - $SERVER_B - 0 1);
rewriter :: IPRewriter(servers, drop);

FromDevice(0) -> ip0 :: Classifier(12/0800, -) -> Strip(14) -> check0 :: CheckIPHeader -> [0]rewriter;
ip0[1] -> Discard;
check0[1] -> Discard;
rewriter[0]
    -> ttl0 :: DecIPTTL
    -> EtherEncap(0x0800, $MAC1, $SERVERS)
    -> ToDevice(1);
ttl0[1] -> Discard;

FromDevice(1) -> ip1 :: Classifier(12/0800, -) -> Strip(14) -> check1 :: CheckIPHeader -> [1]rewriter;
ip1[1] -> Discard;
check1[1] -> Discard;
rewriter[1]
    -> ttl1 :: DecIPTTL
    -> EtherEncap(0x0800, $MAC0, $FIREWALL)
    -> ToDevice(0);
ttl1[1] -> Discard;
