// A stateless firewall: the rules of acl.rules in their order, what none of them names is denied.

FromDevice(in)
    -> ip :: Classifier(12/0800, -)
    -> check :: CheckIPHeader(14)
    -> filter :: IPFilter(allow src net 10.0.0.0/24 && dst host 192.0.2.80 && tcp && dst port 80,
                          allow src net 10.0.0.0/24 && dst host 192.0.2.80 && tcp && dst port 443,
                          allow src net 10.0.0.0/16 && dst host 192.0.2.53 && udp && src port 1024-65535 && dst port 53,
                          allow src net 10.0.1.0/24 && dst net 192.0.2.0/24 && tcp && dst port 22,
                          allow src net 10.0.0.0/16 && dst net 192.0.2.128/25 && tcp && dst port 8000-8099,
                          deny src net 10.0.0.0/16 && dst net 198.51.100.0/24 && udp,
                          deny src host 10.0.9.9,
                          allow src net 10.0.0.0/16 && dst net 203.0.113.0/24 && tcp && src port 1024-65535 && dst port 443,
                          allow src net 10.0.0.0/16 && dst net 203.0.113.0/24 && udp && src port 1024-65535 && dst port 443,
                          deny dst net 192.0.2.0/24 && tcp && dst port 0-1023,
                          deny all)
    -> ToDevice(out);

ip[1] -> not_ip :: Discard;
check[1] -> bad :: Discard;
