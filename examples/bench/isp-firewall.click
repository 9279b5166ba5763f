// The firewall of an ISP: a long list of rules, which the benchmark puts in its place; what none lets
// through is dropped.
FromDevice(0)
    -> ip :: Classifier(12/0800, -);
ip[1] -> Discard;

ip[0]
    -> CheckIPHeader(OFFSET 14)
    -> IPFilter($RULES deny all)
    -> ToDevice(1);
