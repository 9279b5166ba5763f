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
