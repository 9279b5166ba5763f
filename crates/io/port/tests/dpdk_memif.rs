//! net_memif: shared-memory packets between two ends, here both in one process.

mod dpdk_setup;

use dpdk_setup::{frame, receive, start};
use port::{DpdkSpec, Port};
use shm::{PacketBytes, Pool, write_frame};
use std::time::{Duration, Instant};

#[test]
fn memif_carries_packets_between_two_ends() {
    let Some(dpdk) = start(8192) else { return };
    let mut pool = dpdk.pool();
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("memif.sock");
    let open = |name: &str, role: &str| {
        let text = format!("{name},role={role},id=0,socket={},socket-abstract=no", socket.display());
        dpdk.open(&DpdkSpec::parse(&text).expect("a name"), 1).map(|mut ports| ports.remove(0))
    };
    let (mut server, mut client) = match (open("net_memif0", "server"), open("net_memif1", "client")) {
        (Ok(server), Ok(client)) => (server, client),
        (one, two) => {
            let error = one.err().or(two.err()).map(|error| error.to_string()).unwrap_or_default();
            eprintln!("SKIP: no memif here (libdpdk-dev brings its driver): {error}");
            return;
        }
    };
    let end = Instant::now() + Duration::from_secs(5);
    while !(server.info().link_up && client.info().link_up) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(server.info().link_up && client.info().link_up, "the ends do not meet");
    for len in [60, 1500, 2000] {
        for (from, to) in [(0, 1), (1, 0)] {
            let ends = [&mut server, &mut client];
            let packet = write_frame(&mut pool, &frame(len, from)).expect("a slot");
            // A server sends into buffers that its client provides when the client receives.
            let end = Instant::now() + Duration::from_secs(5);
            while ends[from].send(&mut pool, &mut [packet], &[0]).packets == 0 {
                assert_eq!(ends[to].receive(&mut pool, &mut [shm::Packet::EMPTY]).packets, 0);
                assert!(
                    Instant::now() < end,
                    "{len} bytes from {from} are not taken: {:?}",
                    ends[from].device()
                );
            }
            let back = receive(ends[to], &mut pool, 1);
            assert_eq!(back.len(), 1, "{len} bytes from {from}");
            assert_eq!(PacketBytes::new(&back[0]).to_vec(), frame(len, from));
            pool.free_all(&back);
        }
    }
    assert_eq!(pool.stats().bad_frees, 0);
}
