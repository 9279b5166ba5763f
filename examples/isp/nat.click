// The NAPT between an ISP and the Internet.

define(
	$in          netmap:nat0,
	$out         netmap:nat1,
	$color       1,
	$outMac      02:00:00:00:03:01,
	$outIp       203.0.113.1,
	$nextMac     02:00:00:00:04:00,
	$queueSize   100000,
	$mtu         1500,
	$burst       32,
	$method      NETMAP,
	$place       3
);

elementclass Napt {
	$in, $out, $color, $outMac, $outIp, $nextMac, $queueSize, $mtu, $burst, $method, $place |

	queue :: Queue($queueSize);
	from  :: FromDevice($in, BURST $burst, SNAPLEN $mtu, PROMISC true, METHOD $method, SNIFFER false);
	to    :: ToDevice($out, BURST $burst, METHOD $method);

	rewriter :: IPRewriter(
		pattern $outIp 1024-65535 - - 0 0
	);
	options  :: IPGWOptions($outIp);
	ttl      :: DecIPTTL;
	fragment :: IPFragmenter($mtu);
	encap    :: EtherEncap(0x0800, $outMac, $nextMac);
	rx, tx   :: AverageCounter;

	from
		-> rx
		-> Paint($color)
		-> Strip(14)
		-> MarkIPHeader
		-> rewriter
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

napt :: Napt($in, $out, $color, $outMac, $outIp, $nextMac, $queueSize, $mtu, $burst, $method, $place);
