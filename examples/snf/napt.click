// A NAPT between an inside network and an outside one, bare: what SNF (section "Stateful") puts in a row.
// Interface 0 is inside, 1 outside; replies come back by 1.

define($IP 203.0.113.1);

rewriter :: IPRewriter(pattern $IP 1024-65535# - - 0 1, drop);

FromDevice(0) -> Strip(14) -> CheckIPHeader -> [0]rewriter;
rewriter[0] -> Unstrip(14) -> ToDevice(1);
FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]rewriter;
rewriter[1] -> Unstrip(14) -> ToDevice(0);
