// Hosts at a cable: they answer questions for their addresses, pings, and all else that others send to them, with
// addresses and ports exchanged.

define($MAC 02:00:00:00:09:00);

cable :: ToDevice(cable);

FromDevice(cable) -> c :: Classifier(12/0806 20/0001, 12/0800, -);
c[0] -> ARPResponder(0.0.0.0/0 $MAC) -> cable;
c[1] -> Strip(14) -> CheckIPHeader -> ping :: IPClassifier(icmp type echo, -);
ping[0] -> ICMPPingResponder -> answer :: Unstrip(14) -> EtherMirror -> cable;
ping[1] -> IPMirror -> answer;
c[2] -> Discard;
