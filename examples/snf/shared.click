// A NAPT that two zones share: interfaces 0 and 1 are the zones, 2 is outside. The mapping has the zone that a
// flow came from, so replies find their way although both zones may use the same addresses.

define($IP 203.0.113.1);

rewriter :: IPRewriter(pattern $IP 1024-65535# - - 0 1, pattern $IP 1024-65535# - - 0 2, drop);

FromDevice(0) -> Strip(14) -> CheckIPHeader -> [0]rewriter;
FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]rewriter;
rewriter[0] -> Unstrip(14) -> ToDevice(2);
FromDevice(2) -> Strip(14) -> CheckIPHeader -> [2]rewriter;
rewriter[1] -> Unstrip(14) -> ToDevice(0);
rewriter[2] -> Unstrip(14) -> ToDevice(1);
