//! `config.json`: the configuration of a container for its runtime.
//!
//! [`of_program`] is the configuration of a container with a program alone; images and bundles have their own.
//! [`complete`] then adds to each what Millrace needs. A confined container gets the confinement of a confined process:
//! no capabilities and no way to gain any, a user that owns no files, the system calls of an ordinary program,
//! namespaces and limits of its own.

use crate::bundle::SOCKET;
use crate::container_dirs::Folder;
use crate::identity::Ids;
use chain::{Rights, Terms};
use confine::{Applied, Comparison, Profile, Sockets};
use nf_host::process::{EVEN_SHARE, MEMORY_BYTES, is_for_all};
use oci_spec::OciSpecError;
use oci_spec::runtime::{
    Linux, LinuxCapabilities, LinuxCpu, LinuxIdMapping, LinuxIdMappingBuilder, LinuxMemory, LinuxNamespace,
    LinuxNamespaceType, LinuxPidsBuilder, LinuxResources, LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArg,
    LinuxSeccompArgBuilder, LinuxSeccompOperator, LinuxSyscall, Mount, MountBuilder, PosixRlimit,
    PosixRlimitBuilder, PosixRlimitType, Process, Root, Spec, User,
};
use std::path::PathBuf;

/// The most processes and threads of a confined NF: the same as for a confined process.
pub const PROCESSES: i64 = 256;
const OPEN_FILES: u64 = 1024;
/// The version of the specification that all runtimes support.
const VERSION: &str = "1.0.2";

/// A container that runs a program as that user, with only `/proc` and `/dev`.
pub fn of_program(arguments: Vec<String>, user: u32) -> Spec {
    let mut process = Process::default();
    process.set_args(Some(arguments)).set_cwd("/".into());
    let mut as_user = User::default();
    as_user.set_uid(user).set_gid(user);
    process.set_user(as_user);
    let environment = std::env::vars().filter(|(name, _)| is_for_all(name.as_ref()));
    process.set_env(Some(environment.map(|(name, value)| format!("{name}={value}")).collect()));
    let mut root = Root::default();
    root.set_readonly(Some(true));
    let mut spec = Spec::default();
    spec.set_version(VERSION.into()).set_root(Some(root)).set_process(Some(process));
    spec.set_hostname(Some("nf".into())).set_mounts(Some(mounts())).set_linux(Some(Linux::default()));
    spec
}

/// File systems of the kernel that programs need.
pub fn mounts() -> Vec<Mount> {
    let devices = ["nosuid", "noexec", "strictatime", "mode=755", "size=64k"];
    [mount("proc", "/proc", &["nosuid", "noexec", "nodev"]), mount("tmpfs", "/dev", &devices)]
        .into_iter()
        .flatten()
        .collect()
}

/// A mount of a file system that has no source.
pub fn mount(kind: &str, place: &str, options: &[&str]) -> Option<Mount> {
    let options = options.iter().map(|option| (*option).to_string()).collect::<Vec<_>>();
    MountBuilder::default().typ(kind).source(kind).destination(place).options(options).build().ok()
}

/// Adds to a configuration what Millrace needs, and the confinement.
///
/// # Errors
///
/// When it has no process.
pub fn complete(spec: &mut Spec, terms: &Terms, ids: Ids, folder: &Folder) -> Result<(), String> {
    let failed = |error: OciSpecError| error.to_string();
    let process = spec.process_mut().as_mut().ok_or("config.json has no `process`")?;
    process.set_terminal(None).set_console_size(None);
    let kept = process.env().iter().flatten().filter(|entry| !entry.starts_with("MILLRACE_NF="));
    let own = format!("{}={SOCKET}", nf::ENVIRONMENT);
    let environment = kept.cloned().chain([own]).collect();
    process.set_env(Some(environment));
    let inside = process.user().uid();
    if terms.rights.is_some() {
        confine_process(process).map_err(failed)?;
    }
    if let Some(root) = spec.root_mut() {
        root.set_path(folder.root());
    }
    let mut linux = spec.linux_mut().take().unwrap_or_default();
    linux.set_cgroups_path(Some(folder.control_group()));
    let namespaces = linux.namespaces().clone().unwrap_or_default();
    // The end of the first process must end the container; in a PID namespace shared with others it would not.
    let mut namespaces: Vec<_> =
        namespaces.into_iter().filter(|namespace| namespace.typ() != LinuxNamespaceType::Pid).collect();
    namespaces.push(own_namespace(LinuxNamespaceType::Pid));
    linux.set_namespaces(Some(namespaces));
    if let Some(rights) = &terms.rights {
        confine(&mut linux, rights, ids.mapped(inside)).map_err(failed)?;
        spec.set_mounts(Some(confined_mounts(spec, rights)));
    }
    if !terms.cores.is_empty() {
        let cores: Vec<String> = terms.cores.iter().map(ToString::to_string).collect();
        let mut resources = linux.resources_mut().take().unwrap_or_default();
        let mut cpu = resources.cpu_mut().take().unwrap_or_default();
        cpu.set_cpus(Some(cores.join(",")));
        resources.set_cpu(Some(cpu));
        linux.set_resources(Some(resources));
    }
    spec.set_linux(Some(linux));
    Ok(())
}

fn confine_process(process: &mut Process) -> Result<(), OciSpecError> {
    let mut capabilities = LinuxCapabilities::default();
    capabilities.set_bounding(None).set_effective(None).set_inheritable(None);
    capabilities.set_permitted(None).set_ambient(None);
    process.set_capabilities(Some(capabilities)).set_no_new_privileges(Some(true)).set_oom_score_adj(None);
    let mut list: Vec<PosixRlimit> = vec![];
    for (name, most) in limits() {
        let kind = match name {
            "nofile" => PosixRlimitType::RlimitNofile,
            "nproc" => PosixRlimitType::RlimitNproc,
            _ => PosixRlimitType::RlimitCore,
        };
        list.push(PosixRlimitBuilder::default().typ(kind).hard(most).soft(most).build()?);
    }
    process.set_rlimits(Some(list));
    let mut user = process.user().clone();
    let uid = user.uid();
    user.set_gid(uid).set_additional_gids(None);
    process.set_user(user);
    Ok(())
}

fn own_namespace(kind: LinuxNamespaceType) -> LinuxNamespace {
    let mut namespace = LinuxNamespace::default();
    namespace.set_typ(kind);
    namespace
}

fn confine(linux: &mut Linux, rights: &Rights, ids: Vec<(u32, u32)>) -> Result<(), OciSpecError> {
    use LinuxNamespaceType::{Cgroup, Ipc, Mount, Network, Pid, User, Uts};
    let mut kinds = vec![Pid, Mount, Ipc, Uts, User];
    if std::fs::exists("/proc/self/ns/cgroup").unwrap_or(false) {
        kinds.push(Cgroup);
    }
    if !rights.network {
        kinds.push(Network);
    }
    linux.set_namespaces(Some(kinds.into_iter().map(own_namespace).collect()));
    let mappings = ids.into_iter().map(|(inside, outside)| {
        LinuxIdMappingBuilder::default().container_id(inside).host_id(outside).size(1u32).build()
    });
    let mappings: Vec<LinuxIdMapping> = mappings.collect::<Result<_, _>>()?;
    linux.set_uid_mappings(Some(mappings.clone())).set_gid_mappings(Some(mappings));
    linux.set_devices(None).set_sysctl(None).set_rootfs_propagation(None);
    linux.set_seccomp(Some(seccomp(sockets(rights))?)).set_resources(Some(resources(rights)?));
    linux.set_masked_paths(Some(oci_spec::runtime::get_default_maskedpaths()));
    linux.set_readonly_paths(Some(oci_spec::runtime::get_default_readonly_paths()));
    Ok(())
}

/// The mounts of a configuration, changed so that they are possible in a user namespace.
fn confined_mounts(spec: &Spec, rights: &Rights) -> Vec<Mount> {
    let mut mounts = spec.mounts().clone().unwrap_or_default();
    // The kernel mounts /sys only for the owner of the network namespace; an NF needs no control groups.
    mounts.retain(|mount| match mount.typ().as_deref() {
        Some("sysfs") => !rights.network,
        Some("cgroup" | "cgroup2") => false,
        _ => true,
    });
    for mount in mounts.iter_mut().filter(|mount| mount.typ().as_deref() == Some("devpts")) {
        // Options with groups and users that do not exist inside.
        let options = mount.options().iter().flatten().cloned();
        let options = options.filter(|option| !option.starts_with("gid=") && !option.starts_with("uid="));
        mount.set_options(Some(options.collect()));
    }
    mounts
}

/// The system calls of an NF with those sockets.
pub fn seccomp(sockets: Sockets) -> Result<LinuxSeccomp, OciSpecError> {
    let Profile { allowed, unknown } = Profile::new(sockets);
    let mut calls = vec![];
    let call = |names: Vec<String>, action, errno: Option<i32>, args: Option<Vec<LinuxSeccompArg>>| {
        let mut call = LinuxSyscall::default();
        call.set_names(names).set_action(action);
        call.set_errno_ret(errno.and_then(|errno| u32::try_from(errno).ok())).set_args(args);
        call
    };
    let (plain, by_arguments): (Vec<_>, Vec<_>) =
        allowed.into_iter().partition(|rule| rule.conditions.is_empty());
    let names = plain.into_iter().map(|rule| rule.name.to_string()).collect();
    calls.push(call(names, LinuxSeccompAction::ScmpActAllow, None, None));
    for rule in by_arguments {
        let conditions = rule.conditions.iter().map(|condition| {
            let argument = LinuxSeccompArgBuilder::default().index(usize::from(condition.argument));
            match condition.comparison {
                Comparison::Equal => argument.op(LinuxSeccompOperator::ScmpCmpEq).value(condition.value),
                Comparison::NotEqual => argument.op(LinuxSeccompOperator::ScmpCmpNe).value(condition.value),
                Comparison::Less => argument.op(LinuxSeccompOperator::ScmpCmpLt).value(condition.value),
                Comparison::Masked(mask) => {
                    argument.op(LinuxSeccompOperator::ScmpCmpMaskedEq).value(mask).value_two(condition.value)
                }
            }
            .build()
        });
        let conditions = conditions.collect::<Result<_, _>>()?;
        calls.push(call(vec![rule.name.into()], LinuxSeccompAction::ScmpActAllow, None, Some(conditions)));
    }
    let unknown = unknown.into_iter().map(str::to_owned).collect();
    calls.push(call(unknown, LinuxSeccompAction::ScmpActErrno, Some(libc::ENOSYS), None));
    let mut seccomp = LinuxSeccomp::default();
    seccomp.set_default_action(LinuxSeccompAction::ScmpActErrno).set_syscalls(Some(calls));
    Ok(seccomp)
}

fn sockets(rights: &Rights) -> Sockets {
    if rights.network { Sockets::Network } else { Sockets::Inherited }
}

fn resources(rights: &Rights) -> Result<LinuxResources, OciSpecError> {
    let bytes = i64::try_from(rights.memory_bytes.unwrap_or(MEMORY_BYTES)).unwrap_or(i64::MAX);
    let mut memory = LinuxMemory::default();
    memory.set_limit(Some(bytes));
    if swap_is_limited() {
        // The limit is for memory and swap together.
        memory.set_swap(Some(bytes));
    }
    let weight = rights.cpu_share.unwrap_or(EVEN_SHARE);
    let mut resources = LinuxResources::default();
    if confine::control_group_trees().contains(&PathBuf::from("/sys/fs/cgroup")) {
        // Set directly for version 2: a runtime would convert shares into another weight.
        resources.set_unified(Some([("cpu.weight".to_string(), weight.to_string())].into()));
    } else {
        let mut cpu = LinuxCpu::default();
        cpu.set_shares(Some(shares(rights)));
        resources.set_cpu(Some(cpu));
    }
    resources.set_memory(Some(memory)).set_pids(Some(LinuxPidsBuilder::default().limit(PROCESSES).build()?));
    let mut none = oci_spec::runtime::LinuxDeviceCgroup::default();
    none.set_allow(false).set_access(Some("rwm".into()));
    resources.set_devices(Some(vec![none]));
    Ok(resources)
}

/// The CPU weight, whose default is 100, as shares, whose default is 1,024.
pub fn shares(rights: &Rights) -> u64 {
    (u64::from(rights.cpu_share.unwrap_or(EVEN_SHARE)) * 1024 / 100).max(2)
}

/// Limits of each process by their names, none higher than those of this one.
pub fn limits() -> [(&'static str, u64); 3] {
    use rustix::process::{Resource, getrlimit};
    let most = |resource, most: u64| getrlimit(resource).maximum.map_or(most, |had| had.min(most));
    let processes = u64::try_from(PROCESSES).unwrap_or(u64::MAX);
    [
        ("nofile", most(Resource::Nofile, OPEN_FILES)),
        ("nproc", most(Resource::Nproc, processes)),
        ("core", most(Resource::Core, 0)),
    ]
}

/// Whether swap can be limited, and swap exists.
fn swap_is_limited() -> bool {
    let swaps = std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1);
    let old = "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes";
    swaps
        && (std::fs::exists(old).unwrap_or(false)
            || std::fs::exists("/sys/fs/cgroup/cgroup.controllers").unwrap_or(false))
}

/// Sentences about the enforced isolation of a container, and about the parts that are not enforced.
pub fn isolation(terms: &Terms, ids: Ids, runtime: &str, enclosure: &Applied) -> (Vec<String>, Vec<String>) {
    let mut lines = vec![format!("container: by {runtime}")];
    lines.extend(enclosure.measures().iter().map(ToString::to_string));
    let Some(rights) = &terms.rights else {
        let not = "what its config.json says is all there is: the chain file says `confine = false`";
        lines.push(not.into());
        return (lines, vec![]);
    };
    lines.push(format!("user id: user {} in a user namespace of its own, no other group", ids.user));
    lines.extend(said_of(rights));
    (lines, vec![])
}

/// Sentences about the enforced isolation of a container with those rights, for any runtime.
pub fn said_of(rights: &Rights) -> Vec<String> {
    let mebibytes = rights.memory_bytes.unwrap_or(MEMORY_BYTES) >> 20;
    let network = if rights.network { "the machine's, as granted" } else { "of its own, with nothing in it" };
    vec![
        "privileges: no capabilities, and none by executing a program".into(),
        "system calls: those of an ordinary program, others are refused".into(),
        "files: a root file system of its own, and what is granted".into(),
        format!("network: {network}"),
        "signals: it sees no process but its own".into(),
        format!("memory: at most {mebibytes} MiB"),
        format!("processes: at most {PROCESSES}, threads included"),
        format!("CPU share: weight {}, where others have 100", rights.cpu_share.unwrap_or(EVEN_SHARE)),
        format!("limits: at most {OPEN_FILES} descriptors, no core dumps, no devices"),
    ]
}
