// Hosts behind a cable. They open the flows that come in by `flows`, and answer what others send to them: addresses and
// ports exchanged. Answers to their own flows, which are web requests from the network $OWN, leave by `answers`.

define($OWN 192.0.2.0/24);

cable :: ToDevice(cable);

FromDevice(flows) -> cable;
FromDevice(cable) -> Strip(14) -> CheckIPHeader -> for :: IPClassifier(dst net $OWN and src tcp port 80, -);
for[0] -> Unstrip(14) -> ToDevice(answers);
for[1] -> IPMirror -> Unstrip(14) -> EtherMirror -> cable;
