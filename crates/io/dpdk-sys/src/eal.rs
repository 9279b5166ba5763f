//! DPDK's environment (EAL). It is started once per process and runs until the process ends.
//!
//! It probes only PCI devices that were named (otherwise it would take over the machine's own network card),
//! shares no memory with other processes, and writes no files. Its main thread is a thread of its own that
//! does nothing else, because the EAL pins the thread that starts it.
#![expect(unsafe_code, reason = "calls into C")]

use crate::{BUILT_WITH_DPDK, DpdkError, ffi};
use std::collections::BTreeSet;
use std::ffi::{CString, c_char, c_int};
use std::fs::DirEntry;
use std::path::PathBuf;
use std::sync::Mutex;

/// The error number where DPDK returns none.
const EIO: i32 = 5;

/// The options with which DPDK is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EalOptions {
    /// PCI devices that will be used, by address; no others are probed.
    pub pci: Vec<String>,
    /// Whether its memory is on huge pages: `None` for huge pages if enough of them are free.
    pub huge_pages: Option<bool>,
    /// Memory for packet headers, rings, and pools of drivers that cannot use the packet region, in MiB. The
    /// system allocates only the memory that is used.
    pub memory_mib: u32,
}

impl Default for EalOptions {
    fn default() -> Self {
        EalOptions { pci: Vec::new(), huge_pages: None, memory_mib: 512 }
    }
}

/// Proof that the environment runs.
#[derive(Clone, Copy, Debug)]
pub struct Eal(());

struct Running {
    options: EalOptions,
    result: Result<(), DpdkError>,
}

/// The options and result of this process's start of DPDK, if any: DPDK cannot be started twice.
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

impl Eal {
    /// Starts DPDK, or returns the environment that runs already.
    ///
    /// # Errors
    ///
    /// When this program was built without DPDK, when DPDK does not start, or when it runs already without a
    /// PCI device that is requested now. A failed start is not repeated.
    pub fn start(options: &EalOptions) -> Result<Eal, DpdkError> {
        if !BUILT_WITH_DPDK {
            return Err(DpdkError::NotBuilt);
        }
        let mut running = RUNNING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let before = running.get_or_insert_with(|| Running {
            options: options.clone(),
            result: start_in_thread(arguments(options)),
        });
        before.result.clone()?;
        match options.pci.iter().find(|address| !before.options.pci.contains(address)) {
            Some(missing) => Err(DpdkError::Running { what: format!("the PCI device {missing}") }),
            None => Ok(Eal(())),
        }
    }
}

fn arguments(options: &EalOptions) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["millrace", "--no-telemetry", "--iova-mode=va", "--log-level=5"].map(String::from).to_vec();
    if options.pci.is_empty() {
        arguments.push("--no-pci".into());
    }
    for address in &options.pci {
        arguments.extend(["-a".into(), address.clone()]);
    }
    if options.huge_pages.unwrap_or_else(|| free_huge_mib() >= u64::from(options.memory_mib)) {
        arguments.push("--in-memory".into());
    } else {
        // Without huge pages DPDK refuses `--in-memory`; this has the same effect.
        arguments.extend(["--no-huge", "--no-shconf", "-m"].map(String::from));
        arguments.push(options.memory_mib.to_string());
    }
    // One lcore that may run on every processor of this process: workers register themselves.
    arguments.push(format!("--lcores=0@({})", allowed_processors()));
    arguments
}

fn free_huge_mib() -> u64 {
    let free = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    free.ok().and_then(|pages| pages.trim().parse::<u64>().ok()).unwrap_or(0) * 2
}

fn allowed_processors() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    allowed.map_or_else(|| "0".into(), |list| list.trim().into())
}

fn start_in_thread(arguments: Vec<String>) -> Result<(), DpdkError> {
    let told = arguments.join(" ");
    let failed = |code| DpdkError::Start { arguments: told.clone(), code, log: ffi::take_log() };
    let (tell, hear) = std::sync::mpsc::channel();
    let spawned = std::thread::Builder::new().name("dpdk-main".into()).spawn(move || {
        let _ = tell.send(init(&arguments));
        // DPDK uses this thread as its main one.
        loop {
            std::thread::park();
        }
    });
    match spawned.map(|_| hear.recv()) {
        Ok(Ok(0)) => Ok(()),
        Ok(Ok(code)) => Err(failed(code)),
        Ok(Err(_)) => Err(failed(-EIO)),
        Err(error) => Err(failed(-error.raw_os_error().unwrap_or(EIO))),
    }
}

fn init(arguments: &[String]) -> c_int {
    let Ok(arguments) = arguments.iter().map(|one| CString::new(one.as_str())).collect::<Result<Vec<_>, _>>()
    else {
        return -22;
    };
    // DPDK reorders the pointers and keeps some of the strings: both are leaked.
    let mut pointers: Vec<*mut c_char> = arguments.into_iter().map(CString::into_raw).collect();
    let count = pointers.len() as c_int;
    pointers.push(std::ptr::null_mut());
    // SAFETY: `pointers` contains `count` C strings that are never freed, and a null pointer after them. The
    // caller holds the lock, which makes this the only start.
    unsafe { ffi::mr_eal_init(count, pointers.leak().as_mut_ptr()) }
}

/// The names of the network drivers that DPDK has on this machine, as for ports (`net_pcap`, ...). Does not
/// start DPDK.
pub fn driver_names() -> Vec<String> {
    let roots = ["/usr/lib/x86_64-linux-gnu/dpdk", "/usr/lib/aarch64-linux-gnu/dpdk", "/usr/lib64/dpdk"];
    let entries = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = roots.into_iter().flat_map(|root| entries(root.into()));
    let driver = |file: DirEntry| {
        let name = file.file_name().into_string().ok()?;
        let driver = name.strip_prefix("librte_")?.strip_suffix(".so")?;
        driver.starts_with("net_").then(|| driver.to_owned())
    };
    let names = folders.flat_map(|folder| entries(folder.path())).filter_map(driver);
    names.collect::<BTreeSet<_>>().into_iter().collect()
}
