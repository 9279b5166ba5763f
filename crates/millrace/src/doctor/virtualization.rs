//! Virtual machines and devices that programs drive: KVM, QEMU, vhost, VFIO, UIO, IOMMU.

use super::machine::{Answer, Machine, Offer};
use super::report::{Finding, Probe};

/// The probes of this section.
pub const PROBES: &[Probe] = &[kvm, qemu, vhost, vfio, iommu];

/// The version that a program reports: the first word on its first line that looks like a version.
///
/// # Errors
///
/// The reason as text: the program is not installed, fails, or does not end in time.
pub fn version(machine: &Machine<'_>, program: &str) -> Result<String, &'static str> {
    match machine.kernel.ask(program, &["--version"]) {
        Answer::Output(text) => {
            let line = text.lines().next().unwrap_or_default();
            let looks_right = |word: &&str| {
                let number = word.trim_start_matches('v');
                number.starts_with(|letter: char| letter.is_ascii_digit()) && number.contains('.')
            };
            let word = line.split([' ', '\t', ',', '(', ')']).find(looks_right);
            Ok(word.map_or_else(|| "installed".to_owned(), |word| word.trim_end_matches('.').to_owned()))
        }
        Answer::NotInstalled => Err("not installed"),
        Answer::Failed => Err("installed, but it does not run"),
        Answer::TimedOut => Err("installed, but it does not answer"),
    }
}

fn kvm(machine: &Machine<'_>) -> Vec<Finding> {
    let hardware = machine.cpu_flag("vmx") || machine.cpu_flag("svm");
    vec![match machine.open("/dev/kvm") {
        Offer::Works if hardware => Finding::ok("KVM", "/dev/kvm opens, by hardware"),
        // Without hardware support, every query of the device succeeds, but a guest may take minutes to boot.
        Offer::Works => Finding::limited(
            "KVM",
            "/dev/kvm opens, but the processor shows neither vmx nor svm: done in software, \
             guests may crawl or not boot",
        )
        .remedy("let this machine nest (on the host: -cpu host and kvm_intel or kvm_amd nested=1); else TCG is used"),
        Offer::Denied => {
            Finding::limited("KVM", "/dev/kvm is there, not for this user").remedy("adduser $USER kvm, then log in again")
        }
        Offer::Absent if hardware => Finding::missing("KVM", "no /dev/kvm, though the processor can")
            .remedy("modprobe kvm_intel || modprobe kvm_amd"),
        Offer::Absent => Finding::missing("KVM", "no /dev/kvm, and the processor shows neither vmx nor svm")
            .remedy("switch virtualization on in the firmware, or let this machine nest; else TCG is used"),
    }]
}

fn qemu(machine: &Machine<'_>) -> Vec<Finding> {
    vec![match version(machine, "qemu-system-x86_64") {
        Ok(version) => Finding::ok("QEMU", version),
        Err(why) => Finding::missing("QEMU", format!("{why}: no NF in a virtual machine"))
            .remedy("apt install qemu-system-x86"),
    }]
}

fn vhost(machine: &Machine<'_>) -> Vec<Finding> {
    vec![match machine.open("/dev/vhost-net") {
        Offer::Works => Finding::ok("vhost-net", "/dev/vhost-net opens"),
        Offer::Denied => Finding::limited("vhost-net", "/dev/vhost-net is there, not for this user")
            .remedy("adduser $USER kvm, then log in again"),
        Offer::Absent => Finding::missing("vhost-net", "no /dev/vhost-net").remedy("modprobe vhost_net"),
    }]
}

fn vfio(machine: &Machine<'_>) -> Vec<Finding> {
    let userspace_io = machine.has("/sys/class/uio") || machine.has("/sys/module/uio");
    let other = if userspace_io { "; UIO is there, without protection by an IOMMU" } else { "" };
    vec![match machine.open("/dev/vfio/vfio") {
        Offer::Works => Finding::ok("VFIO", format!("/dev/vfio/vfio opens{other}")),
        Offer::Denied => {
            Finding::limited("VFIO", format!("/dev/vfio/vfio is there, not for this user{other}"))
                .remedy("run as root, or: chown $USER /dev/vfio/*")
        }
        Offer::Absent if userspace_io => {
            Finding::limited("VFIO", format!("no /dev/vfio/vfio{other}")).remedy("modprobe vfio-pci")
        }
        Offer::Absent => Finding::missing("VFIO", "neither VFIO nor UIO: no NIC can be given to DPDK")
            .remedy("modprobe vfio-pci; AF_XDP and AF_PACKET ports work without"),
    }]
}

fn iommu(machine: &Machine<'_>) -> Vec<Finding> {
    let groups = machine.names("/sys/kernel/iommu_groups").len();
    vec![match groups {
        0 => Finding::missing("IOMMU", "none in use: a NIC given to DPDK could write anywhere").remedy(
            "switch it on in the firmware, and on Intel add intel_iommu=on to GRUB_CMDLINE_LINUX in \
             /etc/default/grub, then update-grub && reboot",
        ),
        groups => Finding::ok("IOMMU", format!("in use, {}", crate::text::plural(groups, "group"))),
    }]
}
