// Hosts that answer every packet: addresses and ports exchanged.
FromDevice(0) -> Strip(14) -> CheckIPHeader -> IPMirror -> Unstrip(14) -> EtherMirror -> ToDevice(0);
