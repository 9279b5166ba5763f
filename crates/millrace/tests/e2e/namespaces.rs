//! Network namespaces: hosts with kernels of their own, as good as machines on cables.
//!
//! A test runs once more in namespaces for network, mounts and processes; all that it makes in there goes
//! away with it, whatever happens.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::process::Command;

/// Set in the inner run.
const INSIDE: &str = "MILLRACE_E2E_INSIDE";

/// Runs a test once more in namespaces of its own. True in there; false outside, when all is done or
/// cannot be done.
pub fn inside(test: &str) -> bool {
    inside_with(test, &["ethtool --version"])
}

/// The same of a test that needs these commands to go well.
pub fn inside_with(test: &str, needs: &[&str]) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        prepare();
        return true;
    }
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        unshare
    };
    let tries = ["mount -t sysfs none /sys", "ip link add a0 type veth peer name b0"];
    let tries = [&tries, needs].concat();
    let tried = unshare().args(["sh", "-ec", &tries.join("; ")]).output();
    match tried {
        Ok(output) if output.status.success() => {}
        other => {
            let why = other.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
            eprintln!("SKIP: namespaces and veth need root and iproute2, and {needs:?} to go well: {why:?}");
            return false;
        }
    }
    let program = std::env::current_exe().expect("this program");
    let status = unshare().arg(program).args(["--exact", test, "--nocapture"]).env(INSIDE, "1").status();
    assert!(status.expect("unshare ran just now").success(), "{test} failed in its namespaces");
    false
}

fn prepare() {
    // The kernel shows the interfaces of the namespace that sysfs was mounted in; names of namespaces lie
    // under /run, which is to be ours.
    shell("mount -t sysfs none /sys && mount -t tmpfs none /run && mkdir /run/netns");
    no_ipv6();
}

/// Kernels say things by IPv6 at times of their own.
fn no_ipv6() {
    for of in ["all", "default"] {
        // A kernel without IPv6 says nothing by it either.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{of}/disable_ipv6"), "1");
    }
}

/// Runs a command line that must go well.
pub fn shell(line: &str) {
    let output = Command::new("sh").args(["-ec", line]).output().expect("a shell");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A host at the other end of a cable.
pub struct Host {
    name: String,
}

impl Host {
    /// Makes it: its `eth0` is at `address` (with prefix), our end of the cable is called `ours`. The
    /// hardware addresses are 02:00:00:00:00:NN here and 02:00:00:00:01:NN there.
    pub fn new(name: &str, ours: &str, number: u8, address: &str) -> Host {
        shell(&format!(
            "ip netns add {name}
             ip link add {ours} address 02:00:00:00:00:{number:02x} type veth peer name eth0 \
                 address 02:00:00:00:01:{number:02x} netns {name}"
        ));
        let host = Host { name: name.into() };
        host.within(no_ipv6);
        shell(&format!(
            "ip link set {ours} up; ip -n {name} link set lo up; ip -n {name} link set eth0 up
             ip -n {name} addr add {address} dev eth0"
        ));
        host
    }

    /// Sends what is not local to a router.
    pub fn route_by(&self, router: &str) {
        shell(&format!("ip -n {} route add default via {router}", self.name));
    }

    /// Runs a command line on it.
    pub fn shell(&self, line: &str) {
        shell(&format!("ip netns exec {} sh -ec '{line}'", self.name));
    }

    /// Calls something on it: sockets that are made in there belong to it for ever.
    pub fn within<T: Send>(&self, call: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.name)).expect("it was made");
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                // Of this thread only, which does nothing else.
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("root");
                call()
            });
            thread.join().expect("no panic")
        })
    }
}

/// A socket for ICMP messages, as ping has it. What it receives starts with the IP header.
///
/// The standard library knows datagrams only; sending to an address and receiving are the same calls, and
/// the port is not used.
pub fn icmp_socket() -> UdpSocket {
    use rustix::net::{AddressFamily, SocketType, ipproto, socket};
    let socket = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)).expect("root");
    UdpSocket::from(socket)
}
