// A VXLAN gateway on a bridge whose device peels the tunnel off: frames for the branch on the other end of the
// tunnel are put into it, others leave as they are. Which port they leave by is the bridge's business.

define($BRANCH 192.168.100.0/24, $VNI_WORD 0.0.42.0);
define($SELF 198.51.100.1, $PEER 203.0.113.1);
define($SELF_MAC 02:00:00:00:01:01, $PEER_MAC 02:00:00:00:02:01);

FromDevice(overlay)
    -> MarkIPHeader(14)
    -> side :: IPClassifier(dst net $BRANCH, -);

side[0]
    -> Unstrip(8)
    -> StoreIPAddress(8.0.0.0, 0)          // VXLAN: there is a network identifier,
    -> StoreIPAddress($VNI_WORD, 4)        // and this is it
    -> UDPIPEncap($SELF, 49152, $PEER, 4789, CHECKSUM false)
    -> EtherEncap(0x0800, $SELF_MAC, $PEER_MAC)
    -> into :: Counter
    -> out :: ToDevice(overlay);

side[1] -> from :: Counter -> out;
