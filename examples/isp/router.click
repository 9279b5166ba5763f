// The router of an ISP: to its own network or to the Internet, both by one cable.

define(
	$in          netmap:rt0,
	$out         netmap:rt1,
	$outMac      02:00:00:00:02:01,
	$outIp       198.51.100.2,
	$nextMac     02:00:00:00:03:00,
	$queueSize   100000,
	$mtu         1500,
	$burst       32,
	$method      NETMAP,
	$place       2
);

elementclass Router {
	$in, $out, $outMac, $outIp, $nextMac, $queueSize, $mtu, $burst, $method, $place |

	queue :: Queue($queueSize);
	from  :: FromDevice($in, BURST $burst, SNAPLEN $mtu, PROMISC true, METHOD $method, SNIFFER false);
	to    :: ToDevice($out, BURST $burst, METHOD $method);

	routes :: RadixIPLookup(
		204.152/16 0,
		0.0.0.0/0  0
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
		-> GetIPAddress(16)
		-> routes
		-> DropBroadcasts
		-> options
		-> FixIPSrc($outIp)
		-> ttl
		-> fragment
		-> encap
		-> tx
		-> queue
		-> to;

	DriverManager(
		wait,
		print >> rates.txt "$place in: "$(rx.count)", out: "$(tx.count),
		print >> rates.txt "$place rates: "$(rx.rate)", "$(tx.rate),
		wait 0.1s,
		stop
	);
}

router :: Router($in, $out, $outMac, $outIp, $nextMac, $queueSize, $mtu, $burst, $method, $place);
