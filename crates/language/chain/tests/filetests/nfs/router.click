// Every interface reaches every other; numbers for names, one of them by keyword.
p :: Paint($COLOR);
FromDPDKDevice(0) -> p; FromDPDKDevice(BURST 32, DEVNAME 1) -> p; FromDPDKDevice(2, PROMISC true) -> p;
p -> ToDPDKDevice(0);
Counter@x :: Counter -> ToDPDKDevice(1); Counter@y :: Counter -> ToDPDKDevice(DEVNAME 2);
