//! An NF's side of the handshake.

use crate::handler::{Handler, MOST_HANDLERS};
use crate::message::{FromNf, Hello, MOST_COUNTERS, MOST_REASONS, PROTOCOL, ToNf, Welcome};
use crate::socket::Socket;
use crate::{ENVIRONMENT, IS_STARTED_BY_HOST, NfError};
use shm::PacketRegion;
use shm::descriptor::LAYOUT_VERSION;
use shm::memfd::inherited;
use shm::page::Page;
use shm::ring::RingFile;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long the host may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The properties of an NF, which it sends in its hello message.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) hello: Hello,
    pub(crate) host: Option<String>,
}

impl Options {
    /// Options of an NF of this kind: a name for its function, such as `firewall`.
    pub fn new(kind: &str) -> Options {
        let sdk = concat!("rust ", env!("CARGO_PKG_VERSION")).to_string();
        let hello = Hello { protocol: PROTOCOL, kind: kind.into(), sdk, ..Hello::default() };
        Options { hello, host: None }
    }

    /// Adds a drop reason. Drops name it by its number; the first is 1. Reasons beyond [`MOST_REASONS`] are
    /// omitted, and their drops count as [`UNSTATED`](crate::message::UNSTATED).
    #[must_use]
    pub fn reason(mut self, name: &str) -> Options {
        if self.hello.reasons.len() + 1 < MOST_REASONS {
            self.hello.reasons.push(name.into());
        }
        self
    }

    /// Adds several drop reasons, see [`Options::reason`].
    #[must_use]
    pub fn reasons(self, names: &[&str]) -> Options {
        names.iter().fold(self, |options, name| options.reason(name))
    }

    /// Adds several counters, see [`Options::counter`].
    #[must_use]
    pub fn counters(self, names: &[&str]) -> Options {
        names.iter().fold(self, |options, name| options.counter(name))
    }

    /// Adds a counter for [`crate::Link::count`]; the first is 0.
    #[must_use]
    pub fn counter(mut self, name: &str) -> Options {
        if self.hello.counters.len() < MOST_COUNTERS {
            self.hello.counters.push(name.into());
        }
        self
    }

    /// Adds a handler, which [`crate::Nf::read`] and [`crate::Nf::write`] answer, or [`crate::Link::answer`].
    /// Operators call it by `NF/process.NAME`.
    #[must_use]
    pub fn handler(mut self, handler: Handler) -> Options {
        if self.hello.handlers.len() < MOST_HANDLERS {
            self.hello.handlers.push(handler);
        }
        self
    }

    /// The NF makes packets, and the host grants it slots for them.
    #[must_use]
    pub fn makes_packets(mut self) -> Options {
        self.hello.makes = true;
        self
    }

    /// The NF uses packets' annotations and header offsets, which cost time for each packet.
    #[must_use]
    pub fn metadata(mut self) -> Options {
        self.hello.metadata = true;
        self
    }

    /// Attaches to this host instead of the one in the environment: `fd:N` or a path.
    #[must_use]
    pub fn host(mut self, host: &str) -> Options {
        self.host = Some(host.into());
        self
    }

    /// The name of the NF in the chain; only a daemon needs it.
    #[must_use]
    pub fn name(mut self, name: &str) -> Options {
        self.hello.name = Some(name.into());
        self
    }

    /// The name and version of the library that the NF uses, if it is not this one alone.
    #[must_use]
    pub fn sdk(mut self, sdk: &str) -> Options {
        self.hello.sdk = sdk.into();
        self
    }
}

/// The files and memory of an NF that the host has welcomed.
#[derive(Debug)]
pub struct Attached {
    /// The socket to the host.
    pub socket: Socket,
    /// The host's welcome message.
    pub welcome: Welcome,
    /// The packet region.
    pub region: Arc<PacketRegion>,
    /// The rings: packets to the NF, packets from it, empty slots to it.
    pub rings: RingFile<3>,
    /// The page of its counters.
    pub page: Page,
    /// Its configuration text.
    pub config: Vec<u8>,
    /// Whether it makes packets.
    pub makes: bool,
    /// Whether packets have metadata.
    pub metadata: bool,
    /// The number of drop reasons, including the unstated one.
    pub reasons: usize,
    /// The number of counters that it named.
    pub counters: usize,
    /// The files of its direct-path group.
    pub group: Option<GroupFiles>,
}

/// The files by which an NF passes packets to others of its direct-path group.
#[derive(Debug)]
pub struct GroupFiles {
    /// Its number in the group.
    pub member: u8,
    /// For each slot, the NF that keeps its packet.
    pub notes: Page,
    /// The rings that it writes, each with its output.
    pub outputs: Vec<(u16, RingFile<1>)>,
}

/// Performs the handshake with the host, and maps the memory of the welcome message. The NF sends
/// [`FromNf::Ready`] when it is ready.
///
/// # Errors
///
/// When there is no host, when it refuses this NF, or when memory cannot be mapped.
pub fn attach(options: &Options) -> Result<Attached, NfError> {
    let socket = open(options)?;
    let mut hello = options.hello.clone();
    hello.name = hello.name.or_else(|| std::env::var(crate::NAME_ENVIRONMENT).ok());
    socket.send(&FromNf::Hello(hello.clone()), &[])?;
    let (message, descriptors) = socket.receive::<ToNf>(PATIENCE)?.ok_or(NfError::HungUp)?;
    let welcome = match message {
        ToNf::Welcome(welcome) => welcome,
        ToNf::Refused { why } => return Err(NfError::Refused(why)),
        ToNf::Stop | ToNf::Direct { .. } | ToNf::Neighbours { .. } | ToNf::Call { .. } => {
            return Err(NfError::HungUp);
        }
    };
    if welcome.protocol != PROTOCOL || welcome.layout != LAYOUT_VERSION {
        return Err(NfError::Version { theirs: welcome.protocol, ours: PROTOCOL });
    }
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or_else(|| NfError::BadMessage("a descriptor is missing".into()));
    let region = PacketRegion::attach(next()?, welcome.slots, welcome.writable)?;
    let rings = RingFile::open(next()?, welcome.descriptors)?;
    let page = Page::open(next()?)?;
    let mut config = vec![];
    if welcome.config_bytes > 0 {
        let file = std::fs::File::from(next()?);
        let read = std::os::unix::fs::FileExt::read_exact_at;
        config = vec![0; welcome.config_bytes.min(MOST_CONFIG_BYTES)];
        read(&file, &mut config, 0)
            .map_err(|source| NfError::Socket { action: "read the configuration from", source })?;
    }
    let group = welcome.group.as_ref().map(|group| -> Result<GroupFiles, NfError> {
        let notes = Page::open_for(next()?, welcome.slots as usize)?;
        let ring = |output: &u16| Ok((*output, RingFile::open(next()?, group.descriptors)?));
        let outputs = group.outputs.iter().map(ring).collect::<Result<_, NfError>>()?;
        Ok(GroupFiles { member: group.member, notes, outputs })
    });
    let group = group.transpose()?;
    let (makes, metadata) = (hello.makes && welcome.writable, hello.metadata && welcome.writable);
    let (reasons, counters) = (hello.reasons.len() + 1, hello.counters.len());
    Ok(Attached { socket, welcome, region, rings, page, config, makes, metadata, reasons, counters, group })
}

/// The most bytes of a configuration.
const MOST_CONFIG_BYTES: usize = 64 << 20;

fn open(options: &Options) -> Result<Socket, NfError> {
    let host = options.host.clone().or_else(|| std::env::var(ENVIRONMENT).ok());
    let host = host.filter(|host| !host.is_empty()).ok_or(NfError::NoHost)?;
    match host.strip_prefix("fd:") {
        Some(number) => {
            IS_STARTED_BY_HOST.store(true, Ordering::Relaxed);
            // If the host dies, the memory that this process uses has no owner any more. In a confined
            // process the call is refused: the host has set this signal already, and the process must not
            // remove it.
            let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
            // The host executes the program by a descriptor, whose number would otherwise be the thread's
            // name.
            if let Ok(name) = std::ffi::CString::new(options.hello.kind.as_str()) {
                let _ = rustix::thread::set_name(&name);
            }
            let number = number.parse().map_err(|_| NfError::BadHost(host.clone()))?;
            Ok(Socket::new(inherited(number)?))
        }
        None if host.contains('/') => Socket::connect(Path::new(&host)),
        None => Err(NfError::BadHost(host)),
    }
}
