// Looks into the payload of TCP: 14 bytes of Ethernet, 20 of IP, 20 of TCP. Requests in clear text are reported.

FromDevice(traffic)
    -> payload :: Classifier(54/474554, -);        // GET

payload[0] -> requests :: Counter -> ToDevice(found);
payload[1] -> others :: Discard;
Idle -> ToDevice(traffic);
