// The NAPT of an egress interface that zones share, as shared.click, and a DMZ: interfaces 0 and 1 are the zones, 2 is
// outside, and 3 the DMZ. Its one table has all flows of the interface: those of the zones, those that the servers
// open, and those that come from outside for the web server.

define($IP 203.0.113.1, $WEB 198.51.100.80);

rewriter :: IPRewriter(pattern $IP 1024-65535# - - 0 1,
                       pattern $IP 1024-65535# - - 0 2,
                       pattern $IP 1024-65535# - - 0 3,
                       pattern - - $WEB - 3 0,
                       drop);

FromDevice(0) -> Strip(14) -> CheckIPHeader -> [0]rewriter;
FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]rewriter;
FromDevice(3) -> Strip(14) -> CheckIPHeader -> [2]rewriter;

FromDevice(2) -> Strip(14) -> CheckIPHeader -> service :: IPClassifier(dst host $IP and dst tcp port 80, -);
service[0] -> [3]rewriter;
service[1] -> [4]rewriter;

rewriter[0] -> Unstrip(14) -> ToDevice(2);
rewriter[1] -> Unstrip(14) -> ToDevice(0);
rewriter[2] -> Unstrip(14) -> ToDevice(1);
rewriter[3] -> Unstrip(14) -> ToDevice(3);
