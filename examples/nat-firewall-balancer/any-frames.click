// Makes of any capture one of Ethernet frames, for any.toml: VLAN tags, the headers of `tcpdump -i any` and other link
// headers are replaced, zeros stand where packets were cut off (`tcpdump -s`), and IP checksums, which senders leave to
// their NIC, are computed. What is not IP is left out, and what comes behind the first $MOST packets.

define($CAPTURE ../captures/office.pcap, $FRAMES frames.pcap, $MOST 100000,
       $OUT_MAC 02:00:00:00:00:02, $IN_MAC 02:00:00:00:00:01);

FromDump($CAPTURE, FORCE_IP true, STOP true)
    -> StripToNetworkHeader
    -> Pad
    -> read :: Counter(COUNT_CALL $MOST stop)
    -> version :: Classifier(0/40%f0, -);
version[0] -> SetIPChecksum -> EtherEncap(0x0800, $OUT_MAC, $IN_MAC) -> frames :: ToDump($FRAMES, SNAPLEN 0);
version[1] -> EtherEncap(0x86dd, $OUT_MAC, $IN_MAC) -> frames;
