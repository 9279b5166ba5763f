// A firewall of ten rules. The traffic meets each of them equally often and passes.
FromDevice(in)
    -> CheckIPHeader(OFFSET 14)
    -> IPFilter(allow src net 10.0.0.0/8 && dst net 198.18.0.0/18 && udp && dst port 1234,
                allow src net 10.0.0.0/8 && dst net 198.18.64.0/18 && udp && dst port 1234,
                allow src net 10.0.0.0/8 && dst net 198.18.128.0/18 && udp && dst port 1234,
                allow src net 10.0.0.0/8 && dst net 198.18.192.0/19 && udp && dst port 1234,
                allow src net 10.0.0.0/8 && dst net 198.18.224.0/19 && udp && dst port 1234,
                allow src net 10.0.0.0/8 && dst net 198.19.0.0/18 && udp && dst port 1234,
                allow src net 10.0.0.0/8 && dst net 198.19.64.0/18 && udp && dst port 1234,
                allow src net 10.0.0.0/8 && dst net 198.19.128.0/18 && udp && dst port 1234,
                allow src net 10.0.0.0/8 && dst net 198.19.192.0/19 && udp && dst port 1234,
                allow src net 10.0.0.0/8 && dst net 198.19.224.0/19 && udp && dst port 1234,
                deny all)
    -> ToDevice(out);
