// A one-armed firewall on a trunk: what comes in by VLAN 1 leaves by VLAN 2, and the other way round. It knows what it
// allows and what it does not; of what is left it asks the IPS, which gives back what may pass.

FromDevice(trunk) -> vlan :: Classifier(14/0001%0fff, 14/0002%0fff);
vlan[0] -> Paint(2) -> untag :: VLANDecap;
vlan[1] -> Paint(1) -> untag;

untag
    -> CheckIPHeader(14)
    -> rules :: IPFilter(deny tcp port 23,
                         0 tcp port 443 or udp port 53,
                         1 all);

rules[0] -> allowed :: Counter -> tag :: PaintSwitch;
rules[1] -> ToDevice(inspect);
FromDevice(inspect) -> returned :: Counter -> tag;

tag[0] -> Discard;
tag[1] -> VLANEncap(VLAN_ID 1) -> out :: ToDevice(trunk);
tag[2] -> VLANEncap(VLAN_ID 2) -> out;
