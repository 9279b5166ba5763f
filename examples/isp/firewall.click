// The firewall of an ISP, with one long list of rules, as people generate such files: all settings are defined at the
// top, and one element class takes them as parameters.

define(
	$in          netmap:fw0,
	$out         netmap:fw1,
	$outMac      02:00:00:00:01:01,
	$outIp       198.51.100.1,
	$nextMac     02:00:00:00:02:00,
	$queueSize   100000,
	$mtu         1500,
	$burst       32,
	$method      NETMAP,
	$place       1
);

elementclass Firewall {
	$in, $out, $outMac, $outIp, $nextMac, $queueSize, $mtu, $burst, $method, $place |

	queue :: Queue($queueSize);
	from  :: FromDevice($in, BURST $burst, SNAPLEN $mtu, PROMISC true, METHOD $method, SNIFFER false);
	to    :: ToDevice($out, BURST $burst, METHOD $method);

	rules :: IPFilter(
		// rules
		allow src net 192.0.2.0/28 && dst net 198.18.0.0/16 && ip proto 17 && dst port 53,
		allow src net 192.0.2.16/28 && dst net 198.18.4.0/22 && ip proto 6 && dst port 80,
		deny src net 192.0.2.64/26 && ip proto 6 && dst port 25,
		allow src net 192.0.2.0/25 && ip proto 6 && dst port 1024-65535,
		allow ip proto 17 && src port > 33434 && src port < 33600 && dst port > 1024,
		allow src net 192.0.2.0/24 && dst net 204.152.0.0/16,
		allow ip proto 6,
		// end of rules
		drop
	);
	options  :: IPGWOptions($outIp);
	ttl      :: DecIPTTL;
	fragment :: IPFragmenter($mtu);
	encap    :: EtherEncap(0x0800, $outMac, $nextMac);
	rx, tx   :: AverageCounter;

	from
		-> rx
		-> Strip(14)
		-> MarkIPHeader
		-> rules
		-> DropBroadcasts
		-> options
		-> FixIPSrc($outIp)
		-> ttl
		-> fragment
		-> encap
		-> tx
		-> queue
		-> to;

	rules[1] -> Discard;

	DriverManager(
		wait,
		print >> rates.txt "$place in: "$(rx.count)", out: "$(tx.count),
		print >> rates.txt "$place rates: "$(rx.rate)", "$(tx.rate),
		wait 0.1s,
		stop
	);
}

firewall :: Firewall($in, $out, $outMac, $outIp, $nextMac, $queueSize, $mtu, $burst, $method, $place);
