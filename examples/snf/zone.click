// The edge of a zone: interface 0 is the zone, 1 and 2 are two providers, and 3 is the DMZ. What the zone sends is
// routed: to the first provider what is in its network, to the second all else. What comes back goes to the zone.

define($DMZ 198.51.100.0/24, $FIRST 198.51.96.0/21);

FromDevice(0) -> Strip(14) -> CheckIPHeader -> rt :: RadixIPLookup($DMZ 2, $FIRST 0, 0.0.0.0/0 1);
rt[0] -> Unstrip(14) -> ToDevice(1);
rt[1] -> Unstrip(14) -> ToDevice(2);
rt[2] -> Unstrip(14) -> ToDevice(3);

zone :: ToDevice(0);
FromDevice(1) -> zone;
FromDevice(2) -> zone;
FromDevice(3) -> zone;
