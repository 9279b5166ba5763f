// test check flatten format
// Configuration strings with comments that look like more than they are.
outside_class, inside_class
	:: Classifier(12/0806 20/0001, 12/0800, -);
FromDevice(outside:eth) -> outside_class;
FromDevice(inside:eth) -> inside_class;
AddressInfo(
  outside	192.0.2.1	192.0.2.0/24	00:e0:98:09:ab:af,
  inside	10.0.0.1	10.0.0.0/8	00:50:ba:85:84:a9,
);

rw :: IPRewriter(// internal traffic, to the outside world (don't stop here)
		 pattern outside 50000-65535 - - 0 1,
		 /* what isn't known, "goes */ nochange 1);

outside_class[1] -> [0]rw; // answers
inside_class[1] -> Strip(14)
	-> CheckIPHeader
	-> [1]rw;
rw[0] -> to_outside :: EtherEncap(0x0800, outside:eth, 02:00:0a:11:22:1f)
      -> q :: Queue(1024) -> ToDevice(outside:eth);
rw[1] -> Discard;
outside_class[0], outside_class[2],
  inside_class[0], inside_class[2] -> Discard;
// becomes
== mistakes
== graph
outside_class :: Classifier(12/0806 20/0001, 12/0800, -) h/hhh
inside_class :: Classifier(12/0806 20/0001, 12/0800, -) h/hhh
FromDevice@3 :: FromDevice(outside:eth) /h
FromDevice@4 :: FromDevice(inside:eth) /h
AddressInfo@5 :: AddressInfo(outside 192.0.2.1 192.0.2.0/24 00:e0:98:09:ab:af, inside 10.0.0.1 10.0.0.0/8 00:50:ba:85:84:a9,) /
rw :: IPRewriter(// internal traffic, to the outside world (don't stop here) pattern outside 50000-65535 - - 0 1, /* what isn't known, "goes */ nochange 1) hh/hh
Strip@7 :: Strip(14) h/h
CheckIPHeader@8 :: CheckIPHeader() h/h
to_outside :: EtherEncap(0x0800, outside:eth, 02:00:0a:11:22:1f) h/h
q :: Queue(1024) h/l
ToDevice@11 :: ToDevice(outside:eth) l/
Discard@12 :: Discard() h/
Discard@13 :: Discard() h/
FromDevice@3[0] -> [0]outside_class @ nat.click:5:1
FromDevice@4[0] -> [0]inside_class @ nat.click:6:1
outside_class[1] -> [0]rw @ nat.click:16:1
inside_class[1] -> [0]Strip@7 @ nat.click:17:1
Strip@7[0] -> [0]CheckIPHeader@8 @ nat.click:17:20
CheckIPHeader@8[0] -> [1]rw @ nat.click:18:5
rw[0] -> [0]to_outside @ nat.click:20:1
to_outside[0] -> [0]q @ nat.click:20:10
q[0] -> [0]ToDevice@11 @ nat.click:21:10
rw[1] -> [0]Discard@12 @ nat.click:22:1
outside_class[0] -> [0]Discard@13 @ nat.click:23:1
outside_class[2] -> [0]Discard@13 @ nat.click:23:19
inside_class[0] -> [0]Discard@13 @ nat.click:24:3
inside_class[2] -> [0]Discard@13 @ nat.click:24:20
== formatted
// test check flatten format
// Configuration strings with comments that look like more than they are.
outside_class, inside_class :: Classifier(12/0806 20/0001, 12/0800, -);
FromDevice(outside:eth) -> outside_class;
FromDevice(inside:eth) -> inside_class;
AddressInfo(
  outside	192.0.2.1	192.0.2.0/24	00:e0:98:09:ab:af,
  inside	10.0.0.1	10.0.0.0/8	00:50:ba:85:84:a9,
);

rw :: IPRewriter(// internal traffic, to the outside world (don't stop here)
		 pattern outside 50000-65535 - - 0 1,
		 /* what isn't known, "goes */ nochange 1);

outside_class[1] -> [0]rw;  // answers
inside_class[1] -> Strip(14)
    -> CheckIPHeader
    -> [1]rw;
rw[0] -> to_outside :: EtherEncap(0x0800, outside:eth, 02:00:0a:11:22:1f)
    -> q :: Queue(1024) -> ToDevice(outside:eth);
rw[1] -> Discard;
outside_class[0], outside_class[2],
    inside_class[0], inside_class[2] -> Discard;
