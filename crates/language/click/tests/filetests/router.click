// test check flatten format
// A router with two interfaces.
/* block
   comment */
AddressInfo(
  inside   10.0.0.1  10.0.0.0/8 00:50:ba:85:84:a9,
  outside  192.0.2.1 00:e0:98:09:ab:af
);

elementclass Interface { $device, $name |
  from :: FromDevice($device) -> c :: Classifier(12/0806 20/0001, // ARP queries
                                                 12/0806 20/0002, 12/0800, -);
  out :: Queue(200) -> to :: ToDevice($device);
  c[0] -> ARPResponder($name) -> out;
  q :: ARPQuerier($name) -> out;
  c[1] -> [1]q;
  c[2] -> Strip(14) -> CheckIPHeader -> [0]output;
  c[3] -> Discard;
  input -> q;
}

i :: Interface(eth0, inside);
o :: Interface("eth1", outside)
rt :: LinearIPLookup(10/8 0,
                     0/0 1);
i, o -> rt;
rt[0] -> DecIPTTL -> i;
rt[1]
  -> ttl :: DecIPTTL   // the other way
  -> Print("out (1)") -> o;
ttl[1] -> Discard;
// becomes
== mistakes
== graph
AddressInfo@1 :: AddressInfo(inside 10.0.0.1 10.0.0.0/8 00:50:ba:85:84:a9, outside 192.0.2.1 00:e0:98:09:ab:af) /
i/from :: FromDevice(eth0) /h
i/c :: Classifier(12/0806 20/0001, // ARP queries 12/0806 20/0002, 12/0800, -) h/hhhh
i/out :: Queue(200) h/l
i/to :: ToDevice(eth0) l/
i/ARPResponder@5 :: ARPResponder(inside) h/h
i/q :: ARPQuerier(inside) hh/h
i/Strip@7 :: Strip(14) h/h
i/CheckIPHeader@8 :: CheckIPHeader() h/h
i/Discard@9 :: Discard() h/
o/from :: FromDevice("eth1") /h
o/c :: Classifier(12/0806 20/0001, // ARP queries 12/0806 20/0002, 12/0800, -) h/hhhh
o/out :: Queue(200) h/l
o/to :: ToDevice("eth1") l/
o/ARPResponder@5 :: ARPResponder(outside) h/h
o/q :: ARPQuerier(outside) hh/h
o/Strip@7 :: Strip(14) h/h
o/CheckIPHeader@8 :: CheckIPHeader() h/h
o/Discard@9 :: Discard() h/
rt :: LinearIPLookup(10/8 0, 0/0 1) h/hh
DecIPTTL@5 :: DecIPTTL() h/h
ttl :: DecIPTTL() h/hh
Print@7 :: Print("out (1)") h/h
Discard@8 :: Discard() h/
i/from[0] -> [0]i/c @ router.click:11:3
i/out[0] -> [0]i/to @ router.click:13:3
i/c[0] -> [0]i/ARPResponder@5 @ router.click:14:3
i/ARPResponder@5[0] -> [0]i/out @ router.click:14:11
i/q[0] -> [0]i/out @ router.click:15:3
i/c[1] -> [1]i/q @ router.click:16:3
i/c[2] -> [0]i/Strip@7 @ router.click:17:3
i/Strip@7[0] -> [0]i/CheckIPHeader@8 @ router.click:17:11
i/CheckIPHeader@8[0] -> [0]rt @ router.click:17:24
i/c[3] -> [0]i/Discard@9 @ router.click:18:3
o/from[0] -> [0]o/c @ router.click:11:3
o/out[0] -> [0]o/to @ router.click:13:3
o/c[0] -> [0]o/ARPResponder@5 @ router.click:14:3
o/ARPResponder@5[0] -> [0]o/out @ router.click:14:11
o/q[0] -> [0]o/out @ router.click:15:3
o/c[1] -> [1]o/q @ router.click:16:3
o/c[2] -> [0]o/Strip@7 @ router.click:17:3
o/Strip@7[0] -> [0]o/CheckIPHeader@8 @ router.click:17:11
o/CheckIPHeader@8[0] -> [0]rt @ router.click:17:24
o/c[3] -> [0]o/Discard@9 @ router.click:18:3
rt[0] -> [0]DecIPTTL@5 @ router.click:27:1
DecIPTTL@5[0] -> [0]i/q @ router.click:27:10
rt[1] -> [0]ttl @ router.click:28:1
ttl[0] -> [0]Print@7 @ router.click:29:6
Print@7[0] -> [0]o/q @ router.click:30:6
ttl[1] -> [0]Discard@8 @ router.click:31:1
== formatted
// test check flatten format
// A router with two interfaces.
/* block
   comment */
AddressInfo(
  inside   10.0.0.1  10.0.0.0/8 00:50:ba:85:84:a9,
  outside  192.0.2.1 00:e0:98:09:ab:af
);

elementclass Interface {
    $device, $name |
    from :: FromDevice($device) -> c :: Classifier(12/0806 20/0001, // ARP queries
                                                 12/0806 20/0002, 12/0800, -);
    out :: Queue(200) -> to :: ToDevice($device);
    c[0] -> ARPResponder($name) -> out;
    q :: ARPQuerier($name) -> out;
    c[1] -> [1]q;
    c[2] -> Strip(14) -> CheckIPHeader -> [0]output;
    c[3] -> Discard;
    input -> q;
}

i :: Interface(eth0, inside);
o :: Interface("eth1", outside);
rt :: LinearIPLookup(10/8 0,
                     0/0 1);
i, o -> rt;
rt[0] -> DecIPTTL -> i;
rt[1]
    -> ttl :: DecIPTTL  // the other way
    -> Print("out (1)") -> o;
ttl[1] -> Discard;
