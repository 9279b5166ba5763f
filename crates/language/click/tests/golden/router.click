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
