// Clients at a cable: they send what `sent` brings, answer questions for their addresses, and take what arrives.

define($MAC 02:00:00:00:08:00);

cable :: ToDevice(cable);

FromDevice(sent) -> cable;
FromDevice(cable) -> asked :: Classifier(12/0806 20/0001, -);
asked[0] -> ARPResponder(0.0.0.0/0 $MAC) -> cable;
asked[1] -> ToDevice(arrived);
