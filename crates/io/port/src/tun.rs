//! TUN and TAP devices: interfaces of this machine's kernel whose other side is a file of this process.
#![expect(unsafe_code, reason = "requests to the kernel that no safe wrapper has")]

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// `TUNSETIFF` of `linux/if_tun.h`.
const SET_INTERFACE: libc::Ioctl = 0x4004_54ca;
/// The most bytes of an interface's name.
pub const MOST_NAME_BYTES: usize = 15;

/// How a new interface is set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunOptions {
    /// Its name; the kernel chooses one if it is empty.
    pub name: String,
    /// Whether it carries Ethernet frames, and not IP packets.
    pub is_tap: bool,
    /// Its address and mask.
    pub address: Option<(Ipv4Addr, Ipv4Addr)>,
    /// Its hardware address; the kernel's choice otherwise.
    pub mac: Option<[u8; 6]>,
    /// Its MTU.
    pub mtu: Option<u32>,
}

/// A device that was made; its interface goes with it.
#[derive(Debug)]
pub struct Tun {
    /// Reads and writes a packet at a time, without waiting.
    pub file: File,
    /// The interface's name.
    pub name: String,
}

/// A request about an interface.
struct Request(libc::ifreq);

impl Request {
    fn new(name: &str) -> Request {
        // SAFETY: `ifreq` is plain bytes, of which zeros are valid values.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let place = request.ifr_name.iter_mut().take(MOST_NAME_BYTES);
        place.zip(name.bytes()).for_each(|(place, byte)| *place = byte as libc::c_char);
        Request(request)
    }

    /// Carries out a request.
    fn call(&mut self, file: &impl AsRawFd, request: libc::Ioctl) -> std::io::Result<()> {
        // SAFETY: all requests of this module read and write an `ifreq`, which `self` is.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), request, &mut self.0) };
        if done < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    }

    fn name(&self) -> String {
        let bytes = self.0.ifr_name.iter().take_while(|byte| **byte != 0);
        bytes.map(|byte| char::from(*byte as u8)).collect()
    }

    fn set_address(&mut self, address: Ipv4Addr) {
        let mut bytes = [0; 14];
        bytes[2..6].copy_from_slice(&address.octets());
        self.set_bytes(libc::AF_INET as u16, bytes);
    }

    fn set_bytes(&mut self, family: u16, bytes: [u8; 14]) {
        self.0.ifr_ifru.ifru_addr =
            libc::sockaddr { sa_family: family, sa_data: bytes.map(|byte| byte as libc::c_char) };
    }
}

/// Why an interface cannot be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotMade {
    /// A sentence: why, and what to do.
    pub reason: String,
    /// Whether this machine refuses it now: a right is missing, or the name is in use.
    pub is_of_machine: bool,
}

impl std::fmt::Display for NotMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Makes an interface.
///
/// # Errors
/// Why it cannot be made.
pub fn open(options: &TunOptions) -> Result<Tun, NotMade> {
    if !is_name(&options.name) {
        return Err(NotMade {
            reason: format!(
                "`{}` is no name of an interface: it has at most 15 characters, none of them `/`",
                options.name
            ),
            is_of_machine: false,
        });
    }
    make(options).map_err(|reason| NotMade { reason, is_of_machine: true })
}

fn make(options: &TunOptions) -> Result<Tun, String> {
    let shown = if options.name.is_empty() {
        "a new interface".into()
    } else {
        format!("interface `{}`", options.name)
    };
    let right = |error: std::io::Error| match error.kind() {
        ErrorKind::PermissionDenied => {
            format!(
                "{shown} cannot be made: that needs the right CAP_NET_ADMIN (root, or `setcap cap_net_admin+ep`)"
            )
        }
        _ => format!("{shown} cannot be made: {error}"),
    };
    // Any socket serves for requests about interfaces.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(right)?;
    if !options.name.is_empty()
        && Request::new(&options.name).call(&socket, libc::SIOCGIFINDEX as libc::Ioctl).is_ok()
    {
        return Err(format!("{shown} exists already: choose another name, or leave it to the kernel"));
    }
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun");
    let file = file.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            format!("{shown} cannot be made: this kernel has no /dev/net/tun (`modprobe tun`)")
        }
        _ => right(error),
    })?;
    let kind = if options.is_tap { libc::IFF_TAP } else { libc::IFF_TUN };
    let mut request = Request::new(&options.name);
    request.0.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
    request.call(&file, SET_INTERFACE).map_err(|error| match error.kind() {
        ErrorKind::ResourceBusy => {
            format!("{shown} is in use: choose another name, or leave it to the kernel")
        }
        _ => right(error),
    })?;
    let name = request.name();
    set_up(&socket, &name, options).map_err(right)?;
    Ok(Tun { file, name })
}

fn is_name(name: &str) -> bool {
    name.len() <= MOST_NAME_BYTES
        && name.chars().all(|c| c.is_ascii_graphic() && c != '/' && c != '%')
        && !name.starts_with('.')
}

fn set_up(socket: &UdpSocket, name: &str, options: &TunOptions) -> std::io::Result<()> {
    if let Some([a, b, c, d, e, f]) = options.mac {
        let mut request = Request::new(name);
        request.set_bytes(libc::ARPHRD_ETHER, [a, b, c, d, e, f, 0, 0, 0, 0, 0, 0, 0, 0]);
        request.call(socket, libc::SIOCSIFHWADDR as libc::Ioctl)?;
    }
    if let Some(mtu) = options.mtu {
        let mut request = Request::new(name);
        request.0.ifr_ifru.ifru_mtu = mtu as libc::c_int;
        request.call(socket, libc::SIOCSIFMTU as libc::Ioctl)?;
    }
    if let Some((address, mask)) = options.address {
        let mut request = Request::new(name);
        request.set_address(address);
        request.call(socket, libc::SIOCSIFADDR as libc::Ioctl)?;
        request.set_address(mask);
        request.call(socket, libc::SIOCSIFNETMASK as libc::Ioctl)?;
    }
    let mut request = Request::new(name);
    request.call(socket, libc::SIOCGIFFLAGS as libc::Ioctl)?;
    // SAFETY: the kernel has just written the flags.
    let flags = unsafe { request.0.ifr_ifru.ifru_flags };
    request.0.ifr_ifru.ifru_flags = flags | (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    request.call(socket, libc::SIOCSIFFLAGS as libc::Ioctl)
}

/// Moves this thread into a network of its own, in which tests may make interfaces. False if it may not.
#[cfg(feature = "fuzzing")]
pub fn enter_own_network() -> bool {
    // SAFETY: the call reads its number only, and changes this thread's network.
    unsafe { libc::unshare(libc::CLONE_NEWNET) == 0 }
}
