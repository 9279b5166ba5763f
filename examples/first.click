// Counts what is TCP, and writes it to a capture with one hop less.
define($IN captures/office.pcap, $OUT tcp.pcap);

FromDevice($IN)
    -> ip :: Classifier(12/0800, -)
    -> check :: CheckIPHeader(14)
    -> protocol :: IPClassifier(tcp, -)
    -> tcp :: Counter
    -> ttl :: DecIPTTL
    -> ToDevice($OUT);

ip[1] -> Discard;
check[1] -> Discard;
protocol[1] -> Discard;
ttl[1] -> Discard;
