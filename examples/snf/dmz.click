// The egress interface to a DMZ: interfaces 0 and 1 are zones, 2 is the servers' network, and 3 leads to the NAPT by
// which servers and the Internet reach each other. The servers see the zones by one address; the mapping has the zone
// that a flow came from. A server opens no flows to a zone.

define($IP 198.51.100.1);

rewriter :: IPRewriter(pattern $IP 1024-65535# - - 0 1, pattern $IP 1024-65535# - - 0 2, drop);
servers :: ToDevice(2);

FromDevice(0) -> Strip(14) -> CheckIPHeader -> [0]rewriter;
FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]rewriter;
rewriter[0] -> Unstrip(14) -> servers;
FromDevice(3) -> servers;

FromDevice(2) -> Strip(14) -> CheckIPHeader -> to :: IPClassifier(dst host $IP, -);
to[0] -> [2]rewriter;
to[1] -> Unstrip(14) -> ToDevice(3);
rewriter[1] -> Unstrip(14) -> ToDevice(0);
rewriter[2] -> Unstrip(14) -> ToDevice(1);
