use crate::testing::Rig;

#[test]
fn dpdk_info_takes_anything() {
    assert!(Rig::try_new("DPDKInfo", "NB_SOCKET_MBUF 65536, 4", 0, 0).is_ok());
}
