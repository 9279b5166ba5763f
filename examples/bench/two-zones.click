// The hosts of two zones (interfaces 1 and 2) send and receive by one port: those with even addresses are in the first.
FromDevice(in) -> zone :: Classifier(29/00%01, -);
zone[0] -> ToDevice(1);
zone[1] -> ToDevice(2);

back :: ToDevice(out);
FromDevice(1) -> back;
FromDevice(2) -> back;
