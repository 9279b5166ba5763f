//! A host for one NF of the same process, with the crate `shm` and a socket.

use nf::message::{FromNf, Hello, InterfaceFacts, PROTOCOL, ToNf, Welcome};
use nf::socket::Socket;
use nf::{Link, NfError, Options};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use shm::channel::{ChannelStats, Completion, GRANT, HostEnd, InFlightTable};
use shm::descriptor::LAYOUT_VERSION;
use shm::page::Page;
use shm::ring::{Mapped, RingFile};
use shm::{HugePages, Packet, PacketPool, PacketRegion, Pool, RegionOptions, SharedPool};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

pub const SLOTS: u32 = 256;
pub const CLAIMS: u32 = 64;
pub const QUOTA: u64 = 100;
const NF: u16 = 3;

/// A packet that an NF returned: the number that the host wrote into it, its length, and the completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Given {
    pub number: u32,
    pub len: u32,
    pub annotations: [u8; 48],
    pub completion: Completion,
}

/// The host.
pub struct Host {
    pub socket: Socket,
    pub page: Page,
    shared: Arc<SharedPool>,
    pool: PacketPool,
    in_flight: InFlightTable,
    host_end: HostEnd<Mapped>,
    _rings: RingFile<3>,
}

/// The NF's side of a handshake; `answer` is the host's, for the first message.
pub fn shake(options: Options, answer: impl FnOnce(Socket, Hello)) -> Result<Link, NfError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("host");
    let listener =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .expect("a socket");
    rustix::net::bind(&listener, &SocketAddrUnix::new(&path).expect("a path")).expect("bound");
    rustix::net::listen(&listener, 1).expect("listens");
    let options = options.host(&path.display().to_string());
    let nf = std::thread::spawn(move || Link::prepare(&options));
    let socket = Socket::new(rustix::net::accept(&listener).expect("the NF comes"));
    let (message, _) = socket.receive(Duration::from_secs(10)).expect("heard").expect("in time");
    let FromNf::Hello(hello) = message else { panic!("the first message is {message:?}") };
    answer(socket, hello);
    nf.join().expect("it does not panic")
}

/// The welcome message of a host without special settings.
pub fn welcome(interfaces: &[&str]) -> Welcome {
    let names: Vec<String> = interfaces.iter().map(|name| (*name).to_string()).collect();
    Welcome {
        protocol: PROTOCOL,
        name: "tested".into(),
        layout: LAYOUT_VERSION,
        slots: SLOTS,
        descriptors: CLAIMS,
        quota: QUOTA,
        burst: 64,
        writable: true,
        inputs: names.clone(),
        outputs: names,
        l3_interfaces: vec![],
        config_bytes: 0,
        group: None,
    }
}

impl Host {
    /// A host, and the link of an NF that it welcomed.
    pub fn start(options: Options, interfaces: &[&str]) -> (Host, Link) {
        Host::with(options, interfaces, true, vec![])
    }

    /// The same with L3 interfaces.
    pub fn beside(
        options: Options,
        interfaces: &[&str],
        l3_interfaces: Vec<Option<InterfaceFacts>>,
    ) -> (Host, Link) {
        Host::with(options, interfaces, true, l3_interfaces)
    }

    /// The same for an observer.
    pub fn observed(options: Options, interfaces: &[&str]) -> (Host, Link) {
        Host::with(options, interfaces, false, vec![])
    }

    fn with(
        options: Options,
        interfaces: &[&str],
        writable: bool,
        l3_interfaces: Vec<Option<InterfaceFacts>>,
    ) -> (Host, Link) {
        let mut host = None;
        let link = shake(options, |socket, hello| {
            let region = RegionOptions {
                huge_pages: HugePages::Never,
                only_for_reading: !writable,
                ..RegionOptions::slots(SLOTS)
            };
            let shared = SharedPool::new(PacketRegion::create(region).expect("memory"));
            let (rings, page) =
                (RingFile::<3>::create(CLAIMS).expect("rings"), Page::create().expect("a page"));
            let [to, from, grants] = rings.rings();
            let host_end = HostEnd::new(to, from, NF, shared.region().number()).with_grants(grants);
            let host_end =
                host_end.limited_to(QUOTA).holding_at_most(QUOTA).with_metadata(hello.metadata && writable);
            let for_reading = (!writable).then(|| shared.region().for_reading().expect("a descriptor"));
            let region = for_reading.as_ref().map_or(shared.region().as_fd(), AsFd::as_fd);
            let descriptors: [BorrowedFd<'_>; 3] = [region, rings.as_fd(), page.as_fd()];
            let welcome = Welcome { writable, l3_interfaces, ..welcome(interfaces) };
            socket.send(&ToNf::Welcome(welcome), &descriptors).expect("sent");
            let (pool, in_flight) = (PacketPool::Native(shared.worker()), InFlightTable::new(SLOTS));
            host = Some(Host { socket, page, pool, in_flight, host_end, _rings: rings, shared });
        });
        let link = link.expect("welcome");
        link.ready().expect("the host listens");
        (host.expect("it answered"), link)
    }

    /// Enqueues packets that contain these numbers, from an interface; returns how many.
    pub fn enqueue(&mut self, numbers: impl IntoIterator<Item = u32>, interface: u16) -> usize {
        let mut received = 0;
        for number in numbers {
            let packet = shm::write_frame(&mut self.pool, &[&number.to_be_bytes()[..], &[0xaa; 60]].concat());
            let Some(packet) = packet else { break };
            if self.enqueue_as(packet, interface) { received += 1 } else { break }
        }
        received
    }

    /// Grants empty slots; returns how many.
    pub fn grant(&mut self, count: usize) -> usize {
        let mut granted = 0;
        for _ in 0..count {
            let mut packets = [Packet::EMPTY];
            if self.pool.alloc(&mut packets) == 0 || !self.enqueue_as(packets[0], GRANT) {
                break;
            }
            granted += 1;
        }
        granted
    }

    fn enqueue_as(&mut self, packet: Packet, destination: u16) -> bool {
        let (count, _) =
            self.host_end.enqueue(&self.in_flight, &[packet], &[0], destination).expect("sound rings");
        if count == 0 {
            self.pool.free_all(&[packet]);
        }
        count == 1
    }

    /// Takes the packets that the NF returned, and frees them.
    pub fn take_back(&mut self) -> Vec<Given> {
        let mut given = vec![];
        loop {
            let (mut packets, mut completions) = ([Packet::EMPTY; 64], [Completion::default(); 64]);
            let (count, sound) = self.host_end.take_back(&self.in_flight, &mut packets, &mut completions);
            sound.expect("sound rings");
            for (packet, completion) in packets.iter().zip(completions).take(count) {
                let mut number = [0; 4];
                shm::Frame::of(packet).read(0, &mut number);
                given.push(Given {
                    number: u32::from_be_bytes(number),
                    len: packet.len(),
                    annotations: packet.anno,
                    completion,
                });
                self.pool.free_all(&[*packet]);
            }
            if count == 0 {
                return given;
            }
        }
    }

    pub fn stats(&self) -> ChannelStats {
        self.host_end.stats()
    }

    /// Checks that the NF has no packets, wrote no bad descriptor, and that all slots are free.
    #[track_caller]
    pub fn assert_settled(&self) {
        assert_eq!((self.host_end.bad_claims(), self.host_end.held()), (0, 0), "{:?}", self.stats());
        assert_eq!(self.pool.in_use(), 0, "slots are out of {}", self.shared.region().slots());
    }
}
