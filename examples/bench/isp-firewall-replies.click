// The firewall of an ISP with both ways: a long list of rules for what customers send, which the benchmark puts in its
// place; what none lets through is dropped. What comes back is for a flow that a rule let through, as the NAPT behind
// it and the ISP's own servers let nothing else in. Interface 0 leads to the customers, 1 to the router.
FromDevice(0)
    -> out :: Classifier(12/0800, -);
out[1] -> Discard;

out[0]
    -> CheckIPHeader(OFFSET 14)
    -> IPFilter($RULES deny all)
    -> ToDevice(1);

FromDevice(1)
    -> back :: Classifier(12/0800, -);
back[1] -> Discard;

back[0]
    -> CheckIPHeader(OFFSET 14)
    -> ToDevice(0);
