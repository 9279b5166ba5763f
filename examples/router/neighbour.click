// A neighbour of the router on a cable: sends frames from a port, answers every ARP question with its own
// address, and passes on what arrives.

define($MAC 02:00:00:00:01:01);

cable :: ToDevice(cable);

FromDevice(sent) -> cable;
FromDevice(cable) -> asked :: Classifier(12/0806 20/0001, -);
asked[0] -> ARPResponder(0.0.0.0/0 $MAC) -> cable;
asked[1] -> ToDevice(arrived);
